"""Arrow rows in memory-mapped files without a name.

They take only memory that nobody else needs: the kernel keeps the pages in use, and reads others from the file. The
files vanish with the process however it ends.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa


def mapped(rows: pa.RecordBatch, folder: Path) -> pa.RecordBatch:
    """The same rows in a file in `folder`, which is created if it is absent. Raises OSError."""
    folder.mkdir(exist_ok=True)
    # On Linux it never has a name where the file system supports O_TMPFILE.
    with tempfile.TemporaryFile(dir=folder) as file:
        with pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_batch(rows)
        file.flush()
        return pa.ipc.open_file(pa.memory_map(f"/dev/fd/{file.fileno()}")).get_batch(0)

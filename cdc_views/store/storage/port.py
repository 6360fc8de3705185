"""The storage port: what the log of a table needs of the storage under the warehouse.

Today there is one implementation, for a local file system. An object store would implement the same methods: its
objects are durable once they are put, so `sync` does nothing there, and a conditional put replaces the hard link.
Not behind the port yet: Parquet files, which are read and written by path (files/, index/), the draft of a checkpoint
(delta_log/operations/checkpoint.py), copies of a table (delta_log/operations/copying.py), vacuum (upkeep/vacuum.py),
and the requests, rebuilds and locks of the engine.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Final, Protocol

from cdc_views.store.storage import durable


class Storage(Protocol):
    """Files by path. Methods raise OSError as it is; callers translate it (disk.py)."""

    def list(self, folder: Path) -> list[str]:
        """The names in a folder. Raises FileNotFoundError if there is no such folder."""

    def exists(self, file: Path) -> bool:
        """Whether there is such a file."""

    def read(self, file: Path) -> bytes:
        """The content of a file. Raises FileNotFoundError."""

    def put(self, file: Path, content: bytes | memoryview) -> None:
        """Write a new file; its content is durable then, its name only after `sync` of the folder."""

    def put_if_absent(self, file: Path, content: bytes) -> None:
        """Write a file that must not exist yet, content and name durable. Raises FileExistsError.

        Of several writers exactly one succeeds, and nobody sees a part of the content.
        """

    def delete(self, file: Path) -> None:
        """Remove a file if it is there."""

    def sync(self, folder: Path) -> None:
        """Make the names in a folder durable."""


class LocalStorage:
    """A local file system with hard links and fsync."""

    def list(self, folder: Path) -> list[str]:
        return os.listdir(folder)

    def exists(self, file: Path) -> bool:
        return file.exists()

    def read(self, file: Path) -> bytes:
        return file.read_bytes()

    def put(self, file: Path, content: bytes | memoryview) -> None:
        durable.write(file, content)

    def put_if_absent(self, file: Path, content: bytes) -> None:
        # Readers of a log ignore names that begin with a dot.
        draft = file.with_name(f".{uuid.uuid4()}.tmp")
        try:
            durable.write(draft, content)
            os.link(draft, file)
            durable.sync(file.parent)
        finally:
            draft.unlink(missing_ok=True)

    def delete(self, file: Path) -> None:
        file.unlink(missing_ok=True)

    def sync(self, folder: Path) -> None:
        durable.sync(folder)


STORAGE: Final[Storage] = LocalStorage()
"""The storage of every warehouse."""

"""Durable writes: a commit survives a loss of power because it fsyncs content and names in this order.

1. The data file and the file of deletion vectors: content, then the names in the table's folder.
2. The log entry under a name that nobody reads: content.
3. The log entry under its own name, then the names in the log's folder. Only now does the version exist.

A disk may keep all, some or none of what was not fsynced. After a loss of power between two steps the table therefore
has its old version, and files that no version names; vacuum removes these.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

_is_on = True


def turn_off() -> None:
    """Stop fsyncing in this process, for throw-away data: the operating system decides when to write."""
    global _is_on
    _is_on = False
    warnings.warn("store.fsync is false: a loss of power may damage any table", RuntimeWarning, stacklevel=3)


def sync(file: Path) -> None:
    """Fsync the content of a file, or the names in a folder."""
    if not _is_on:
        return
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(file: Path, content: bytes | memoryview) -> None:
    """Write a new file and fsync its content, not its name. No file is left if that fails."""
    try:
        with file.open("wb") as stream:
            stream.write(content)
            if _is_on:
                stream.flush()
                os.fsync(stream.fileno())
    except OSError:
        # On a full disk each retry would leave one more file.
        file.unlink(missing_ok=True)
        raise


def sync_tree(folder: Path) -> None:
    """Fsync a folder and everything below it, not its own name."""
    for file in folder.rglob("*"):
        sync(file)
    sync(folder)

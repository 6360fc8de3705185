"""What makes a commit outlive a loss of power: content and names that are brought to the disk, in this order.

1. The data file and the file of deletion vectors: content, then the names in the table's folder.
2. The entry of the log under a name that nobody reads: content.
3. The entry under its own name, then the names in the log's folder: only now the version counts.

A disk may keep of what was not brought to it anything or nothing. So after a loss of power between two steps a table
has its old version, and files that no version names; VACUUM removes these.
"""

from __future__ import annotations

import os
import urllib.parse
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cdc_views.store.deletion_vectors import file_of

_is_on = True


def turn_off() -> None:
    """From here on this process leaves it to the operating system when to write; for throw-away data."""
    global _is_on
    _is_on = False
    warnings.warn("store.fsync is false: a loss of power may damage any table", RuntimeWarning, stacklevel=3)


def turn_on() -> None:
    """Take `turn_off` back."""
    global _is_on
    _is_on = True


def sync(file: Path) -> None:
    """Bring a file's content to the disk, or the names in a folder."""
    if not _is_on:
        return
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write(file: Path, content: bytes | memoryview) -> None:
    """Write a new file and bring its content to the disk; its name is not yet."""
    with file.open("wb") as stream:
        stream.write(content)
        if _is_on:
            stream.flush()
            os.fsync(stream.fileno())


def sync_files(table: Path, actions: Iterable[Mapping[str, Any]]) -> None:
    """Bring to the disk what the entry of another engine names: its files, and their names."""
    added = [action["add"] for action in actions if "add" in action]
    data = {table / urllib.parse.unquote(add["path"]) for add in added}
    vectors = {file_of(table, add["deletionVector"]) for add in added if add.get("deletionVector")}
    for file in sorted(data | vectors):
        sync(file)
    for folder in sorted({file.parent for file in data | vectors}):
        sync(folder)

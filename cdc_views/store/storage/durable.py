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

from cdc_views.store.delta_log.deletion_vectors import file_of

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
    """Write a new file and bring its content to the disk; its name is not yet. No file is left if that fails."""
    try:
        with file.open("wb") as stream:
            stream.write(content)
            if _is_on:
                stream.flush()
                os.fsync(stream.fileno())
    except OSError:
        # On a full disk every try would leave one more.
        file.unlink(missing_ok=True)
        raise


def sync_tree(folder: Path) -> None:
    """Bring a folder with all below it to the disk; its own name is not."""
    for file in folder.rglob("*"):
        sync(file)
    sync(folder)


def sync_version(table: Path, entry: Path, actions: Iterable[Mapping[str, Any]]) -> None:
    """Bring a version of another engine to the disk: the files that its entry names, and the entry."""
    added = [action["add"] for action in actions if "add" in action]
    data = {table / urllib.parse.unquote(add["path"]) for add in added}
    vectors = {file_of(table, add["deletionVector"]) for add in added if add.get("deletionVector")}
    log = {entry, entry.with_suffix(".crc")}
    # Of a table whose settings still let Spark make some.
    if (checkpoint := entry.with_suffix(".checkpoint.parquet")).exists():
        log |= {checkpoint, entry.with_name("_last_checkpoint")}
    for files in (data | vectors, log):
        # Hadoop keeps a sum of each file beside it, and reads no file whose sum is wrong.
        sums = {file.with_name(f".{file.name}.crc") for file in files}
        present = sorted(file for file in files | sums if file.exists())
        for file in present:
            sync(file)
        for folder in sorted({file.parent for file in present}):
            sync(folder)

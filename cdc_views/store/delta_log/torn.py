"""What a loss of power may leave of a commit through Spark, which brings nothing to the disk by itself.

Until the warehouse has done that, the entry of the version, its files, or a part of them may vanish. No published
record names such a version, so it can be taken back. File systems set the length of a file after its content
(ext4 with ordered data, XFS), so a file in its full length is whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import orjson

from cdc_views.errors import StoreError, TableUnavailable
from cdc_views.store.delta_log.deletion_vectors import file_of, read_rows
from cdc_views.store.delta_log.entries import (
    LOG_FOLDER,
    NO_TABLE,
    Action,
    data_file,
    entry_file,
    newest_version,
    read_entry,
)
from cdc_views.store.storage import durable
from cdc_views.store.storage.port import STORAGE


def remove_torn_entries(table: Path, above: int) -> list[int]:
    """Remove the newest entries above a published version for as long as they cannot be read; returns which."""
    removed = []
    for version in range(newest_version(table), max(above, newest_whole_version(table)), -1):
        entry = entry_file(table, version)
        # Delta's sum of the version and Hadoop's sums of both files would be taken for those of what comes here next.
        for file in (entry, entry.with_suffix(".crc")):
            STORAGE.delete(file.with_name(f".{file.name}.crc"))
            STORAGE.delete(file)
        removed.append(version)
    if removed:
        durable.sync(table / LOG_FOLDER)
    return removed


def newest_whole_version(table: Path) -> int:
    """The newest version whose entry can be read; NO_TABLE if there is none."""
    version = newest_version(table)
    while version > NO_TABLE and not _can_be_read(table, version):
        version -= 1
    return version


def is_whole(table: Path, actions: Sequence[Action]) -> bool:
    """Whether all files that an entry adds are there in their full length."""
    return all(_is_there(table, action["add"]) for action in actions if "add" in action)


def sync_version(table: Path, version: int) -> None:
    """Fsync a version that Spark has written: the files that its entry names, and the entry."""
    entry = entry_file(table, version)
    added = [action["add"] for action in read_entry(table, version) if "add" in action]
    data = {data_file(table, add["path"]) for add in added}
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
            durable.sync(file)
        for folder in sorted({file.parent for file in present}):
            durable.sync(folder)


def _can_be_read(table: Path, version: int) -> bool:
    try:
        return bool(read_entry(table, version))
    except orjson.JSONDecodeError:
        return False
    except TableUnavailable:
        return True  # a checkpoint stands for it


def _is_there(table: Path, add: Action) -> bool:
    file = data_file(table, add["path"])
    if not file.is_file() or file.stat().st_size != add["size"]:
        return False
    try:
        read_rows(table, add.get("deletionVector"))
    except (FileNotFoundError, StoreError):
        return False
    return True

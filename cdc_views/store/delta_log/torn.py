"""Torn versions: what a loss of power may leave of a commit through Spark, which fsyncs nothing.

Until the warehouse has fsynced such a version, its log entry, its files, or parts of them may vanish. No published
record names the version yet, so it can be rolled back. File systems set the length of a file after its content (ext4
with ordered data, XFS), so a file of full length is complete.
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
    """Remove the newest entries above a published version while they cannot be read; returns their versions."""
    removed = []
    for version in range(newest_version(table), max(above, newest_whole_version(table)), -1):
        entry = entry_file(table, version)
        # Delta's checksum of the version, and Hadoop's of both files, would be treated as those of the next entry here.
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


def has_all_files(table: Path, actions: Sequence[Action]) -> bool:
    """Whether all files that an entry adds exist in full length."""
    return all(_is_there(table, action["add"]) for action in actions if "add" in action)


def sync_version(table: Path, version: int) -> None:
    """Fsync a version that Spark has written: the files that its entry names, and the entry."""
    entry = entry_file(table, version)
    added = [action["add"] for action in read_entry(table, version) if "add" in action]
    data = {data_file(table, add["path"]) for add in added}
    vectors = {file_of(table, add["deletionVector"]) for add in added if add.get("deletionVector")}
    log = {entry, entry.with_suffix(".crc")}
    # Tables of earlier versions have settings that let Spark write checkpoints.
    if (checkpoint := entry.with_suffix(".checkpoint.parquet")).exists():
        log |= {checkpoint, entry.with_name("_last_checkpoint")}
    for files in (data | vectors, log):
        # Hadoop keeps a checksum next to each file, and refuses a file whose checksum is wrong.
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
        return True  # a checkpoint replaces it


def _is_there(table: Path, add: Action) -> bool:
    file = data_file(table, add["path"])
    if not file.is_file() or file.stat().st_size != add["size"]:
        return False
    try:
        read_rows(table, add.get("deletionVector"))
    except (FileNotFoundError, StoreError):
        return False
    return True

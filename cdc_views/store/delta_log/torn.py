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
from cdc_views.store.delta_log.deletion_vectors import read_rows
from cdc_views.store.delta_log.entries import LOG_FOLDER, NO_TABLE, Action, entry_file, newest_version, read_entry
from cdc_views.store.index.stored_keys import data_file
from cdc_views.store.storage import durable


def remove_torn_entries(table: Path, above: int) -> list[int]:
    """Remove the newest entries above a published version for as long as they cannot be read; returns which."""
    removed = []
    for version in range(newest_version(table), max(above, newest_whole_version(table)), -1):
        entry = entry_file(table, version)
        # Delta's sum of the version and Hadoop's sums of both files would be taken for those of what comes here next.
        for file in (entry, entry.with_suffix(".crc")):
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
            file.unlink(missing_ok=True)
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

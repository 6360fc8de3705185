"""Checkpoints of a table's log, and the clean-up of the entries before them.

delta-rs writes the checkpoint, without the tombstones that have expired by the table's settings. Readers fail on a
checkpoint that is incomplete, and read the entries instead only if there is no checkpoint. So the checkpoint gets its
name once its content is fsynced, then `_last_checkpoint` is replaced. Before an entry is removed, the checkpoint that
replaces it is fsynced, whoever wrote it.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from cdc_views import faults
from cdc_views.store.delta_log.entries import LOG_FOLDER, checkpoint_file, checkpoints
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching
from cdc_views.store.storage.port import STORAGE

_LAST: Final = "_last_checkpoint"
_PARQUET: Final = b"PAR1"
# An entry, its checksum by Spark, a checkpoint in one file or several, or compacted entries (by the last version).
_OF_A_VERSION: Final = re.compile(r"^(?:\d{20}\.)?(\d{20})\.(?:json|crc|compacted\.json|checkpoint\.(?:.*\.)?parquet)$")


def write_checkpoint(table: Path) -> int:
    """Write a checkpoint of the newest version durably, and return that version. Raises DiskFull."""
    # Vacuum removes what a crash leaves of it.
    draft, log = table / f".{uuid.uuid4()}.tmp", table / LOG_FOLDER
    with touching(table):
        try:
            _link_log(log, newest_checkpoint(table) or 0, draft / LOG_FOLDER)
            opened = DeltaTable(str(draft))
            opened.create_checkpoint()
            for name in (f"{opened.version():020d}.checkpoint.parquet", _LAST):
                durable.sync(draft / LOG_FOLDER / name)
                (draft / LOG_FOLDER / name).replace(log / name)
                durable.sync(log)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    faults.point("upkeep.after_checkpoint")
    return opened.version()


def _link_log(log: Path, since: int, to: Path) -> None:
    """Make a log with the same entries and checkpoints from a version on, by hard links."""
    to.mkdir(parents=True)
    for name in STORAGE.list(log):
        match = _OF_A_VERSION.match(name)
        if match and int(match[1]) >= since:
            os.link(log / name, to / name)


def newest_checkpoint(table: Path, at_most: float = math.inf) -> int | None:
    """The version of the newest single-file checkpoint, of those up to `at_most`; None if there is none."""
    return next((each for each in checkpoints(table, at_most) if _has_end(checkpoint_file(table, each))), None)


def _has_end(file: Path) -> bool:
    """Whether a Parquet file ends as it must; a loss of power while it was written may have cut it off."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - len(_PARQUET)))
        return stream.read() == _PARQUET


def clean_log(table: Path, oldest: int) -> int:
    """Remove the files of the log before its newest checkpoint up to `oldest`; returns how many.

    Every version from that checkpoint on can still be read.
    """
    first = newest_checkpoint(table, oldest)
    if first is None:
        return 0
    log, removed = table / LOG_FOLDER, 0
    # Its writer may have crashed before the fsync, or never fsyncs.
    for file in (checkpoint_file(table, first), log):
        durable.sync(file)
    # Oldest first, so that a crash leaves a log without a gap.
    for name in sorted(STORAGE.list(log), key=lambda name: name[:20]):
        match = _OF_A_VERSION.match(name)
        if match and int(match[1]) < first:
            STORAGE.delete(log / name)
            # Hadoop's file system keeps a checksum next to each file that it writes.
            STORAGE.delete(log / f".{name}.crc")
            removed += 1
            faults.point("upkeep.after_first_log_file")
    return removed

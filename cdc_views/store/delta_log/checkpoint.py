"""Checkpoints of a table's log, and the clean-up of what came before them.

A checkpoint is written by delta-rs, which leaves out the tombstones that the table's settings say nobody needs. Readers
fail on one that is half there, and take the entries instead only if there is none. So it gets its name when its content
is on the disk, and the file that names it after that; whoever wrote it, before any entry that it stands for is removed.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from pathlib import Path
from typing import Final

from deltalake import DeltaTable

from cdc_views import faults
from cdc_views.store.delta_log.entries import LOG_FOLDER
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching

_CHECKPOINT: Final = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
_LAST: Final = "_last_checkpoint"
_PARQUET: Final = b"PAR1"
# An entry, its checksum by Spark, a checkpoint in one file or several; of entries put together, the last version.
_OF_A_VERSION: Final = re.compile(r"^(?:\d{20}\.)?(\d{20})\.(?:json|crc|compacted\.json|checkpoint\.(?:.*\.)?parquet)$")


def write_checkpoint(table: Path) -> int:
    """Write a checkpoint of the newest version, durably, and return that version. Raises DiskFull."""
    # The vacuum removes what a crash leaves of it.
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
    """Make a log of the same entries and checkpoints from a version on."""
    to.mkdir(parents=True)
    for name in os.listdir(log):
        match = _OF_A_VERSION.match(name)
        if match and int(match[1]) >= since:
            os.link(log / name, to / name)


def newest_checkpoint(table: Path, at_most: int | None = None) -> int | None:
    """The version of the newest checkpoint in one file, of those up to `at_most`; None if there is none."""
    found = {int(match[1]): name for name in os.listdir(table / LOG_FOLDER) if (match := _CHECKPOINT.match(name))}
    wanted = (version for version in sorted(found, reverse=True) if at_most is None or version <= at_most)
    return next((version for version in wanted if _has_end(table / LOG_FOLDER / found[version])), None)


def _has_end(file: Path) -> bool:
    """Whether a file of Parquet is not what a loss of power while it was written has left, which readers pass over."""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - len(_PARQUET)))
        return stream.read() == _PARQUET


def clean_log(table: Path, oldest: int) -> int:
    """Remove what the log has of before the newest checkpoint up to `oldest`, and return how many files that were.

    Every version from that checkpoint on can still be read.
    """
    first = newest_checkpoint(table, oldest)
    if first is None:
        return 0
    log, removed = table / LOG_FOLDER, 0
    # Whoever wrote it may have crashed before it was durable, or leave that to the operating system.
    for file in (log / f"{first:020d}.checkpoint.parquet", log):
        durable.sync(file)
    # Oldest first: what a crash leaves is a log without a gap.
    for name in sorted(os.listdir(log), key=lambda name: name[:20]):
        match = _OF_A_VERSION.match(name)
        if match and int(match[1]) < first:
            (log / name).unlink(missing_ok=True)
            # Hadoop's file system keeps a checksum beside each file that it writes.
            (log / f".{name}.crc").unlink(missing_ok=True)
            removed += 1
            faults.point("upkeep.after_first_log_file")
    return removed

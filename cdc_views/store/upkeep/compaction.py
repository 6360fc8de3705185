"""Compaction: small files become one, and larger ones with many deleted rows are written anew.

Files are merged with others of about their size only, like a log-structured merge tree: a row is copied once per
size class, so that the cost of an epoch does not grow with the table, and the number of files is bounded by the
number of classes. Readers built on delta-rs decode a file that has deletion vectors whole, by one thread, whatever
they look for in it; so a file is full, too, when it has half a million rows. A version made here rearranges rows and
changes none (`dataChange` is false), and carries the stamp of an attempt that the control log knows.

Ours, not delta-rs's: that one rewrites every file below its target size each time, in one row group, and its
version has no stamp (docs/decisions/2026-11-21-upkeep.md).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from cdc_views import faults
from cdc_views.config import UpkeepSettings
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.state import Add, TableState
from cdc_views.store.delta_log.versions import Stamp, rearrangement
from cdc_views.store.files.merged_file import rows_of, write_evenly
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching

_MB = 1_000_000
_CLASSES = 4
# Twice as many files cost an epoch that changes rows in each a tenth more, and halve what a reader decodes.
FULL_ROWS = 500_000


@dataclass(frozen=True)
class _Sized:
    """A file of a table, by what is left of it: rows that are not deleted, and the bytes that they take about."""

    add: Add
    live_bytes: float
    live_rows: int
    deleted_part: float

    @classmethod
    def of(cls, add: Add) -> _Sized:
        rows = orjson.loads(add.get("stats") or "{}").get("numRecords") or 0
        deleted = (add.get("deletionVector") or {}).get("cardinality", 0)
        part = deleted / rows if rows else 0.0
        return cls(add, add["size"] * (1 - part), rows - deleted, part)


def files_due(state: TableState, settings: UpkeepSettings, times: int = 1) -> list[Add]:
    """The files that are to become one next; none if the table is compact, or has fewer than `times` too many."""
    target = settings.target_mb * _MB
    sized = sorted((_Sized.of(add) for add in state.files.values()), key=lambda file: file.live_bytes)
    classes: list[list[_Sized]] = [[] for _ in range(_CLASSES)]
    smallest = target / settings.merged_files**_CLASSES
    for file in sized:
        if file.live_bytes < target and file.live_rows < FULL_ROWS:
            classes[_class_of(file.live_bytes, smallest, settings.merged_files)].append(file)
    for files in classes:
        if len(files) >= times * settings.merged_files:
            # All of the class: where upkeep has fallen behind, fewer and larger merges catch up.
            return [file.add for file in _first_up_to(files, 2 * target)]
    # A small one goes with its class soon enough.
    large = (file for file in sized if file.add["size"] > smallest or file.live_rows >= FULL_ROWS)
    worn = [file for file in large if file.deleted_part >= settings.deleted_part]
    return [file.add for file in worn[:1]] if len(worn) >= times else []


def compact(table: Path, spec: TableSpec, state: TableState, files: Sequence[Add], stamp: Stamp) -> None:
    """Make the version after `state`, in which the rows of these files are in one, or in full ones. Advances `state`.

    Raises VersionTaken, and then nothing has changed; DiskFull.
    """
    rows = sum(_Sized.of(add).live_rows for add in files)
    count = max(1, rows // FULL_ROWS)
    with touching(table):
        written = write_evenly(table, spec, rows_of(table, spec, files), rows, count)
        durable.sync(table)
    faults.point("upkeep.after_data_file")
    entry = [*rearrangement(state.version, stamp), *map(removal, files), *({"add": add} for add in written)]
    state.put(table, entry)
    faults.point("upkeep.after_compaction")


def removal(add: Add, *, data_change: bool = False) -> dict[str, Any]:
    """The action that takes a file out of the table."""
    kept = {name: add[name] for name in ("path", "size", "tags", "stats", "deletionVector") if add.get(name)}
    now_ms = time.time_ns() // 1_000_000
    return {"remove": {**kept, "deletionTimestamp": now_ms, "dataChange": data_change, "extendedFileMetadata": True,
                       "partitionValues": add.get("partitionValues") or {}}}  # fmt: skip


def _class_of(live_bytes: float, smallest: float, factor: int) -> int:
    limits = [smallest * factor**number for number in range(1, _CLASSES)]
    return sum(live_bytes >= limit for limit in limits)


def _first_up_to(files: Sequence[_Sized], most_bytes: float) -> list[_Sized]:
    """The first files, at least two, as long as there are not too many bytes and rows in them."""
    held_bytes = accumulate(file.live_bytes for file in files)
    held_rows = accumulate(file.live_rows for file in files)
    few = sum(size <= most_bytes and rows <= FULL_ROWS for size, rows in zip(held_bytes, held_rows, strict=True))
    return list(files[: max(2, few)])

"""What the published epochs have done, from the control log: by epoch, by minute, and for one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from cdc_views.store.control import ControlRecord, PublishedDetail, changes_mirror, updates_view

MINUTE: Final = timedelta(minutes=1)


def epoch_row(record: ControlRecord) -> dict[str, Any]:
    """A record as `cdc-views epochs` lists it."""
    detail = PublishedDetail.read(record)
    return {
        "epoch": record.epoch,
        "kind": record.kind,
        "attempt": record.attempt,
        "position": str(record.position) if record.position is not None else None,
        "committed_at": record.committed_at,
        "published_at": record.published_at,
        "changes": sum(detail.changes.values()),
        "parked": sum(detail.parked.values()),
        "ways": detail.ways,
        "view_work": {view: dict(vars(work)) for view, work in detail.view_work.items()},
    }


def table_row(record: ControlRecord, name: str) -> dict[str, Any]:
    """What an epoch did for a mirror or view. Numbers that are not known are None.

    `strategy` is the way that a view took, `why_full` why it was computed in full, `changes` counts the events of a
    mirror; the rest is of the Work of a view.
    """
    detail = PublishedDetail.read(record)
    work = detail.view_work.get(name)
    is_counted = work is not None and detail.ways.get("diff", {}).get(name) != "spark"
    return {
        "epoch": record.epoch,
        "committed_at": record.committed_at,
        "published_at": record.published_at,
        "changes": detail.changes.get(name),
        "strategy": detail.ways.get("view", {}).get(name),
        "why_full": None if work is None else work.why_full,
        "keys_looked_up": None if work is None else work.keys_looked_up,
        "rows_found": None if work is None else work.rows_found,
        "rows_computed": work.rows_recomputed if work is not None and is_counted else None,
        "rows_written": None if work is None else work.rows_written,
        "milliseconds": None if work is None else work.milliseconds,
    }


def is_of(record: ControlRecord, name: str) -> bool:
    """Whether an epoch has done something for a table."""
    return updates_view(record, name) or changes_mirror(record, name)


@dataclass
class Minutes:
    """Sums for each minute before `end`, oldest first.

    `age_seconds` is how old the source was, at most, when an epoch of the minute was published. `tables` has for each
    table that changed `changes` (events of a mirror, rows that were written of a view) and `milliseconds`.
    """

    end: datetime
    epochs: list[int]
    changes: list[int]
    age_seconds: list[float | None]
    stage_milliseconds: dict[str, list[int]] = field(default_factory=dict)
    tables: dict[str, dict[str, list[int]]] = field(default_factory=dict)


def by_minute(records: Sequence[ControlRecord], end: datetime, count: int) -> Minutes:
    """Sum up the epochs that were published in the last `count` minutes before `end`."""
    found = Minutes(end, [0] * count, [0] * count, [None] * count)
    for record in records:
        if record.published_at is None or record.committed_at is None:
            continue
        place = count - 1 - (end - record.published_at) // MINUTE
        if not 0 <= place < count:
            continue
        found.epochs[place] += 1
        age_s = max(0.0, (record.published_at - record.committed_at).total_seconds())
        found.age_seconds[place] = max(age_s, found.age_seconds[place] or 0.0)
        if not record.is_idle:
            _add(found, PublishedDetail.read(record), place, count)
    return found


def _add(found: Minutes, detail: PublishedDetail, place: int, count: int) -> None:
    found.changes[place] += sum(detail.changes.values())
    for stage, milliseconds in detail.stage_ms.items():
        found.stage_milliseconds.setdefault(stage, [0] * count)[place] += milliseconds
    numbers = {name: (changes, 0) for name, changes in detail.changes.items()}
    numbers |= {name: (work.rows_written, work.milliseconds) for name, work in detail.view_work.items()}
    for name, (changes, milliseconds) in numbers.items():
        of_table = found.tables.setdefault(name, {"changes": [0] * count, "milliseconds": [0] * count})
        of_table["changes"][place] += changes
        of_table["milliseconds"][place] += milliseconds

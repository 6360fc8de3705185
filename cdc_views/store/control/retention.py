"""Retention: which epochs can still be read, and which table versions they need.

An epoch's retention time begins when its successor is published: until then it is what readers see. Epochs without
changes do not count as epochs to keep: they have the tables of the epoch before them. Neither do epochs of a generation
that a reset has replaced. A running rebuild needs the epochs since its start, and the epoch that it started from. A
rollback needs the epochs that hold the tables it would publish again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from cdc_views.config import UpkeepSettings
from cdc_views.store.control.details import PublishedDetail, has_replaced
from cdc_views.store.control.records import PUBLISHING, ControlRecord


@dataclass(frozen=True)
class Needed:
    """What is still read.

    `oldest` has the oldest needed version by the path of a table; nobody needs a table whose path is not in it. All
    records of the control log from number `first` on must stay, and those of the numbers in `kept`, whatever the number
    from which on records really stay: that one never goes down.
    """

    oldest: Mapping[str, int]
    first: int
    kept: frozenset[int] = frozenset()


def needed(
    records: Sequence[ControlRecord],
    now: datetime,
    settings: UpkeepSettings,
    rebuilding_since: datetime | None = None,
    rebuilt_from: Collection[int] = (),
) -> Needed:
    """Return what the retained epochs, open intents and rollbacks need."""
    published = [record for record in records if record.kind in PUBLISHING]
    last = published[-1].seq if published else 0
    since = now - timedelta(hours=settings.keep_hours)
    since = since if rebuilding_since is None else min(since, rebuilding_since)
    generation = published[-1].generation if published else None
    changed = [record for record in published if not record.is_idle and record.generation == generation]
    with_changes = changed[-settings.keep_epochs :]
    retained = [
        *published[-1:],
        *(record for record, successor in pairwise(published) if _at(successor) > since),
        *(record for record in published if record.epoch in rebuilt_from),
        *(record for record in records if record.seq > last),
    ]
    oldest: dict[str, int] = {}
    for path, version in (place for record in (*with_changes, *retained) for place in _places(record)):
        oldest[path] = min(oldest.get(path, version), version)
    replacing = [record for record in published if _can_be_rolled_back(record, now, settings)]
    replaced = [table for record in replacing for table in PublishedDetail.read(record).replaced.values()]
    for table in replaced:
        oldest[table.path] = min(oldest.get(table.path, table.version), table.version)
    held = {table.epoch for table in replaced}
    of_replaced = [record for record in published if record.epoch in held]
    first = min((record.seq for record in (*retained, *replacing, *records[-settings.keep_records :])), default=1)
    return Needed(
        oldest, first, frozenset(record.seq for record in (*with_changes, *retained, *replacing, *of_replaced))
    )


def _can_be_rolled_back(record: ControlRecord, now: datetime, settings: UpkeepSettings) -> bool:
    return has_replaced(record) and _at(record) > now - timedelta(hours=settings.keep_tables_hours)


def _places(record: ControlRecord) -> Iterator[tuple[str, int]]:
    return ((table.path, table.version) for table in record.tables.values())


def _at(record: ControlRecord) -> datetime:
    assert record.published_at is not None
    return record.published_at

"""Step 3: what the cut's events change in each mirror.

Events are folded per key; a value that Postgres did not write to the log, because it is stored out
of line and unchanged, comes from the mirror's row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdc_views.capture.fold import UNAPPLICABLE, Fold, Key, Stored
from cdc_views.capture.sift import Sifted, sift
from cdc_views.engine.epoch.tables import Tables
from cdc_views.engine.input.mirror_errors import naming_table
from cdc_views.engine.input.quarantine import NAME as QUARANTINE
from cdc_views.engine.input.quarantine import Counts, Entry, Past, Step, past_of
from cdc_views.log.cut import CutLog
from cdc_views.log.record import Record
from cdc_views.source.catalog import SourceTable
from cdc_views.store.warehouse import Changes, WrittenRows

if TYPE_CHECKING:
    from cdc_views.engine.epoch.steps import Intent


@dataclass(frozen=True)
class MirrorDelta:
    """The change of one mirror in one epoch; `changes` is None where nothing is left to commit.

    The rows of a mirror that is read in bulk are not counted.
    """

    changes: Changes | WrittenRows | None
    events: int
    snapshot_rows: int


@dataclass(frozen=True)
class Deltas:
    """The changes of all mirrors in one epoch, and of the quarantine; `counts` is of what it holds afterwards."""

    mirrors: dict[str, MirrorDelta]
    step: Step
    counts: Counts

    def require_none_refused(self) -> None:
        """Raise the error of the first event that cannot be applied."""
        for error, _ in self.step.refused:
            raise error


def read_deltas(log: CutLog, intent: Intent, tables: Tables) -> Deltas:
    """Read the cut's records and fold them. What cannot be applied is in the step. Raises what the log raises."""
    bulk = [name for name, source in tables.sources.items() if source.name in intent.cut.bulk]
    records: dict[str, list[Record]] = {name: [] for name in tables.sources}
    for record in log.records(intent.cut):
        records[str(log.table_of(record.topic))].append(record)
    entries = _entries(intent, tables)
    step, deltas = Step(intent.epoch), dict[str, MirrorDelta]()
    for name, found in records.items():
        if tables.sources[name].name in intent.cut.stopped:
            continue
        past = _past(name, entries, intent, tables)
        if found or not past.is_clear:
            with naming_table(name):
                deltas[name] = _delta(name, [*past.records, *found], past, step, intent, tables)
    deltas |= {name: _bulk_delta(name, log, intent, tables) for name in bulk}
    return Deltas(deltas, step, Counts.of(_entries_after(step, entries, intent, tables)))


def _entries(intent: Intent, tables: Tables) -> list[Entry]:
    if tables.quarantine is None or intent.quarantine is None:
        return []
    if intent.retry is not None:
        return tables.quarantine.whole(intent.quarantine)
    return tables.quarantine.at(intent.quarantine)


def _entries_after(step: Step, entries: Sequence[Entry], intent: Intent, tables: Tables) -> Iterable[Entry]:
    if tables.quarantine is not None and QUARANTINE in intent.done:
        return tables.quarantine.at(intent.done[QUARANTINE])
    return step.after(entries)


def _past(name: str, entries: Sequence[Entry], intent: Intent, tables: Tables) -> Past:
    of_table = [each for each in entries if each.table == name]
    if name in tables.standing_in:
        # Its new mirror was made of whole rows, and what is read again is looked at again.
        return Past(of_table, is_forgotten=True)
    return past_of(tables.sources[name], of_table, intent.cut.start, intent.retry)


def _bulk_delta(name: str, log: CutLog, intent: Intent, tables: Tables) -> MirrorDelta:
    if name in intent.done:
        return MirrorDelta(None, 0, 0)
    assert tables.bulk is not None, "a log that has bulk comes with its reader"
    table, cut = tables.sources[name], intent.cut
    partitions = [each for each in cut.end if log.table_of(each.topic) == table.name]
    start, end = ({each: side[each] for each in partitions} for side in (cut.start, cut.end))
    floor = None if name in tables.standing_in else tables.position
    changes = tables.bulk.rows(table, start, end, all_new=_is_first_build(name, tables), floor=floor)
    return MirrorDelta(changes, 0, 0)


def _is_first_build(name: str, tables: Tables) -> bool:
    """A mirror that was never published is empty: nothing in it can vanish."""
    return not tables.is_published(name) and name not in tables.standing_in


def _delta(name: str, records: Sequence[Record], past: Past, step: Step, intent: Intent, tables: Tables) -> MirrorDelta:
    if name in intent.done:
        fold = _counted(tables.sources[name], records)
        return MirrorDelta(None, fold.events, fold.snapshot_rows)
    sifted = _sifted(tables.sources[name], records, past, lambda fold: _stored_rows(name, fold, tables))
    step.add(tables.sources[name], past, sifted, intent.cut.end)
    fold, folded = sifted.fold, sifted.folded
    first_build = _is_first_build(name, tables)
    deleted = folded.deletes if folded.deletes.num_rows and not first_build else None
    changes = Changes(deleted=deleted, rows=folded.upserts, all_new=first_build)
    is_empty = deleted is None and folded.upserts.num_rows == 0
    return MirrorDelta(None if is_empty else changes, fold.events, fold.snapshot_rows)


def _sifted(source: SourceTable, records: Sequence[Record], past: Past, stored_of: Callable[[Fold], Stored]) -> Sifted:
    if past.is_clear:
        with suppress(*UNAPPLICABLE):
            fold = Fold(source)
            for record in records:
                fold.add(record)
            return Sifted(fold, fold.finish(stored_of(fold)), [], set())
    return sift(source, records, stored_of, past.known)


def _counted(source: SourceTable, records: Sequence[Record]) -> Fold:
    """The fold of records of which some may be parked, for what it counts."""
    fold = Fold(source)
    for record in records:
        with suppress(*UNAPPLICABLE):
            fold.add(record)
    return fold


def _stored_rows(name: str, fold: Fold, tables: Tables) -> Mapping[Key, Mapping[str, Any]]:
    if not (keys := fold.lookups()):
        return {}
    spec = tables.specs[name]
    columns = list(zip(*sorted(keys, key=repr), strict=True))
    fields = [spec.schema.field(column) for column in spec.key]
    wanted = pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)], schema=pa.schema(fields)
    )
    found = tables.warehouse.lookup(spec, tables.version(name), wanted, tuple(fold.looked_up))
    return {tuple(row[column] for column in spec.key): row for row in found.to_pylist()}

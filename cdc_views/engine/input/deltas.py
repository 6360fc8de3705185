"""Step 3: what the events of a cut change in each mirror.

Events are folded per key. A value that Postgres did not write to the WAL, because it is stored out of line and did not
change, is looked up in the mirror.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa

from cdc_views.capture.envelope import KeyValues
from cdc_views.capture.fold import Fold, Stored
from cdc_views.capture.sift import Sifted, sift
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.input.lost_rows import LostRows
from cdc_views.engine.input.mirror_errors import naming_table
from cdc_views.engine.input.quarantine import Quarantine
from cdc_views.engine.input.quarantine_entries import NAME as QUARANTINE
from cdc_views.engine.input.quarantine_entries import Entry
from cdc_views.engine.input.quarantine_step import Past, QuarantineCounts, QuarantineStep, past_of
from cdc_views.engine.intent import Intent
from cdc_views.engine.tables import Tables
from cdc_views.errors import EventError
from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.log.cuts.cut import CutLog
from cdc_views.log.kafka.record import Record
from cdc_views.source.catalog import SourceTable
from cdc_views.store.warehouse import Changes, WrittenRows


@dataclass(frozen=True)
class MirrorDelta:
    """The change of one mirror in one epoch; `changes` is None if nothing is left to commit.

    `events` and `snapshot_rows` are counts, `log_bytes` the size of its records in the cut; a mirror that is read in
    bulk is not counted.
    """

    changes: Changes | WrittenRows | None
    events: int
    snapshot_rows: int
    log_bytes: int


@dataclass(frozen=True)
class Deltas:
    """The changes of all mirrors and of the quarantine in one epoch, read from the log at `began` or later.

    `counts` describes the quarantine after the epoch.
    """

    mirrors: dict[str, MirrorDelta]
    step: QuarantineStep
    counts: QuarantineCounts
    began: datetime

    def require_none_refused(self) -> None:
        """Raise the error of the first event that cannot be applied."""
        for error, _ in self.step.refused:
            raise error


class Input:
    """Reads what the cut of an epoch changes.

    `bulk` reads tables that the driver does not hold, `lost_rows` checks whether the connector has skipped rows of the
    source. Each is None where it is not needed; so is `quarantine`, if no intent names a version of it.
    """

    def __init__(
        self,
        log: CutLog,
        tables: Tables,
        quarantine: Quarantine | None = None,
        bulk: BulkReader | None = None,
        lost_rows: LostRows | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._quarantine = quarantine
        self._log = log
        self._tables = tables
        self._bulk = bulk
        self._lost_rows = lost_rows
        self._clock = clock

    def deltas(self, intent: Intent) -> Deltas:
        """Read the records of the intent's cut and fold them.

        Events that cannot be applied are in `step`. Raises what the log raises, and MirrorFailed.
        """
        began, tables, cut = self._clock.now(), self._tables, intent.cut
        records: dict[str, list[Record]] = {name: [] for name in tables.sources}
        for record in self._log.records(cut):
            records[str(self._log.table_of(record.topic))].append(record)
        entries = self._entries(intent)
        step, deltas = QuarantineStep(intent.epoch), dict[str, MirrorDelta]()
        for name, found in records.items():
            if tables.sources[name].name in cut.stopped:
                continue
            past = self._past(name, entries, intent)
            if found or not past.is_clear:
                with naming_table(name):
                    deltas[name] = self._delta(name, found, past, step, intent)
        for name, source in tables.sources.items():
            if source.name in cut.bulk:
                deltas[name] = self._bulk_delta(name, intent)
        return Deltas(deltas, step, QuarantineCounts.of(self._entries_after(step, entries, intent)), began)

    def require_exact(self, intent: Intent, deltas: Deltas, commits: Mapping[str, int]) -> None:
        """Raise unless the committed mirrors hold everything that the cut gives them.

        Raises LogGap or OffsetCompacted if a part that Spark has read may have been compacted meanwhile, RowsLost if
        the connector has skipped rows, CutAgain if only a later cut can tell that.
        """
        log, cut = self._log, intent.cut
        if cut.bulk:
            log.require_repeatable(cut)
            log.require_read_in_time(deltas.began)
            if self._tables.committed_at is not None:
                log.require_gapless(self._tables.committed_at)
        if self._lost_rows is not None:
            self._lost_rows.require_none(log, self._tables, cut, commits, deltas.counts)

    def _entries(self, intent: Intent) -> list[Entry]:
        if intent.quarantine is None:
            return []
        assert self._quarantine is not None
        if intent.retry is not None:
            return self._quarantine.with_bytes(intent.quarantine)
        return self._quarantine.at(intent.quarantine)

    def _entries_after(self, step: QuarantineStep, entries: Sequence[Entry], intent: Intent) -> Iterable[Entry]:
        done = intent.done.get(QUARANTINE)
        if done is None:
            return step.after(entries)
        assert self._quarantine is not None
        return self._quarantine.at(done)

    def _past(self, name: str, entries: Sequence[Entry], intent: Intent) -> Past:
        of_table = [each for each in entries if each.table == name]
        if name in self._tables.shadows:
            # The shadow table was made of whole rows, and what is read again is checked again.
            return Past(of_table, is_forgotten=True)
        return past_of(self._tables.sources[name], of_table, intent.cut.start, intent.retry)

    def _delta(
        self, name: str, found: Sequence[Record], past: Past, step: QuarantineStep, intent: Intent
    ) -> MirrorDelta:
        source, records = self._tables.sources[name], [*past.records, *found]
        log_bytes = sum(record.log_bytes for record in found)
        if name in intent.done:
            fold = _counted(source, records)
            return MirrorDelta(None, fold.events, fold.snapshot_rows, log_bytes)
        sifted = _sifted(source, records, past, lambda fold: self._stored_rows(name, fold))
        step.add(source, past, sifted, intent.cut.end)
        fold, folded = sifted.fold, sifted.folded
        first_build = self._is_first_build(name)
        deleted = folded.deletes if folded.deletes.num_rows and not first_build else None
        changes = Changes(deleted=deleted, rows=folded.upserts, all_new=first_build)
        is_empty = deleted is None and folded.upserts.num_rows == 0
        return MirrorDelta(None if is_empty else changes, fold.events, fold.snapshot_rows, log_bytes)

    def _bulk_delta(self, name: str, intent: Intent) -> MirrorDelta:
        if name in intent.done:
            return MirrorDelta(None, 0, 0, 0)
        assert self._bulk is not None, "a log that has bulk comes with its reader"
        table, cut = self._tables.sources[name], intent.cut
        partitions = [each for each in cut.end if self._log.table_of(each.topic) == table.name]
        start, end = ({each: side[each] for each in partitions} for side in (cut.start, cut.end))
        floor = None if name in self._tables.shadows else self._tables.position
        changes = self._bulk.rows(table, start, end, all_new=self._is_first_build(name), floor=floor)
        return MirrorDelta(changes, 0, 0, 0)

    def _is_first_build(self, name: str) -> bool:
        """Whether the mirror is empty, because it was never published: no row of it can be deleted."""
        return not self._tables.is_published(name) and name not in self._tables.shadows

    def _stored_rows(self, name: str, fold: Fold) -> Mapping[KeyValues, Mapping[str, Any]]:
        """The stored rows from which the fold needs unchanged values, with the columns that it needs."""
        if not (keys := fold.lookups()):
            return {}
        tables, spec = self._tables, self._tables.specs[name]
        fields = [spec.schema.field(column) for column in spec.key]
        columns = zip(*sorted(keys, key=repr), strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, fields, strict=True)]
        wanted = pa.table(arrays, schema=pa.schema(fields))
        found = tables.warehouse.lookup(spec, tables.version(name), wanted, tuple(fold.looked_up))
        return {tuple(row[column] for column in spec.key): row for row in found.to_pylist()}


def _sifted(source: SourceTable, records: Sequence[Record], past: Past, stored_of: Callable[[Fold], Stored]) -> Sifted:
    if past.is_clear:
        with suppress(EventError):
            fold = Fold(source)
            for record in records:
                fold.add(record)
            return Sifted(fold, fold.finish(stored_of(fold)), [], set())
    return sift(source, records, stored_of, past.known)


def _counted(source: SourceTable, records: Sequence[Record]) -> Fold:
    """The fold of records of which some may be parked; only its counts are used."""
    fold = Fold(source)
    for record in records:
        with suppress(EventError):
            fold.add(record)
    return fold

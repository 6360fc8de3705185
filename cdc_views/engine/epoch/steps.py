"""One epoch: from a cut of the log to a published record in the control log.

A crash before step 6 leaves nothing that a reader can see; `recovery` finishes the same epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_views import faults
from cdc_views.base.names import TableName
from cdc_views.engine.epoch.abandon import abandon
from cdc_views.engine.epoch.mirrors import commit_mirrors
from cdc_views.engine.epoch.records import publish, publish_position, write_intent
from cdc_views.engine.input.bulk import BulkReader
from cdc_views.engine.input.deltas import Deltas, Input
from cdc_views.engine.input.lost_rows import LostRows
from cdc_views.engine.input.quarantine import Quarantine
from cdc_views.engine.input.quarantine_entries import Entry
from cdc_views.engine.intent import CutAgain, Intent, Retry, Swap
from cdc_views.engine.parallel import beside
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.errors import CdcViewsError, EventError
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.cuts.cut import Cut, CutLog
from cdc_views.metrics import Stages
from cdc_views.store.control import ControlLog, ControlRecord


class EpochWriter:
    """Writes one epoch after the other. It has everything that an epoch reads from and writes to."""

    def __init__(
        self,
        log: CutLog,
        tables: Tables,
        views: ViewRunner,
        control: ControlLog,
        *,
        parks: bool = False,
        bulk: BulkReader | None = None,
        lost_rows: LostRows | None = None,
    ) -> None:
        """`parks`: a bad event goes into the quarantine, and stops nothing. `bulk` and `lost_rows` as of Input."""
        self.log = log
        self.tables = tables
        self.views = views
        self.control = control
        self.quarantine = Quarantine(tables, parks=parks)
        self.input = Input(log, tables, self.quarantine, bulk, lost_rows, control.clock)

    def run(self, idle_interval_s: float) -> ControlRecord | None:
        """Run the next epoch and return its published record; None if nothing changed and nothing was due.

        If nothing changed, the position is published at most every `idle_interval_s` seconds.
        """
        self.views.renew_lost(self.tables)
        stages = Stages()
        cut = self.next_cut()  # 1. a position, and end offsets that hold all of it
        stages.done("cut")
        faults.point("epoch.after_cut")
        if not self._has_work(cut):
            return self._move_position(cut, idle_interval_s)
        intent = self._new_intent(cut)
        with beside(lambda: write_intent(self.control, intent, self.tables.generation)):  # 2. a crash repeats this
            deltas = self.input.deltas(intent)  # 3. the new row of every key that changed, and the deleted keys
        return self._finish(intent, deltas, stages)

    def _finish(self, intent: Intent, deltas: Deltas, stages: Stages) -> ControlRecord:
        """Steps 4 to 6, or the epoch again with another cut, if only that one can be applied."""
        if deltas.step.refused and not self.quarantine.parks:
            raise self._stopped_before(intent, deltas.step.refused)
        stages.done("deltas")
        try:
            commits = self._commit_mirrors(intent, deltas)  # 4. one version per changed mirror
            stages.done("mirrors")
            faults.point("epoch.after_mirrors")
            changed = self.tables.shadow_mirrors() | commits
            results = self.views.maintain(self.tables, changed, intent)  # 5. recompute, diff, commit; parents first
            stages.done("views")
            faults.point("epoch.before_publish")
            record = publish(self.control, self.tables, intent, commits, results, deltas, stages)  # 6. visible
        except CutAgain as again:
            abandon(self.tables, self.control, intent, intent.done, again.reason)
            return self.finish(self.intend(again.cut or self.next_cut(), swap=intent.swap, retry=intent.retry))
        faults.point("epoch.after_publish")
        self.tables.advance(record)
        return record

    def finish(self, intent: Intent) -> ControlRecord:
        """Steps 3 to 6 of an intent that is in the control log: what recovery repeats.

        Raises the error of an event that cannot be applied, after the epoch was abandoned, unless events are parked;
        RowsLost if the connector has skipped rows of the source.
        """
        stages = Stages()
        return self._finish(intent, self.input.deltas(intent), stages)

    def run_retry(self, retry: Retry) -> ControlRecord:
        """Run an epoch that applies parked events again. After a crash it is abandoned, not repeated."""
        return self.finish(self.intend(self.next_cut(), retry=retry))

    def run_swap(self, cut: Cut, swap: Swap) -> ControlRecord:
        """Run the epoch of a cut that publishes `tables.shadows`. After a crash it is abandoned, not repeated."""
        return self.finish(self.intend(cut, swap=swap))

    def next_cut(self) -> Cut:
        """Cut everything that no epoch holds yet. The driver reads tables that have events in quarantine."""
        tables = self.tables
        held = {TableName.parse(entry.table) for entry in self.quarantine.entries()}
        return self.log.cut(tables.offsets, tables.position, tables.committed_at, held, tables.stopped())

    def intend(
        self,
        cut: Cut,
        *,
        done: dict[str, int] | None = None,
        epoch: int | None = None,
        swap: Swap | None = None,
        retry: Retry | None = None,
        quarantine: int | None = None,
    ) -> Intent:
        """Record what the next attempt will do. Recovery keeps the `epoch`, and names what is `done`."""
        if swap is not None:
            cut = replace(cut, start={**cut.start, **swap.start})
        intent = self._new_intent(cut, epoch)
        start = intent.quarantine if quarantine is None else quarantine
        intent = replace(intent, done=done or {}, swap=swap, retry=retry, quarantine=start)
        write_intent(self.control, intent, self.tables.generation)
        return intent

    def _new_intent(self, cut: Cut, epoch: int | None = None) -> Intent:
        control, tables = self.control, self.tables
        return Intent(
            epoch or control.new_epoch(),
            control.new_attempt(),
            cut,
            tables.versions(),
            quarantine=self.quarantine.version(),
        )

    def _has_work(self, cut: Cut) -> bool:
        tables = self.tables
        if tables.published is None or cut.stopped.keys() != tables.stopped().keys():
            return True
        return self.log.has_changes(cut) or not self.views.are_built(tables)

    def _move_position(self, cut: Cut, idle_interval_s: float) -> ControlRecord | None:
        last = self.tables.published
        assert last is not None
        assert last.published_at is not None
        # Negative after the clock was set back.
        if 0 <= (self.control.clock.now() - last.published_at).total_seconds() < idle_interval_s:
            self.tables.skip(cut.end)
            return None
        record = publish_position(self.control, cut, self.tables)
        self.tables.advance(record)
        return record

    def _commit_mirrors(self, intent: Intent, deltas: Deltas) -> dict[str, int]:
        """Commit what is parked, then what is not; raises CutAgain where another cut is needed."""
        try:
            kept = self.quarantine.commit(deltas.step, intent.done, intent.stamp)
            faults.point("quarantine.after_commit")
            commits = commit_mirrors(self.tables, deltas.mirrors, intent)
        except EventError as error:
            if error.log_offset is None:
                raise
            raise self._unapplicable_in_bulk(intent, error, error.log_offset) from error
        self.input.require_exact(intent, deltas, commits)
        return commits | kept

    def _unapplicable_in_bulk(self, intent: Intent, error: EventError, at: LogOffset) -> Exception:
        """The error for an event that a bulk read cannot apply; CutAgain if the driver can park it."""
        table = self.log.table_of(at.topic)
        if self.quarantine.parks:
            return CutAgain(f"met {at}, which is parked", replace(intent.cut, bulk=intent.cut.bulk - {table}))
        record = self.log.record_at(at)
        if record is None:
            return error
        entry = Entry.of(str(table), record, error.problem, "stopped", intent.epoch)
        return self._stopped_before(intent, [(error, entry)])

    def _stopped_before(self, intent: Intent, refused: Sequence[tuple[CdcViewsError, Entry]]) -> CdcViewsError:
        """Abandon the epoch and keep the events in quarantine; returns the error of the first."""
        error, entry = refused[0]
        abandon(self.tables, self.control, intent, intent.done, f"stopped before {entry.place}")
        self.quarantine.keep_stopped(self.control, [entry for _, entry in refused])
        hint = '"cdc-views quarantine list" shows it; docs/bad_events.md explains the options'
        return error.restated(hint=f"{error.hint}; {hint}" if error.hint else hint)

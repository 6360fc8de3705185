"""A rebuild: shadow tables are built from the log, compared with the live tables, and swapped in.

Readers see no change before the swap, which is one record of the control log. The engine continues meanwhile. Where
none runs, this process does the swap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.base.captured import CapturedSet
from cdc_views.base.lsn import Lsn
from cdc_views.capture.unchanged import with_placeholder
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import facts_of, known_takeover, require_no_reset
from cdc_views.engine.capture.declared import Declared, declare
from cdc_views.engine.capture.generation import known_placeholder, require_same_tables
from cdc_views.engine.epoch.records import cut_of, read_offsets
from cdc_views.engine.epoch.swap import SwapRequest, find_swap, published_epoch
from cdc_views.engine.input.bulk import BulkReader, OnProgress
from cdc_views.engine.parallel import in_parallel
from cdc_views.engine.service.engine import open_log
from cdc_views.engine.service.holder import holder
from cdc_views.engine.spark.session import session_for
from cdc_views.engine.upkeep.rebuilds import Unfinished
from cdc_views.engine.views.view_tables import view_path
from cdc_views.errors import BadReplay, ForeignCommit, LogGap, NotRunning, RowsLost, UnresolvedToast, WarehouseLocked
from cdc_views.host.waiting import PATIENT_LIMIT_S, wait_until
from cdc_views.log.debezium.placeholder import read_placeholder
from cdc_views.log.kafka.record import Offsets
from cdc_views.log.log import Log
from cdc_views.replay import unfinished
from cdc_views.replay.diff_report import ShadowDifference, compare_tables
from cdc_views.replay.exchange import engine_here, exchange
from cdc_views.replay.origin import Origin
from cdc_views.replay.plan import RebuildPlan, plan_rebuild, start_offsets
from cdc_views.replay.shadow_tables import FIRST_ATTEMPT, Reached, ShadowTables, stamp_of, steps
from cdc_views.replay.snapshot_rows import snapshot_rows
from cdc_views.source.connection import connect
from cdc_views.source.reading.exported import exported_snapshot
from cdc_views.store.control import BUILDING, ControlRecord, ShadowTable, last_published, read_control
from cdc_views.store.reading import require_readable
from cdc_views.store.storage import touching
from cdc_views.store.warehouse import Warehouse

Note = Callable[[str], None]

# A rebuild that is fewer offsets behind the published epoch has caught up: the swap reads the rest.
FEW_OFFSETS: Final = 10_000
# The number of snapshots that are tried if an event lacks a value that the snapshot no longer has.
TRIES: Final = 3
_POLL_S: Final = 0.2


@dataclass(frozen=True)
class Outcome:
    """The result of a rebuild.

    `differences` are as of the epoch `compared_at`; both are None if nothing could be compared. `swapped` is the record
    that published the shadow tables; None without a swap.
    """

    id: str
    compared_at: ControlRecord | None
    differences: list[ShadowDifference] | None
    swapped: ControlRecord | None

    @property
    def is_equal(self) -> bool:
        """Whether the live tables were compared and are equal to the shadow tables."""
        return self.differences is not None and all(difference.is_equal for difference in self.differences)


class _NoMarker:
    """Stands for the marker of a log that is only read."""

    writer = ""

    def touch(self) -> int:
        raise AssertionError("a rebuild makes no cut")

    def captured(self) -> CapturedSet:
        raise AssertionError("a rebuild makes no cut")


def rebuild(
    settings: Settings,
    jars: Sequence[Path],
    names: Iterable[str] | None,
    origin: Origin,
    *,
    swap: bool,
    on_progress: OnProgress,
    note: Note,
) -> Outcome:
    """Rebuild the named tables and views (None: all), compare them with the live ones, and swap them in if `swap`.

    `jars` are Delta's; `note` gets a line about each step. Raises NotSelfContained, BadReplay, UnknownView, LogGap,
    TableUnavailable, UnresolvedToast, RebuildRunning, WarehouseUnusable, and as a swap does.
    """
    with ExitStack() as resources:
        source = resources.enter_context(connect(settings.source.dsn.get_secret_value()))
        declared = _with_placeholder(settings, declare(settings, source, read_control(settings.warehouse)))
        require_no_reset(settings.warehouse)
        base = last_published(settings.warehouse)
        plan = plan_rebuild(declared, names, origin)
        _require_declared_as_published(plan, base)
        log = resources.enter_context(closing(_open_log(settings, declared)))
        # Checked before anything is created, so that a refused rebuild leaves nothing behind.
        starts = start_offsets(plan, log, read_control(settings.warehouse))
        _require_readable(plan, settings.warehouse)
        wanted = unfinished.WantedRebuild(plan.names, str(origin), base.generation or "", swap, origin.epoch)
        with touching(settings.warehouse):
            ours, is_continued = resources.enter_context(unfinished.claimed(settings.warehouse, wanted, note))
        if is_continued:
            note(f"continuing rebuild {ours.id}")
        faults.point("rebuild.after_plan")
        spark = resources.enter_context(session_for(settings.engine, jars))
        work = _Rebuild(settings, plan, log, starts, spark, ours, on_progress, note)
        with touching(settings.warehouse):
            return work.run(swap)


class _Rebuild:
    """One rebuild in progress."""

    def __init__(
        self,
        settings: Settings,
        plan: RebuildPlan,
        log: Log,
        starts: Offsets,
        spark: SparkSession,
        ours: Unfinished,
        on_progress: OnProgress,
        note: Note,
    ) -> None:
        self._settings = settings
        self._root = settings.warehouse
        self._plan = plan
        self._log = log
        self._starts = starts
        self._spark = spark
        self._ours = ours
        self._bulk = BulkReader(spark, settings.log, on_progress)
        self._note = note

    def run(self, swap: bool) -> Outcome:
        """Run the steps. Each finds what a killed rebuild has done of it."""
        if (done := find_swap(read_control(self._root), self._ours.id)) is not None:
            return self._finished(None, None, done)
        self._shadows = ShadowTables(
            self._spark,
            Warehouse(
                self._root,
                self._spark,
                self._settings.store,
                is_writer=False,
                commits_by_spark=self._settings.engine.parallel_commits,
            ),
            self._ours.generation,
            self._plan,
            self._ours.id,
            self._bulk,
        )
        self._build_mirrors()  # 1. each from its origin, up to the epoch that was published when the rebuild began
        faults.point("rebuild.after_mirrors")
        at = self._catch_up()  # 2. all of them up to one published epoch
        faults.point("rebuild.after_catch_up")
        differences = None
        if at is not None:
            self._shadows.compute_views(at)  # 3. over the shadow mirrors, not over the live ones
            faults.point("rebuild.after_views")
            differences = compare_tables(self._root, self._shadows.tables, at)  # 4. as of that epoch
            faults.point("rebuild.after_comparison")
        if not swap:
            unfinished.mark_compared(self._root, self._ours)
            return Outcome(self._ours.id, at, differences, None)
        record = exchange(self._settings, lambda: self._spark, self._request())  # 5. one record
        return self._finished(at, differences, record)

    def _finished(
        self, at: ControlRecord | None, differences: list[ShadowDifference] | None, record: ControlRecord
    ) -> Outcome:
        unfinished.finish(self._root, self._ours.id)
        return Outcome(self._ours.id, at, differences, record)

    def _build_mirrors(self) -> None:
        reached = self._reached(self._published())
        missing = [name for name in self._shadows.tables.sources if not self._can_go_on(reached.get(name))]
        if not missing:
            return
        base = last_published(self._root)
        kind = self._plan.origin.kind
        if kind == "snapshot":
            self._fill_from_snapshot(missing)
        elif kind == "earliest":
            began = datetime.now(UTC)
            in_parallel(lambda name: self._fill_from_log(name, base), missing, self._settings.engine.parallel_commits)
            self._log.require_read_in_time(began)
        else:
            assert self._plan.origin.epoch is not None
            epoch = published_epoch(read_control(self._root), self._plan.origin.epoch)
            for name in missing:
                self._fill_from_epoch(name, epoch, base)

    def _can_go_on(self, reached: Reached | None) -> bool:
        """Whether the mirror of a killed rebuild can catch up from what it holds."""
        if reached is None:
            return False
        assert reached.epoch.committed_at is not None
        try:
            self._log.require_gapless(reached.epoch.committed_at)
        except LogGap:
            return False
        return True

    def _fill_from_log(self, name: str, to: ControlRecord) -> None:
        table = self._shadows.tables.sources[name]
        partitions = self._log.partitions_of([table.name])
        starts = {each: self._starts[each] for each in partitions}
        rows = self._bulk.rows(table, starts, {each: to.offsets[str(each)] for each in partitions})
        self._shadows.fill(name, rows, stamp_of(to))
        faults.point("rebuild.after_first_mirror")

    def _fill_from_epoch(self, name: str, epoch: ControlRecord, at: ControlRecord) -> None:
        table = epoch.tables[name]
        rows = self._shadows.tables.warehouse.frame(table.path, table.version)
        if self._plan.origin.kind == "epoch":
            self._shadows.fill(name, rows, stamp_of(epoch))
        else:
            # With another attempt than the epoch's, so that the mirror does not count as replayed up to it.
            self._shadows.fill(name, rows, replace(stamp_of(epoch), attempt=FIRST_ATTEMPT))
            self._shadows.catch_up(self._log, name, self._starts, epoch, at)
        faults.point("rebuild.after_first_mirror")

    def _fill_from_snapshot(self, names: Sequence[str]) -> None:
        base = last_published(self._root)  # before the snapshot, so that changes in between are read again
        self._note("waiting for the open transactions in Postgres, then reading the tables")
        with exported_snapshot(self._settings.source.dsn.get_secret_value()) as snapshot:
            for name in names:
                folder = self._root / self._shadows.tables.specs[name].path
                with snapshot_rows(snapshot, self._spark, self._shadows.tables.sources[name], folder) as rows:
                    self._shadows.fill(name, rows, stamp_of(base, snapshot.position))
                self._note(f"{name}: read from Postgres at {snapshot.position}")
                faults.point("rebuild.after_first_mirror")

    def _catch_up(self) -> ControlRecord | None:
        """Bring all mirrors to one published epoch. Returns None if there is no epoch at which to compare them."""
        for is_last in (number == TRIES for number in range(1, TRIES + 1)):
            try:
                return self._caught_up()
            except UnresolvedToast:
                # Between the epoch and the snapshot a row was deleted or changed its key. An unchanged value that an
                # event in between omits is then in neither. Another snapshot is unlikely to meet such an event again.
                if self._plan.origin.kind != "snapshot" or is_last:
                    raise
                self._note("a value from before the snapshot cannot be resolved; taking another snapshot")
                self._fill_from_snapshot(list(self._shadows.tables.sources))
        raise AssertionError("unreachable")

    def _caught_up(self) -> ControlRecord | None:
        epochs = self._published()
        reached = self._reached(epochs)
        at = self._target(max((each.position for each in reached.values()), default=Lsn(0)))
        while at is not None:
            epochs = self._published()
            for name, each in reached.items():
                self._bring(name, each, at, epochs)
            newest = last_published(self._root)
            if sum(newest.offsets.values()) - sum(at.offsets.values()) < FEW_OFFSETS:
                self._require_exact(at)
                break
            at, reached = newest, self._reached(epochs)
        return at

    def _bring(self, name: str, reached: Reached, at: ControlRecord, epochs: Mapping[int, ControlRecord]) -> None:
        if reached.epoch.epoch == at.epoch:
            return
        assert reached.epoch.committed_at is not None
        self._log.require_gapless(reached.epoch.committed_at)
        since = reached.epoch
        for to in steps(list(epochs.values()), since, at):
            self._shadows.catch_up(self._log, name, read_offsets(since), to, at)
            since = to

    def _reached(self, epochs: Mapping[int, ControlRecord]) -> dict[str, Reached]:
        found = {name: self._shadows.found(name, epochs) for name in self._shadows.tables.sources}
        return {name: reached for name, reached in found.items() if reached is not None}

    def _published(self) -> dict[int, ControlRecord]:
        return {record.epoch: record for record in read_control(self._root) if record.published_at is not None}

    def _target(self, position: Lsn) -> ControlRecord | None:
        """The last published epoch once it holds this position: waits for the engine, or runs one where none runs."""
        while not (newest := last_published(self._root)).holds(position):
            if holder(self._root) is not None:
                self._wait_for_engine(position)
                continue
            self._note("no engine runs: publishing up to the snapshot in its place")
            try:
                with engine_here(self._settings, self._spark) as engine:
                    engine.run(until=position)
            except WarehouseLocked:
                continue
            except (ForeignCommit, RowsLost) as error:
                self._note(f"nothing is compared: {error.message}")
                return None
        return newest

    def _wait_for_engine(self, position: Lsn) -> None:
        """Wait until the running engine has published up to a position, or has ended. Raises NotRunning."""

        def is_over() -> bool:
            return holder(self._root) is None or last_published(self._root).holds(position)

        if not wait_until(is_over, PATIENT_LIMIT_S, _POLL_S):
            raise NotRunning(
                f"the running engine has not published up to {position} for {PATIENT_LIMIT_S / 3600:.0f} hours",
                hint='see "cdc-views status" and what the engine has logged',
            )

    def _require_exact(self, at: ControlRecord) -> None:
        """Raise LogGap or OffsetCompacted if a part of the epoch was compacted away before it was read."""
        partitions = self._log.partitions_of([source.name for source in self._plan.sources])
        ends = {each: at.offsets[str(each)] for each in partitions}
        self._log.require_repeatable(cut_of(at, ends, ends))

    def _request(self) -> SwapRequest:
        reached = self._reached(self._published())
        shadows = {}
        for name, spec in self._shadows.tables.specs.items():
            mirror = reached.get(name)
            # A view is recomputed and compared with its stored rows, so the epoch of these rows does not matter.
            epoch, position = (mirror.epoch.epoch, str(mirror.position)) if mirror is not None else (0, None)
            shadows[name] = ShadowTable(spec.path, self._shadows.newest_version(name), epoch, position)
        return SwapRequest(self._ours.id, "swap", shadows)


def _with_placeholder(settings: Settings, declared: Declared) -> Declared:
    known = known_placeholder(known_takeover(read_control(settings.warehouse)))
    return replace(declared, sources=with_placeholder(declared.sources, read_placeholder(settings.log, known)))


def _open_log(settings: Settings, declared: Declared) -> Log:
    known = known_takeover(read_control(settings.warehouse))
    assert known is not None
    require_same_tables(facts_of(known), declared.sources)
    return open_log(settings, declared, _NoMarker(), known)


def _require_readable(plan: RebuildPlan, root: Path) -> None:
    """Raise TableUnavailable if a mirror of the epoch that a rebuild starts from cannot be read."""
    if plan.origin.epoch is not None:
        epoch = published_epoch(read_control(root), plan.origin.epoch)
        for source in plan.sources:
            table = epoch.tables[str(source.name)]
            require_readable(root, table.path, table.version)


def _require_declared_as_published(plan: RebuildPlan, base: ControlRecord) -> None:
    """Raise BadReplay if a view was edited since the engine started: the engine would not know its new table."""
    for view in plan.views:
        name = view.definition.name
        published = base.tables.get(name)
        if published is None or published.status == BUILDING or not published.path.startswith(view_path(view)):
            raise BadReplay(
                f'view "{name}" is not published as its file defines it now',
                hint="run the engine with the present view files first",
            )

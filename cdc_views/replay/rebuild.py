"""A rebuild: tables made anew from the log beside the live ones, compared with them, and put in their place.

Nothing that readers see changes before the swap, which is one record of the control log. The engine
goes on meanwhile; where none runs, the swap is done in its place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.config import Settings
from cdc_views.engine.declared import Declared, declare
from cdc_views.engine.engine import open_log
from cdc_views.engine.epoch import cut_of, read_offsets
from cdc_views.engine.generation import require_same_tables
from cdc_views.engine.parallel import in_parallel
from cdc_views.engine.swap import Standby, SwapRequest, find_swap, published_epoch
from cdc_views.engine.view_tables import view_path
from cdc_views.errors import BadReplay, ForeignCommit, NotRunning
from cdc_views.log.log import Log
from cdc_views.lsn import Lsn
from cdc_views.replay import unfinished
from cdc_views.replay.bulk import OnProgress, pieces_of, read_rows, watched
from cdc_views.replay.compare import TableDifference, compare_tables
from cdc_views.replay.exchange import exchange, in_place_of_the_engine
from cdc_views.replay.origin import Origin
from cdc_views.replay.plan import RebuildPlan, plan_rebuild, start_offsets
from cdc_views.replay.shadow import Held, Shadows, stamp_of, steps
from cdc_views.replay.snapshot import snapshot_rows
from cdc_views.source.connection import connect
from cdc_views.source.exported import exported_snapshot
from cdc_views.store.control import ControlRecord, last_published, read_control
from cdc_views.store.lock import holder
from cdc_views.store.spark import start_session
from cdc_views.store.warehouse import Warehouse

Note = Callable[[str], None]

# Behind the published epoch by fewer than this, a rebuild has caught up: the swap reads the rest.
FEW_OFFSETS: Final = 10_000
# Of the first takeover of a warehouse: known, and of no published epoch.
FIRST_ATTEMPT: Final = 1
_POLL_S: Final = 0.2


@dataclass(frozen=True)
class Outcome:
    """What a rebuild has found and done.

    `differences` are as of `compared_at`; both are None where nothing could be compared. `swapped` is the record that
    published the new tables.
    """

    id: str
    compared_at: ControlRecord | None
    differences: list[TableDifference] | None
    swapped: ControlRecord | None

    @property
    def is_equal(self) -> bool:
        """Whether the live tables were equal to those made anew."""
        return self.differences is not None and all(difference.is_equal for difference in self.differences)


class _NoMarker:
    """This side of the log only reads it."""

    writer = ""

    def touch(self) -> int:
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
    """Make the named tables and views anew (None: all), compare them, and swap them in if asked to.

    Raises NotSelfContained, BadReplay, UnknownView, LogGap, UnresolvedToast, RebuildRunning, and what a swap raises.
    """
    with ExitStack() as resources:
        source = resources.enter_context(connect(settings.source.dsn.get_secret_value()))
        declared = declare(settings, source)
        base = last_published(settings.warehouse)
        plan = plan_rebuild(declared, names, origin)
        _require_declared_as_published(plan, base)
        log = resources.enter_context(closing(_open_log(settings, declared)))
        start_offsets(plan, log, read_control(settings.warehouse))  # what cannot be replayed leaves nothing behind
        claim = unfinished.claimed(settings.warehouse, plan.names, str(origin), base.generation or "")
        ours, is_continued = resources.enter_context(claim)
        if is_continued:
            note(f"going on with rebuild {ours.id}")
        faults.point("rebuild.after_plan")
        spark = start_session(settings.engine, jars)
        resources.callback(spark.stop)
        work = _Rebuild(settings, jars, plan, log, spark, ours, on_progress, note)
        return work.run(swap)


class _Rebuild:
    """One rebuild at work."""

    def __init__(
        self,
        settings: Settings,
        jars: Sequence[Path],
        plan: RebuildPlan,
        log: Log,
        spark: SparkSession,
        ours: unfinished.Unfinished,
        on_progress: OnProgress,
        note: Note,
    ) -> None:
        self._settings = settings
        self._jars = jars
        self._root = settings.warehouse
        self._plan = plan
        self._log = log
        self._spark = spark
        self._ours = ours
        self._on_progress = on_progress
        self._note = note

    def run(self, swap: bool) -> Outcome:
        """The steps, each of which finds what a killed rebuild has done of it."""
        records = read_control(self._root)
        if (done := find_swap(records, self._ours.id)) is not None:
            return self._finished(None, None, done)
        self._shadows = Shadows(
            self._spark,
            Warehouse(self._root, self._spark, is_writer=False),
            self._ours.generation,
            self._plan,
            self._ours.id,
        )
        self._starts = start_offsets(self._plan, self._log, records)
        self._build_mirrors()  # 1. each from its origin, up to the epoch that was published when the rebuild began
        faults.point("rebuild.after_mirrors")
        at = self._catch_up()  # 2. all of them up to one published epoch
        faults.point("rebuild.after_catch_up")
        differences = None
        if at is not None:
            self._shadows.compute_views(at)  # 3. over the mirrors made anew, not over the live ones
            faults.point("rebuild.after_views")
            differences = compare_tables(self._root, self._shadows.tables, at)  # 4. as of that epoch
            faults.point("rebuild.after_comparison")
        if not swap:
            return Outcome(self._ours.id, at, differences, None)
        record = exchange(self._settings, self._jars, self._spark, self._request())  # 5. one record
        return self._finished(at, differences, record)

    def _finished(
        self, at: ControlRecord | None, differences: list[TableDifference] | None, record: ControlRecord
    ) -> Outcome:
        unfinished.finish(self._root, self._ours.id)
        return Outcome(self._ours.id, at, differences, record)

    def _build_mirrors(self) -> None:
        held = self._held()
        missing = [name for name in self._shadows.tables.sources if name not in held]
        if not missing:
            return
        base = last_published(self._root)
        kind = self._plan.origin.kind
        if kind == "snapshot":
            self._fill_from_snapshot(missing, base)
        elif kind == "earliest":
            began = datetime.now(UTC)
            in_parallel(lambda name: self._fill_from_log(name, base), missing, self._settings.engine.parallel_commits)
            self._log.require_gapless(began)
        else:
            assert self._plan.origin.epoch is not None
            epoch = published_epoch(read_control(self._root), self._plan.origin.epoch)
            for name in missing:
                self._fill_from_epoch(name, epoch, base)

    def _fill_from_log(self, name: str, to: ControlRecord) -> None:
        table = self._shadows.tables.sources[name]
        partitions = self._log.partitions_of([table.name])
        ends = {each: to.offsets[str(each)] for each in partitions}
        pieces = pieces_of({each: self._starts[each] for each in partitions}, ends)
        rows = read_rows(self._spark, self._settings.log, table, pieces)
        with watched(self._spark, name, pieces, self._on_progress):
            self._shadows.fill(name, rows, stamp_of(to))
        faults.point("rebuild.after_first_mirror")

    def _fill_from_epoch(self, name: str, epoch: ControlRecord, at: ControlRecord) -> None:
        table = epoch.tables[name]
        rows = self._shadows.tables.warehouse.frame(table.path, table.version)
        if self._plan.origin.kind == "epoch":
            self._shadows.fill(name, rows, stamp_of(epoch))
        else:
            # Under another attempt than the epoch's, so that it does not pass for what has been replayed.
            self._shadows.fill(name, rows, replace(stamp_of(epoch), attempt=FIRST_ATTEMPT))
            self._shadows.catch_up(self._log, name, self._starts, epoch, at)
        faults.point("rebuild.after_first_mirror")

    def _fill_from_snapshot(self, names: Sequence[str], base: ControlRecord) -> None:
        with exported_snapshot(self._settings.source.dsn.get_secret_value()) as snapshot:
            for name in names:
                with snapshot_rows(snapshot, self._spark, self._shadows.tables.sources[name]) as rows:
                    self._shadows.fill(name, rows, stamp_of(base, snapshot.position))
                self._note(f"{name}: read from Postgres at {snapshot.position}")
                faults.point("rebuild.after_first_mirror")

    def _catch_up(self) -> ControlRecord | None:
        """Bring all mirrors to one published epoch; None if there is none that they can be compared at."""
        held = self._held()
        at = self._target(max(each.position for each in held.values()))
        if at is None:
            return None
        while True:
            for name, each in held.items():
                self._bring(name, each, at)
            newest = last_published(self._root)
            far = sum(newest.offsets.values()) - sum(at.offsets.values())
            if far < FEW_OFFSETS:
                break
            at, held = newest, self._held()
        self._require_exact(at)
        return at

    def _bring(self, name: str, held: Held, at: ControlRecord) -> None:
        if held.epoch.epoch == at.epoch:
            return
        assert held.epoch.committed_at is not None
        self._log.require_gapless(held.epoch.committed_at)
        since = held.epoch
        for to in steps(list(self._published().values()), since, at):
            self._shadows.catch_up(self._log, name, read_offsets(since), to, at)
            since = to

    def _held(self) -> Mapping[str, Held]:
        epochs = self._published()
        found = {name: self._shadows.found(name, epochs) for name in self._shadows.tables.sources}
        return {name: held for name, held in found.items() if held is not None}

    def _published(self) -> dict[int, ControlRecord]:
        return {record.epoch: record for record in read_control(self._root) if record.published_at is not None}

    def _target(self, position: Lsn) -> ControlRecord | None:
        """The last published epoch, if it is not before this position; else one that is waited for, or made."""
        newest = last_published(self._root)
        if holds(newest, position):
            return newest
        if holder(self._root) is None:
            self._note("no engine runs: publishing up to the snapshot in its place")
            try:
                with in_place_of_the_engine(self._settings, self._jars, self._spark) as engine:
                    engine.run(until=position)
            except ForeignCommit as error:
                self._note(f"nothing is compared: {error.message}")
                return None
        return wait_published(self._settings, position)

    def _require_exact(self, at: ControlRecord) -> None:
        """Nothing of the epoch was compacted away before it was read. Raises LogGap, OffsetCompacted."""
        partitions = self._log.partitions_of([source.name for source in self._plan.sources])
        ends = {each: at.offsets[str(each)] for each in partitions}
        self._log.require_repeatable(cut_of(at, ends, ends))

    def _request(self) -> SwapRequest:
        epochs = {name: held.epoch.epoch for name, held in self._held().items()}
        standbys = {
            # A view is compared with its query: from which epoch its rows are does not matter.
            name: Standby(spec.path, self._shadows.standing(name), epochs.get(name, 0))
            for name, spec in self._shadows.tables.specs.items()
        }
        return SwapRequest(self._ours.id, "swap", standbys)


def holds(published: ControlRecord, position: Lsn) -> bool:
    """Whether an epoch holds everything committed before `position`."""
    return published.complete_to is not None and published.complete_to >= position


def wait_published(settings: Settings, position: Lsn) -> ControlRecord:
    """Wait for an epoch that holds everything committed before `position`. Raises NotRunning."""
    deadline = time.monotonic() + settings.log.marker_timeout_s
    while not holds(newest := last_published(settings.warehouse), position):
        if time.monotonic() > deadline or holder(settings.warehouse) is None:
            raise NotRunning(
                f"epoch {newest.epoch} holds the source up to {newest.complete_to}, wanted {position}",
                hint="the engine has ended, or publishes nothing: see what it has printed",
            )
        time.sleep(_POLL_S)
    return newest


def _open_log(settings: Settings, declared: Declared) -> Log:
    known = next(record for record in reversed(read_control(settings.warehouse)) if record.kind == "takeover")
    require_same_tables(known.detail["source"], declared.sources)
    return open_log(settings, declared, _NoMarker(), known)


def _require_declared_as_published(plan: RebuildPlan, base: ControlRecord) -> None:
    """The engine would not know the table of a view that was edited since it started. Raises BadReplay."""
    for view in plan.views:
        name = view.definition.name
        published = base.tables.get(name)
        if published is None or not published.path.startswith(view_path(view)):
            raise BadReplay(
                f'view "{name}" is not published as its file defines it now',
                hint="run the engine with the present view files first",
            )

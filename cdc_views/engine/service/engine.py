"""The engine: one long-lived PySpark driver that takes the warehouse over and publishes epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Self
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.capture.types import prints_in_zone
from cdc_views.capture.unchanged import with_placeholder
from cdc_views.config import Settings
from cdc_views.engine.building import Beside
from cdc_views.engine.capture.broken import remembering, require_unbroken
from cdc_views.engine.capture.captures import Reset, facts_of, known_takeover, reset_of
from cdc_views.engine.capture.declared import Declared, declare, texts_of
from cdc_views.engine.capture.generation import (
    generation_facts,
    generation_name,
    known_placeholder,
    require_not_behind,
    require_same_source,
    require_same_tables,
)
from cdc_views.engine.capture.mirrored import tables_detail
from cdc_views.engine.epoch.records import cut_of, read_offsets
from cdc_views.engine.epoch.recovery import recover, take_over
from cdc_views.engine.epoch.steps import EpochWriter
from cdc_views.engine.epoch.swap import SwapRequest, find_swap, plan_swap, publish_swap, require_present
from cdc_views.engine.input.bulk import BulkReader, OnProgress, TakeAhead, is_looked_up, nothing_ahead
from cdc_views.engine.input.lost_rows import LostRows
from cdc_views.engine.intent import Retry
from cdc_views.engine.service.lock import WarehouseLock
from cdc_views.engine.service.requests import QuarantineRequest, Request, Requests, refusing
from cdc_views.engine.tables import SHADOW_SEPARATOR, FindPath, Tables, as_published
from cdc_views.engine.upkeep.maintenance import Upkeep
from cdc_views.engine.views.declare import (
    declare_internal_views,
    declare_search_tables,
    declare_views,
    mirrored_text_columns,
)
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.errors import BadReplay, EventError, UnknownEvent
from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.log.cuts.markers import MarkerWriter
from cdc_views.log.debezium.health import WatchedSlot
from cdc_views.log.debezium.placeholder import read_placeholder
from cdc_views.log.log import Log
from cdc_views.source.checks.snapshot_dates import require_dates_of_snapshot
from cdc_views.source.connection import Connection, connect, require_primary
from cdc_views.source.reading.position import wal_end
from cdc_views.source.service.marker import Marker
from cdc_views.source.slot_watch import SlotWatch
from cdc_views.store.control import ControlLog, ControlRecord, TakeoverDetail, read_control
from cdc_views.store.storage import touching
from cdc_views.store.warehouse import Warehouse
from cdc_views.views.definition import ViewDefinition

IDLE_WAIT_S: Final = 0.5  # between two markers of a database in which nothing happens

OnEpoch = Callable[[ControlRecord], None]


@dataclass(frozen=True)
class _KnownCapture:
    """What the control log says of the current capture.

    `takeover` is that of the last engine that read it, `reset` the reset that began it, `published` its last published
    epoch; each is None if there is none.
    """

    takeover: ControlRecord | None
    reset: Reset | None
    published: ControlRecord | None

    @classmethod
    def of(cls, control: ControlLog) -> _KnownCapture:
        takeover = known_takeover(control.records)
        published = None if takeover is None else control.published_in(takeover.generation)
        return cls(takeover, reset_of(control.records), published)

    @property
    def facts(self) -> Mapping[str, Any] | None:
        """The facts of the source that its mirrors are made from."""
        if self.takeover is not None:
            return facts_of(self.takeover)
        return None if self.reset is None else self.reset.facts


class Engine:
    """Use as a context manager: entering takes the warehouse over, leaving releases it."""

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession,
        clock: Clock = SYSTEM_CLOCK,
        *,
        request: SwapRequest | None = None,
        on_progress: OnProgress = lambda progress: None,
        take_ahead: TakeAhead = nothing_ahead,
        definitions: Sequence[ViewDefinition] | None = None,
    ) -> None:
        """The caller stops `spark`. `on_progress` is called while a first epoch is read.

        `definitions` are the views to run; None: those of the view files.

        `take_ahead` gives what was read of the tables before there was a cut. With `request`, the engine does only
        that: the tables to be replaced are not checked, whatever others may have written to them.
        """
        self._settings = settings
        self._clock = clock
        self._spark = spark
        self._request = request
        self._on_progress = on_progress
        self._take_ahead = take_ahead
        self._definitions = definitions
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._resources.close()
            raise
        return self

    @contextmanager
    def _writing(self) -> Iterator[None]:
        warehouse = self._settings.warehouse
        with remembering(warehouse), self._control.writing(), touching(warehouse):
            yield

    def __exit__(self, *error: object) -> None:
        self._resources.close()

    def _start(self) -> None:
        settings = self._settings
        lock = WarehouseLock(settings.warehouse, settings.engine.lock_timeout_s)
        lock.acquire()
        self._resources.callback(lock.release)
        with touching(settings.warehouse):
            require_unbroken(settings.warehouse)
        source = self._resources.enter_context(connect(settings.source.dsn.get_secret_value()))
        # Not as files of the warehouse: the view files.
        declared = declare(settings, source, read_control(settings.warehouse), self._definitions)
        with touching(settings.warehouse):
            self._open(lock, source, declared)

    def _open(self, lock: WarehouseLock, source: Connection, declared: Declared) -> None:
        settings, name = self._settings, uuid4().hex
        self._control = ControlLog.open(settings.warehouse, name, self._clock)
        known = _KnownCapture.of(self._control)
        marker = Marker(source, settings.source, name)
        self._require_known_source(source, declared, known, marker)
        takeover = known.takeover
        placeholder = read_placeholder(settings.log, known_placeholder(takeover))
        declared = replace(declared, sources=with_placeholder(declared.sources, placeholder))
        log = self._open_log(declared, marker, known)
        facts = generation_facts(declared.identity, settings.source.slot, log.topics(), declared.sources)
        lock.hold_in_jvm(self._spark)
        generation = (takeover.generation if takeover else None) or generation_name(facts)
        self._writer = self._open_writer(log, source, declared, known, generation)
        self._beside = Beside(self._spark, self._tables, self._writer.views)
        self._resources.callback(self._beside.stop)
        self._requests = Requests(settings.warehouse)
        self._maintenance = Upkeep(settings.warehouse, self._tables, self._control, settings.upkeep)
        detail = TakeoverDetail(
            source=facts,
            placeholder=placeholder,
            views=texts_of(declared.definitions),
            strategies=self._writer.views.strategies(self._tables),
            kept=self._writer.views.kept(self._tables),
            tables=tables_detail(declared.sources),
            capture=1 if known.reset is None else known.reset.capture.number,
        )
        self._take_over(log, source, declared, detail)

    def _require_known_source(
        self, source: Connection, declared: Declared, known: _KnownCapture, marker: Marker
    ) -> None:
        """Raise unless the source is the one that the mirrors are made from, and has all that was published."""
        require_primary(source)
        if known.facts is not None:
            require_same_source(known.facts, declared.identity, self._settings.source.slot)
        require_not_behind(wal_end(source), marker.last(), known.published)
        require_same_tables(known.facts, declared.sources)

    def _open_log(self, declared: Declared, marker: Marker, known: _KnownCapture) -> Log:
        settings = self._settings
        slot = SlotWatch(settings.source.dsn.get_secret_value(), settings.source.slot, declared.identity)
        self._resources.enter_context(closing(slot))
        log = open_log(settings, declared, marker, known.takeover, self._clock, slot, known.published)
        return self._resources.enter_context(closing(log))

    def _open_writer(
        self, log: Log, source: Connection, declared: Declared, known: _KnownCapture, generation: str
    ) -> EpochWriter:
        """Create the tables that do not exist yet, and wire everything that an epoch needs."""
        settings = self._settings
        commits = settings.engine.parallel_commits
        warehouse = Warehouse(settings.warehouse, self._spark, settings.store, commits_by_spark=commits)
        if self._request is not None:
            require_present(warehouse, self._request)
        find_path = self._find_path(known.published, "" if known.reset is None else f"{SHADOW_SEPARATOR}{generation}")
        tables = Tables(warehouse, generation, declared.sources, commits, find_path)
        views = [view for level in declared.levels for view in level]
        texts = mirrored_text_columns(tables)
        failures = declare_views(self._spark, tables, views, declared.running, declared.refused, texts)
        levels = declare_internal_views(self._spark, tables, declared.levels, failures, texts)
        search = declare_search_tables(tables, views, failures)
        return EpochWriter(
            log,
            tables,
            ViewRunner(self._spark, [*levels, *search], failures),
            self._control,
            parks=settings.log.on_bad_event == "park",
            bulk=BulkReader(self._spark, settings.log, self._on_progress, take_ahead=self._take_ahead),
            lost_rows=LostRows(source),
        )

    def _take_over(self, log: Log, source: Connection, declared: Declared, detail: TakeoverDetail) -> None:
        with self._control.writing():
            self._takeover = take_over(self._control, self._tables, detail.json_fields())
        if self._request is not None:
            # Before an open intent is recovered: its tables are those to be replaced.
            self._tables.shadows = frozenset(self._request.tables)
        self._requests.forget()
        if self._tables.published is None:
            require_dates_of_snapshot(source, declared.sources)
            self._writer.quarantine.forget_others(self._control, log.topics())
            self._tables.skip(log.begin())

    @property
    def _tables(self) -> Tables:
        return self._writer.tables

    def run(self, *, once: bool = False, until: Lsn | None = None, on_epoch: OnEpoch = lambda record: None) -> None:
        """Publish epochs for ever, or one (`once`), or until one holds everything committed before `until`.

        If for ever, new views over large tables are built beside the epochs. Otherwise the next epoch has all views.
        An epoch does not hold everything of a stopped table (`require_none_stopped`). Raises Fenced once another engine
        has taken over, whatever else fails first; DiskFull; RequestFailed if the engine must be restarted to go on.
        """
        with self._writing():
            self._run(once, until, on_epoch)

    def require_none_stopped(self) -> None:
        """Raise the error of the first table that is stopped in the last published epoch."""
        for stopped in self._tables.stopped().values():
            raise stopped.exception()

    def _run(self, once: bool, until: Lsn | None, on_epoch: OnEpoch) -> None:
        if until is None and not once:
            self._beside.begin(self._takeover)
        recovered = recover(self._writer)
        if recovered is not None:
            on_epoch(recovered)
        idle_interval_s = self._settings.engine.idle_epoch_interval_s if until is None and not once else 0
        while not (once and recovered) and not self._holds(until):
            self._serve_requests(on_epoch)
            self._beside.join()
            record = self._writer.run(idle_interval_s)
            self._maintenance.slot()
            if record is None:
                self._clock.sleep(IDLE_WAIT_S)
                continue
            on_epoch(record)
            if once:
                return

    def swap(self) -> ControlRecord:
        """Publish the tables of the request that this engine was made for. Raises UnknownView, BadReplay, LogGap."""
        with self._writing():
            assert self._request is not None
            recover(self._writer)
            done = find_swap(self._control.records, self._request.id)
            if done is not None:
                return done
            return publish_swap(self._writer, self._request, plan_swap(self._writer, self._request))

    def amend(self, request: QuarantineRequest) -> ControlRecord:
        """Change the quarantine as requested; returns its record. Raises UnknownEvent and what an epoch raises."""
        with self._writing():
            try:
                recover(self._writer)
            except EventError:
                # The event is in quarantine now, and may be the one to discard.
                if request.kind != "discard":
                    raise
            return self._amend(request)

    def _amend(self, request: QuarantineRequest) -> ControlRecord:
        quarantine = self._writer.quarantine
        if request.kind == "discard":
            assert request.place is not None
            if quarantine.discard(self._control, request.place, request.id) == "stopped":
                return self._control.records[-1]
        elif request.place is not None:
            quarantine.find(request.place)
        return self._writer.run_retry(Retry(request.place, request.id))

    def _serve_requests(self, on_epoch: OnEpoch) -> None:
        while (request := self._requests.take()) is not None:
            with self._requests.answering(request), touching(self._settings.warehouse):
                if find_swap(self._control.records, request.id) is None:
                    record = self._serve(request)
                    if record.published_at is not None:
                        on_epoch(record)

    def _serve(self, request: Request) -> ControlRecord:
        if isinstance(request, QuarantineRequest):
            with refusing(UnknownEvent):
                return self._amend(request)
        with refusing(Exception):  # a plan changes nothing
            swap = plan_swap(self._writer, request)
        with refusing(BadReplay):
            return publish_swap(self._writer, request, swap)

    def _find_path(self, last: ControlRecord | None, suffix_of_views: str) -> FindPath:
        published = as_published(last, suffix_of_views)
        requested = self._request.tables if self._request is not None else {}
        return lambda name, path: requested[name].path if name in requested else published(name, path)

    def _holds(self, until: Lsn | None) -> bool:
        published = self._tables.published
        return until is not None and published is not None and published.holds(until)


def open_log(
    settings: Settings,
    declared: Declared,
    marker: MarkerWriter,
    known: ControlRecord | None,
    clock: Clock = SYSTEM_CLOCK,
    slot: WatchedSlot | None = None,
    published: ControlRecord | None = None,
) -> Log:
    """Open the log of a project. `known` is the takeover that has the topics its mirrors were made from."""
    looked_up = [table.name for table in declared.sources if is_looked_up(table)]
    return Log(
        settings.log,
        settings.source.tables,
        marker,
        publication=settings.source.publication,
        known_topics=facts_of(known)["topics"] if known else None,
        toast_lookup=looked_up,
        bulk=[table.name for table in declared.sources if not is_looked_up(table)],
        published=cut_of(published, {}, read_offsets(published)) if published else None,
        clock=clock,
        slot=slot,
        changed=declared.changed,
        zoned=[table.name for table in declared.sources if prints_in_zone(table)],
    )

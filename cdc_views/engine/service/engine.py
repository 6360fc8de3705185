"""The engine: one long-lived PySpark driver that takes the warehouse over and publishes epoch after epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from typing import Final, Self
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views.capture.fold import UNAPPLICABLE
from cdc_views.capture.types import prints_in_zone
from cdc_views.capture.unchanged import with_placeholder
from cdc_views.clock import SYSTEM_CLOCK, Clock
from cdc_views.config import Settings
from cdc_views.engine.capture.broken import remembering, require_unbroken
from cdc_views.engine.capture.captures import CAPTURE, SOURCE, VIEWS, known_takeover, reset_of
from cdc_views.engine.capture.declared import Declared, declare, texts_of
from cdc_views.engine.capture.generation import (
    PLACEHOLDER,
    generation_facts,
    generation_name,
    known_placeholder,
    require_not_behind,
    require_same_source,
    require_same_tables,
)
from cdc_views.engine.capture.mirrored import TABLES, tables_detail
from cdc_views.engine.epoch.recovery import recover, take_over
from cdc_views.engine.epoch.steps import Swap, cut_of, read_offsets, run_epoch, run_retry
from cdc_views.engine.epoch.swap import REQUEST, SwapRequest, find_swap, plan_swap, publish_swap, require_present
from cdc_views.engine.epoch.tables import REBUILT, Place, Tables, where_published
from cdc_views.engine.input import quarantine
from cdc_views.engine.input.bulk import BulkReader, OnProgress, TakeAhead, is_looked_up, nothing_ahead
from cdc_views.engine.input.lost_rows import LostRows
from cdc_views.engine.service.lock import WarehouseLock
from cdc_views.engine.service.requests import QuarantineRequest, Request, Requests, refusing
from cdc_views.engine.upkeep.maintenance import Maintenance
from cdc_views.engine.views.declare import declare_views
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.errors import BadReplay, UnknownEvent
from cdc_views.log.log import Log
from cdc_views.log.markers import MarkerWriter
from cdc_views.log.placeholder import read_placeholder
from cdc_views.log.watch import WatchedSlot
from cdc_views.lsn import Lsn
from cdc_views.source.connection import connect, require_primary
from cdc_views.source.marker import Marker
from cdc_views.source.position import wal_end
from cdc_views.source.slot_watch import SlotWatch
from cdc_views.source.snapshot_dates import require_dates_of_snapshot
from cdc_views.store.control.control_log import ControlLog, ControlRecord, read_control
from cdc_views.store.storage.disk import touching
from cdc_views.store.warehouse import Warehouse

IDLE_WAIT_S: Final = 0.5  # between two markers of a database in which nothing happens

OnEpoch = Callable[[ControlRecord], None]


class Engine:
    """Use as a context manager: entering takes the warehouse over, leaving frees it."""

    def __init__(
        self,
        settings: Settings,
        spark: SparkSession,
        clock: Clock = SYSTEM_CLOCK,
        *,
        request: SwapRequest | None = None,
        on_progress: OnProgress = lambda progress: None,
        take_ahead: TakeAhead = nothing_ahead,
    ) -> None:
        """`spark` is the caller's to stop. `on_progress` is told how a first epoch's reading gets on.

        `take_ahead` gives what was read of the tables before there was a cut.

        With `request` it does only that: the tables to be replaced are not looked at, whatever somebody else may
        have written to them.
        """
        self._settings = settings
        self._clock = clock
        self._spark = spark
        self._request = request
        self._on_progress = on_progress
        self._take_ahead = take_ahead
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        try:
            with touching(self._settings.warehouse):
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
        settings, writer = self._settings, uuid4().hex
        lock = WarehouseLock(settings.warehouse, settings.engine.lock_timeout_s)
        lock.acquire()
        self._resources.callback(lock.release)
        require_unbroken(settings.warehouse)
        self._source = self._resources.enter_context(connect(settings.source.dsn.get_secret_value()))
        declared = declare(settings, self._source, read_control(settings.warehouse))
        control = ControlLog.open(settings.warehouse, writer, self._clock)
        known, reset = known_takeover(control.records), reset_of(control.records)
        made_of = known.detail[SOURCE] if known is not None else reset.facts if reset is not None else None
        published = control.published_in(known.generation) if known is not None else None
        require_primary(self._source)
        if made_of is not None:
            require_same_source(made_of, declared.identity, settings.source.slot)
        marker = Marker(self._source, settings.source, writer)
        require_not_behind(wal_end(self._source), marker.last(), published)
        require_same_tables(made_of, declared.sources)
        placeholder = read_placeholder(settings.log, known_placeholder(known))
        declared = replace(declared, sources=with_placeholder(declared.sources, placeholder))
        slot = SlotWatch(settings.source.dsn.get_secret_value(), settings.source.slot, declared.identity)
        self._resources.enter_context(closing(slot))
        self._log = self._resources.enter_context(
            closing(open_log(settings, declared, marker, known, self._clock, slot, published))
        )
        facts = generation_facts(declared.identity, settings.source.slot, self._log.topics(), declared.sources)
        lock.hold_in_jvm(self._spark)
        warehouse = Warehouse(
            settings.warehouse, self._spark, settings.store, commits_by_spark=settings.engine.parallel_commits
        )
        if self._request is not None:
            require_present(warehouse, self._request)
        generation = (known.generation if known else None) or generation_name(facts)
        self._tables = Tables(
            warehouse,
            generation,
            declared.sources,
            settings.engine.parallel_commits,
            self._place(published, "" if reset is None else f"{REBUILT}{generation}"),
        )
        self._tables.bulk = BulkReader(self._spark, settings.log, self._on_progress, take_ahead=self._take_ahead)
        self._tables.lost_rows = LostRows(self._source)
        self._tables.parks = settings.log.on_bad_event == "park"
        quarantine.declare(self._tables)
        views = [view for level in declared.levels for view in level]
        failures = declare_views(self._spark, self._tables, views, declared.running, declared.refused)
        self._views = ViewRunner(self._spark, declared.levels, failures)
        self._control = control
        self._requests = Requests(settings.warehouse)
        self._maintenance = Maintenance(settings.warehouse, self._tables, control, settings.upkeep)
        with control.writing():
            detail = {SOURCE: facts, PLACEHOLDER: placeholder, VIEWS: texts_of(view.definition for view in views)}
            detail |= {TABLES: tables_detail(declared.sources)}
            take_over(control, self._tables, {**detail, CAPTURE: 1 if reset is None else reset.capture.number})
        if self._request is not None:
            # Before an open intent is looked at: its tables are those that are to be replaced.
            self._tables.standing_in = frozenset(self._request.tables)
        self._requests.forget()
        if self._tables.published is None:
            require_dates_of_snapshot(self._source, declared.sources)
            quarantine.forget_others(self._tables, control, self._log.topics())
            self._tables.skip(self._log.begin())

    def run(self, *, once: bool = False, until: Lsn | None = None, on_epoch: OnEpoch = lambda record: None) -> None:
        """Publish epochs for ever, or one (`once`), or until one holds everything committed before `until`.

        Of a table that is stopped no epoch holds everything (`require_none_stopped`). Raises Fenced once another engine
        has taken over, whatever comes of that first; DiskFull; RequestFailed where a new engine is to be made, which
        goes on.
        """
        with self._writing():
            self._run(once, until, on_epoch)

    def require_none_stopped(self) -> None:
        """Raise the error of the first table that is stopped in the last published epoch."""
        for stopped in self._tables.stopped().values():
            raise stopped.exception()

    def _run(self, once: bool, until: Lsn | None, on_epoch: OnEpoch) -> None:
        recovered = recover(self._log, self._tables, self._views, self._control)
        if recovered is not None:
            on_epoch(recovered)
        idle_interval_s = self._settings.engine.idle_epoch_interval_s if until is None and not once else 0
        while not (once and recovered) and not self._holds(until):
            self._serve_requests(on_epoch)
            record = run_epoch(self._log, self._tables, self._views, self._control, idle_interval_s)
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
            return self._swap()

    def _swap(self) -> ControlRecord:
        assert self._request is not None
        recover(self._log, self._tables, self._views, self._control)
        done = find_swap(self._control.records, self._request.id)
        if done is not None:
            return done
        swap = plan_swap(self._log, self._tables, self._control, self._request)
        return self._publish_swap(self._request, swap)

    def amend(self, request: QuarantineRequest) -> ControlRecord:
        """Do what is asked of the quarantine; the record that says so. Raises UnknownEvent and what an epoch raises."""
        with self._writing():
            try:
                recover(self._log, self._tables, self._views, self._control)
            except UNAPPLICABLE:
                # The event is in quarantine now, and may be the one that is to be discarded.
                if request.kind != "discard":
                    raise
            return self._amend(request)

    def _amend(self, request: QuarantineRequest) -> ControlRecord:
        detail = {REQUEST: request.id}
        if request.kind == "discard":
            assert request.place is not None
            if quarantine.discard(self._tables, self._control, request.place, detail) == "stopped":
                return self._control.records[-1]
        elif request.place is not None:
            quarantine.find(self._tables, request.place)
        retry = quarantine.Retry(request.place, detail)
        return run_retry(self._log, self._tables, self._views, self._control, retry)

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
            swap = plan_swap(self._log, self._tables, self._control, request)
        with refusing(BadReplay):
            return self._publish_swap(request, swap)

    def _publish_swap(self, request: SwapRequest, swap: Swap) -> ControlRecord:
        return publish_swap(self._log, self._tables, self._views, self._control, request, swap)

    def _place(self, last: ControlRecord | None, suffix_of_views: str) -> Place:
        published = where_published(last, suffix_of_views)
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
    """The log of a project; `known` is the takeover that says which topics its mirrors were made from."""
    looked_up = [table.name for table in declared.sources if is_looked_up(table)]
    return Log(
        settings.log,
        settings.source.tables,
        marker,
        publication=settings.source.publication,
        known_topics=known.detail[SOURCE]["topics"] if known else None,
        toast_lookup=looked_up,
        bulk=[table.name for table in declared.sources if not is_looked_up(table)],
        published=cut_of(published, {}, read_offsets(published)) if published else None,
        clock=clock,
        slot=slot,
        changed=declared.changed,
        zoned=[table.name for table in declared.sources if prints_in_zone(table)],
    )

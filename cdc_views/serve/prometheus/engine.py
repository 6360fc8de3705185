"""Metrics of the running engine for Prometheus.

What an epoch did is counted when it is published (`Metrics.observe`). What is true now, such as freshness and lag, is
computed when Prometheus asks (state.py). The client library adds metrics of the process.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from cdc_views.errors import PortInUse
from cdc_views.metrics import STAGES, Work
from cdc_views.serve.prometheus.state import StateMetrics
from cdc_views.serve.watch.watch import Watch
from cdc_views.store.control import ControlRecord, PublishedDetail

_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
EPOCH_KINDS: Final = ("publish", "idle", "swap", "rollback")

# The counter of each field of Work for a view, but for its milliseconds.
_WORK: Final = {
    "keys_looked_up": "Keys of all lookups of the view",
    "rows_found": "Rows that the lookups of the view found, and changed rows of its tables",
    "rows_recomputed": "Rows that the query of the view returned to the driver",
    "rows_read": "Rows that the driver decoded for the view",
    "files_read": "Data files that the driver opened for the view",
    "rows_written": "Rows in new data files of the view",
    "commits": "New versions of the view",
}


class Metrics:
    """The metrics of one engine, in a registry of their own."""

    def __init__(self, watch: Watch) -> None:
        self.registry = made = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=made)
        self._epochs = Counter("cdc_views_epochs", "Epochs that were published", ["kind"], registry=made)
        self._changes = Counter("cdc_views_changes", "Events that were applied to a mirror", ["table"], registry=made)
        self._stages = Histogram(
            "cdc_views_stage_duration_seconds", "Time of each stage of an epoch", ["stage"],
            buckets=_SECONDS, registry=made,
        )  # fmt: skip
        self._duration = Histogram(
            "cdc_views_epoch_duration_seconds", "Time of the stages of an epoch with changes",
            buckets=_SECONDS, registry=made,
        )  # fmt: skip
        self._delay = Histogram(
            "cdc_views_epoch_delay_seconds", "From the last commit of an epoch with changes to its publication",
            buckets=_SECONDS, registry=made,
        )  # fmt: skip
        self._upkeep = Counter("cdc_views_upkeep_seconds", "Time spent on upkeep", registry=made)
        self._steps = Counter("cdc_views_upkeep_steps", "Steps of upkeep, by kind", ["step"], registry=made)
        self._work = {
            name: Counter(f"cdc_views_view_{name}", text, ["view"], registry=made) for name, text in _WORK.items()
        }
        self._spent = Counter("cdc_views_view_seconds", "Time spent on updates of the view", ["view"], registry=made)
        self._updates = Counter(
            "cdc_views_view_updates", "Updates of the view, by what was done", ["view", "way"], registry=made
        )
        self._errors = Counter("cdc_views_errors", "Errors that the engine has logged", ["error"], registry=made)
        self._show_zeros()
        made.register(StateMetrics(watch))

    def observe(self, record: ControlRecord) -> None:
        """Count a published epoch."""
        detail = PublishedDetail.read(record)
        self._epochs.labels("idle" if record.is_idle else record.kind).inc()
        for table, changes in detail.changes.items():
            self._changes.labels(table).inc(changes)
        self._observe_times(record, detail)
        self._observe_upkeep(dict(detail.upkeep))
        for view, work in detail.view_work.items():
            self._observe_view(view, work, detail.ways.get("view", {}).get(view, "unknown"))

    def _observe_times(self, record: ControlRecord, detail: PublishedDetail) -> None:
        if record.is_idle:
            return
        for stage, spent_ms in detail.stage_ms.items():
            self._stages.labels(stage).observe(spent_ms / 1000)
        self._duration.observe(sum(detail.stage_ms.values()) / 1000)
        if record.published_at is not None and record.committed_at is not None:
            self._delay.observe(max(0.0, (record.published_at - record.committed_at).total_seconds()))

    def _observe_upkeep(self, upkeep: dict[str, int | float]) -> None:
        self._upkeep.inc(upkeep.pop("ms", 0) / 1000)
        for step, count in upkeep.items():
            self._steps.labels(step).inc(count)

    def _observe_view(self, view: str, work: Work, way: str) -> None:
        for name, counter in self._work.items():
            counter.labels(view).inc(getattr(work, name))
        self._spent.labels(view).inc(work.milliseconds / 1000)
        self._updates.labels(view, way).inc()

    def _show_zeros(self) -> None:
        """Show counters whose labels are known before anything happens: a rate needs their first value."""
        for kind in EPOCH_KINDS:
            self._epochs.labels(kind)
        for stage in STAGES:
            self._stages.labels(stage)

    @contextmanager
    def counting_errors(self) -> Iterator[None]:
        """Count what is logged with the name of an error: those that the engine survives."""
        handler, logger = _ErrorCounter(self._errors), logging.getLogger("cdc_views")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)

    @contextmanager
    def served(self, port: int) -> Iterator[None]:
        """Serve /metrics on every address of this machine. Raises PortInUse."""
        try:
            server, thread = start_http_server(port, registry=self.registry)
        except OSError as error:
            raise PortInUse(f"port {port} cannot serve metrics: {error.strerror}", hint="see --metrics-port") from None
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


class _ErrorCounter(logging.Handler):
    def __init__(self, counter: Counter) -> None:
        super().__init__(logging.WARNING)
        self._counter = counter

    def emit(self, record: logging.LogRecord) -> None:
        name = getattr(record, "fields", {}).get("error")
        if name is not None:
            self._counter.labels(name).inc()

"""Metrics of what is true now, computed when Prometheus asks: freshness, lag, the slot, the connector.

What is not known now has no value: a service that does not answer is down by `cdc_views_service_up`, and its last
numbers are not repeated. So freshness goes on growing while nothing is published, whatever else is down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from cdc_views.serve.watch.watch import UNREACHABLE, SlotState, Watch
from cdc_views.store.control import ControlRecord

TASK_STATES: Final = (
    *("RUNNING", "FAILED", "PAUSED", "STOPPED", "UNASSIGNED", "RESTARTING", "STARTING", "DESTROYED"),
    UNREACHABLE,
)
WAL_STATUSES: Final = ("reserved", "extended", "unreserved", "lost")
_SLOT: Final = "cdc_views_slot_"


class StateMetrics(Collector):
    """Reads a Watch at each scrape; it waits for nothing."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def collect(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Return the metrics of this moment."""
        yield from self._services()
        yield self._task()
        if (slot := self._watch.slot) is not None:
            yield from _slot(slot)
        yield from self._topics()
        if (last := self._watch.freshness.last) is not None:
            yield from _published(last)
            yield from self._tables(last)

    def describe(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        """Return nothing: the registry need not scrape to know the names, which are all ours."""
        return iter(())

    def _services(self) -> Iterator[GaugeMetricFamily | CounterMetricFamily]:
        up = GaugeMetricFamily(
            "cdc_views_service_up", "Whether the service answered the last look at it", labels=["service"]
        )
        failures = CounterMetricFamily(
            "cdc_views_look_failures", "Looks at a service that failed", labels=["service", "error"]
        )
        for name, service in self._watch.services.items():
            if service.is_known:
                up.add_metric([name], float(service.failure is None))
            for error, count in sorted(service.failures.items()):
                failures.add_metric([name, error], count)
        yield up
        yield failures

    def _task(self) -> GaugeMetricFamily:
        found = GaugeMetricFamily(
            "cdc_views_connector_task_state", "1 for the state of the connector's task", labels=["state"]
        )
        if (now := self._watch.task_state) is not None:
            for state in sorted({*TASK_STATES, now}):
                found.add_metric([state], float(state == now))
        return found

    def _topics(self) -> Iterator[GaugeMetricFamily]:
        offsets = GaugeMetricFamily(
            "cdc_views_topic_lag_offsets", "Offsets of the topic that no published epoch holds", labels=["topic"]
        )
        size = GaugeMetricFamily(
            "cdc_views_topic_lag_bytes", "About how many bytes these take, before compression", labels=["topic"]
        )
        for topic, state in sorted((self._watch.topics or {}).items()):
            offsets.add_metric([topic], state.lag_offsets)
            if state.lag_bytes is not None:
                size.add_metric([topic], state.lag_bytes)
        yield offsets
        yield size

    def _tables(self, last: ControlRecord) -> Iterator[GaugeMetricFamily]:
        fresh = GaugeMetricFamily(
            "cdc_views_freshness_seconds",
            "How long ago, in seconds of commit time, the source was as readers see it in the table",
            labels=["table", "kind"],
        )
        status = GaugeMetricFamily(
            "cdc_views_table_status", "1 for the status of the table", labels=["table", "kind", "status"]
        )
        ages = self._watch.freshness.seconds(self._watch.clock.now())
        for name, table in sorted(last.mirrors_and_views.items()):
            status.add_metric([name, table.kind, table.status], 1)
            if name in ages:
                fresh.add_metric([name, table.kind], ages[name])
        yield fresh
        yield status


def _published(last: ControlRecord) -> Iterator[GaugeMetricFamily]:
    assert last.committed_at is not None
    assert last.published_at is not None
    yield GaugeMetricFamily("cdc_views_epoch", "Number of the last published epoch", last.epoch)
    yield GaugeMetricFamily(
        "cdc_views_committed_timestamp_seconds", "Commit time of the source as readers see it",
        last.committed_at.timestamp(),
    )  # fmt: skip
    yield GaugeMetricFamily(
        "cdc_views_published_timestamp_seconds", "When the last epoch was published", last.published_at.timestamp()
    )


def _slot(slot: SlotState) -> Iterator[GaugeMetricFamily]:
    backlog = slot.backlog
    yield GaugeMetricFamily(f"{_SLOT}active", "Whether the connector reads from the slot", float(backlog.is_active))
    yield GaugeMetricFamily(f"{_SLOT}lag_bytes", "WAL that the connector has not confirmed", backlog.lag_bytes)
    yield GaugeMetricFamily(f"{_SLOT}kept_bytes", "WAL that Postgres keeps for the slot", backlog.kept_bytes)
    optional = (
        ("lag_seconds", "No WAL that the connector has not confirmed is older", slot.lag_seconds),
        ("limit_bytes", "max_slot_wal_keep_size; no value if there is no limit", backlog.limit_bytes),
        ("safe_bytes", "WAL that may still be written before the slot may be lost", backlog.safe_bytes),
        ("time_to_limit_seconds", "When the slot may be lost, at the present rate of WAL", slot.seconds_to_limit),
    )
    for name, text, value in optional:
        if value is not None:
            yield GaugeMetricFamily(f"{_SLOT}{name}", text, value)
    status = GaugeMetricFamily(f"{_SLOT}wal_status", "1 for the wal_status of the slot", labels=["status"])
    for each in sorted({*WAL_STATUSES, backlog.wal_status}):
        status.add_metric([each], float(each == backlog.wal_status))
    yield status

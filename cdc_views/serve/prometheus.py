"""Metrics of the running engine for Prometheus, taken from each epoch that it publishes.

The client library adds metrics of the process, such as `process_resident_memory_bytes`.
"""

from __future__ import annotations

from collections import Counter as Counts
from typing import Final

from prometheus_client import Counter, Gauge, start_http_server

from cdc_views.errors import PortInUse
from cdc_views.store.control import ControlRecord, PublishedDetail

_EPOCHS: Final = Counter("cdc_views_epochs", "Epochs that were published")
_CHANGES: Final = Counter("cdc_views_changes", "Events that were applied to a mirror", ["table"])
_STAGES: Final = Counter("cdc_views_stage_seconds", "Time spent in each stage of the epochs", ["stage"])
_UPKEEP: Final = Counter("cdc_views_upkeep_seconds", "Time spent on upkeep")
_UPKEEP_STEPS: Final = Counter("cdc_views_upkeep_steps", "Steps of upkeep, by kind", ["step"])
_EPOCH: Final = Gauge("cdc_views_epoch", "Number of the last published epoch")
_COMMITTED: Final = Gauge("cdc_views_committed_timestamp_seconds", "Commit time of the source as readers see it")
_PUBLISHED: Final = Gauge("cdc_views_published_timestamp_seconds", "When the last epoch was published")
_TABLES: Final = Gauge("cdc_views_tables", "Mirrors and views of the last epoch, by status", ["status"])


def serve_metrics(port: int) -> None:
    """Serve /metrics on every address of this machine. Raises PortInUse."""
    try:
        start_http_server(port)
    except OSError as error:
        raise PortInUse(f"port {port} cannot serve metrics: {error.strerror}", hint="see --metrics-port") from None


def observe(record: ControlRecord) -> None:
    """Count a published epoch."""
    assert record.published_at is not None
    detail = PublishedDetail.read(record)
    upkeep = dict(detail.upkeep)
    _EPOCHS.inc()
    _EPOCH.set(record.epoch)
    _PUBLISHED.set(record.published_at.timestamp())
    if record.committed_at is not None:
        _COMMITTED.set(record.committed_at.timestamp())
    for table, changes in detail.changes.items():
        _CHANGES.labels(table).inc(changes)
    for stage, spent_ms in detail.stage_ms.items():
        _STAGES.labels(stage).inc(spent_ms / 1000)
    _UPKEEP.inc(upkeep.pop("ms", 0) / 1000)
    for step, count in upkeep.items():
        _UPKEEP_STEPS.labels(step).inc(count)
    _TABLES.clear()
    for status, number in Counts(table.status for table in record.mirrors_and_views.values()).items():
        _TABLES.labels(status).set(number)

"""What Prometheus is given of the published epochs."""

from __future__ import annotations

import socket
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import requests

from cdc_views.errors import PortInUse
from cdc_views.serve.prometheus import observe, serve_metrics
from cdc_views.stack.services.ports import free_port
from cdc_views.store.control.control_log import ControlRecord, TableVersion

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EPOCH = ControlRecord(
    seq=3, term=1, writer="w", kind="publish", epoch=7, attempt=9, committed_at=NOON, published_at=NOON,
    tables={
        "public.t": TableVersion("mirrors/public/t/1", 1, "live"),
        "v": TableVersion("views/v/1", 1, "failed"),
        "w": TableVersion("views/w/1", 1, "live"),
        "_cv_w_1": TableVersion("internal_views/_cv_w_1/1", 1, "failed"),
    },
    detail={"changes": {"public.t": 5}, "stage_ms": {"cut": 250}, "upkeep": {"ms": 500, "compaction": 2}},
)  # fmt: skip


def test_published_epochs_are_counted_and_the_last_one_is_shown() -> None:
    port = free_port(())
    serve_metrics(port)
    observe(EPOCH)
    live = {
        name: replace(table, status="live" if name != "_cv_w_1" else "failed") for name, table in EPOCH.tables.items()
    }
    observe(replace(EPOCH, epoch=8, tables=live))
    lines = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text.splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("cdc_views_") and "_created" not in line)
    assert {name: float(value) for name, value in found.items()} == {
        "cdc_views_epochs_total": 2,
        "cdc_views_epoch": 8,
        "cdc_views_committed_timestamp_seconds": NOON.timestamp(),
        "cdc_views_published_timestamp_seconds": NOON.timestamp(),
        'cdc_views_changes_total{table="public.t"}': 10,
        'cdc_views_stage_seconds_total{stage="cut"}': 0.5,
        "cdc_views_upkeep_seconds_total": 1,
        'cdc_views_upkeep_steps_total{step="compaction"}': 4,
        'cdc_views_tables{status="live"}': 3,
    }


def test_metrics_on_a_port_that_is_taken_are_refused() -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        with pytest.raises(PortInUse, match="cannot serve metrics: Address already in use"):
            serve_metrics(other.getsockname()[1])

"""What Prometheus is given of the published epochs, and of what is true now."""

from __future__ import annotations

import logging
import re
import socket
from dataclasses import replace
from pathlib import Path
from socketserver import BaseServer

import pytest
import requests
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cdc_views.errors import PortInUse
from cdc_views.serve.prometheus.engine import Metrics
from cdc_views.stack.services.ports import free_port
from tests.unit.watched import BEFORE, EPOCH, NOON, Watched, backlog, full_metrics


@pytest.fixture(autouse=True)
def _soon_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server looks every half second whether it shall end."""
    monkeypatch.setattr(BaseServer.serve_forever, "__defaults__", (0.01,))


def samples(metrics: Metrics) -> dict[str, float]:
    """Our samples of a real answer, without histograms' buckets and times of creation."""
    port = free_port(())
    with metrics.served(port):
        text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.startswith("cdc_views_") and not sample.name.endswith(("_bucket", "_created")):
                labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
                found[sample.name + (f"{{{labels}}}" if labels else "")] = sample.value
    return found


def test_published_epochs_are_counted() -> None:
    metrics = Metrics(Watched().watch)
    metrics.observe(EPOCH)
    metrics.observe(replace(EPOCH, epoch=8))
    metrics.observe(replace(EPOCH, epoch=9, detail={}))
    found = samples(metrics)
    wanted = {
        'cdc_views_epochs_total{kind="publish"}': 2,
        'cdc_views_epochs_total{kind="idle"}': 1,
        'cdc_views_epochs_total{kind="swap"}': 0,
        'cdc_views_changes_total{table="public.t"}': 10,
        'cdc_views_stage_duration_seconds_sum{stage="cut"}': 0.5,
        'cdc_views_stage_duration_seconds_count{stage="mirrors"}': 0,
        "cdc_views_epoch_duration_seconds_sum": 2,
        "cdc_views_epoch_delay_seconds_count": 2,
        "cdc_views_upkeep_seconds_total": 1,
        'cdc_views_upkeep_steps_total{step="compaction"}': 4,
        'cdc_views_view_keys_looked_up_total{view="w"}': 4,
        'cdc_views_view_rows_found_total{view="w"}': 14,
        'cdc_views_view_rows_recomputed_total{view="w"}': 6,
        'cdc_views_view_rows_read_total{view="w"}': 40,
        'cdc_views_view_files_read_total{view="w"}': 2,
        'cdc_views_view_rows_written_total{view="w"}': 2,
        'cdc_views_view_commits_total{view="w"}': 2,
        'cdc_views_view_seconds_total{view="w"}': 0.5,
        'cdc_views_view_updates_total{view="w",way="keys"}': 2,
    }
    assert {name: found.get(name) for name in wanted} == wanted


def test_what_is_true_now_is_computed_at_each_scrape() -> None:
    watched = Watched([BEFORE, EPOCH])
    watched.answers.backlog = backlog(confirmed=100, wal_end=110, limit=110)
    watched.answers.behind = {"app.public.t": 3}
    watched.look(after_s=10)
    watched.clock.advance(5)
    found = samples(Metrics(watched.watch))
    wanted = {
        'cdc_views_freshness_seconds{kind="mirror",table="public.t"}': 15,
        'cdc_views_freshness_seconds{kind="view",table="w"}': 15,
        'cdc_views_table_status{kind="view",status="failed",table="v"}': 1,
        'cdc_views_table_status{kind="view",status="live",table="w"}': 1,
        "cdc_views_epoch": 7,
        "cdc_views_published_timestamp_seconds": NOON.timestamp(),
        "cdc_views_committed_timestamp_seconds": NOON.timestamp(),
        'cdc_views_service_up{service="kafka"}': 1,
        'cdc_views_connector_task_state{state="RUNNING"}': 1,
        'cdc_views_connector_task_state{state="UNREACHABLE"}': 0,
        'cdc_views_topic_lag_offsets{topic="app.public.t"}': 3,
        'cdc_views_topic_lag_bytes{topic="app.public.t"}': 1500,
        "cdc_views_slot_active": 0,
        "cdc_views_slot_lag_bytes": 10 << 20,
        "cdc_views_slot_kept_bytes": 10 << 20,
        "cdc_views_slot_lag_seconds": 15,
        "cdc_views_slot_limit_bytes": 110 << 20,
        "cdc_views_slot_safe_bytes": 100 << 20,
        "cdc_views_slot_time_to_limit_seconds": 100,
        'cdc_views_slot_wal_status{status="reserved"}': 1,
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert not any("_cv_w_1" in name for name in found)


def test_nothing_is_said_of_what_is_not_known() -> None:
    watched = Watched()
    assert not any(name.startswith(("cdc_views_slot", "cdc_views_fresh", "cdc_views_epoch{", "cdc_views_service_up"))
                   for name in samples(Metrics(watched.watch)))  # fmt: skip


def test_services_that_are_down_are_so_and_their_last_numbers_are_not_repeated() -> None:
    watched = Watched([EPOCH])
    watched.answers.behind = {"app.public.t": 3}
    watched.look()
    watched.answers.behind = watched.answers.state = None
    watched.look(after_s=30)
    found = samples(Metrics(watched.watch))
    assert found['cdc_views_service_up{service="kafka"}'] == 0
    assert found['cdc_views_look_failures_total{error="NotRunning",service="kafka"}'] == 1
    assert found['cdc_views_connector_task_state{state="UNREACHABLE"}'] == 1
    assert 'cdc_views_topic_lag_offsets{topic="app.public.t"}' not in found
    assert found['cdc_views_freshness_seconds{kind="view",table="w"}'] == 30


def test_page_of_metrics_has_every_metric_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    named = re.findall(r"^\| `(cdc_views_\w+)` \|", page, re.MULTILINE)
    text = generate_latest(full_metrics().registry).decode()
    families = [family for family in text_string_to_metric_families(text) if family.name.startswith("cdc_views_")]
    made = {family.name + ("_total" if family.type == "counter" else "") for family in families if family.samples}
    assert sorted(named) == sorted(name for name in made if not name.endswith("_created"))


def test_errors_that_are_logged_are_counted_by_name() -> None:
    metrics, logger = Metrics(Watched().watch), logging.getLogger("cdc_views.engine")
    with metrics.counting_errors():
        logger.warning("MarkerTimeout: trying again", extra={"fields": {"error": "MarkerTimeout"}})
        logger.warning("no error")
    logger.warning("MarkerTimeout: trying again", extra={"fields": {"error": "MarkerTimeout"}})
    assert samples(metrics)['cdc_views_errors_total{error="MarkerTimeout"}'] == 1


def test_metrics_on_a_port_that_is_taken_are_refused() -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        taken = pytest.raises(PortInUse, match="cannot serve metrics: Address already in use")
        with taken, Metrics(Watched().watch).served(other.getsockname()[1]):
            pass

"""What metrics, log and `status` say of real services, and of a Connect that is gone."""

from __future__ import annotations

import json
import re
import signal
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from cdc_views.serve.watch.health import STUCK_AFTER_S
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services.ports import free_port
from tests.fix_postgres import server_setting
from tests.fix_project import Project
from tests.waiting import wait_for

LIMIT_S = 120
NOTICED_S = 10


def metrics(port: int) -> dict[tuple[str, str], float]:
    """The samples that /metrics has now, by name and the values of their labels."""
    text = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=10).text
    return {
        (sample.name, "/".join(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def served(port: int, path: str) -> Any:
    """What the server of the page answers."""
    return requests.get(f"http://127.0.0.1:{port}/{path}", timeout=10).json()


def stuck_status(project: Project) -> dict[str, Any] | None:
    """The tables of `status --json`, once it says that the engine is stuck, and Kafka has answered it in time."""
    shown = project.here("status", "--json")
    rows = {row["table"]: row for row in map(json.loads, shown.stdout.splitlines())}
    is_stuck = "; stuck: it has published nothing for " in shown.stderr
    return rows if is_stuck and rows["public.accounts"]["behind"] is not None else None


def lag(project: Project) -> dict[str, Any] | None:
    """The row of accounts in `status --json`, once it is behind."""
    rows = map(json.loads, project.here("status", "--json").stdout.splitlines())
    row: dict[str, Any] = next(each for each in rows if each["table"] == "public.accounts")
    return row if row["behind"] else None


def idle_status(project: Project) -> str | None:
    """What `status` says of the engine and its services, once it says that nothing has changed."""
    said = project.here("status").stderr
    return said if "; idle: " in said.partition("\n")[0] else None


def test_lag_of_a_topic_is_shown_in_offsets_and_about_in_bytes(project: Project) -> None:
    project.fix()
    project.catch_up()
    insert = "INSERT INTO accounts SELECT n, 'ada', 1 FROM generate_series({0}, {0} + 49) n"
    project.database.execute(insert.format(100))
    project.catch_up()
    project.database.execute(insert.format(200))
    row = wait_for(lambda: lag(project), LIMIT_S)
    assert 300 < row["behind_bytes"] / row["behind"] < 3000  # mostly what Debezium writes beside the row
    assert re.search(r"^topics: \d+ offsets behind, about [\d.]+ kB$", project.here("status").stderr, re.MULTILINE)


@pytest.mark.proves(
    wrong="Connect is stopped, or its connector fails or is paused",
    seen="within 10 s a line `Kafka Connect does not answer, ...` or `the task of connector ... is ...`, with the WAL "
    "that Postgres keeps and when its limit will be reached; `cdc_views_connector_task_state`; the first line of "
    "`cdc-views status`",
    do="start it again before the limit is reached",
)
@pytest.mark.nightly
def test_stopped_connect_is_reported_everywhere_within_ten_seconds(project: Project, stack: LocalStack) -> None:
    project.fix()
    port, prefix = free_port(()), project.capture.settings.log.topic_prefix
    page = free_port((port,))
    state, lag = "cdc_views_connector_task_state", ("cdc_views_topic_lag_offsets", f"{prefix}.public.accounts")
    with server_setting(project.database, "max_slot_wal_keep_size", "1GB"):
        engine = project.start("run", "--metrics-port", str(port))
        server = project.start("serve", "--port", str(page))
        wait_for(project.has_published, LIMIT_S)
        # The source is idle: an epoch without changes has followed the first, nothing is behind, and the view is fresh.
        wait_for(lambda: metrics(port).get(lag) == 0 and metrics(port)[state, "RUNNING"] == 1, LIMIT_S)
        idle = metrics(port)
        assert idle["cdc_views_freshness_seconds", "view/balances"] < NOTICED_S
        assert idle["cdc_views_slot_lag_seconds", ""] < NOTICED_S
        assert idle["cdc_views_slot_limit_bytes", ""] == 1 << 30
        shown = wait_for(lambda: idle_status(project), LIMIT_S)
        assert shown.startswith(f"engine: running, pid {engine.pid}; idle: "), shown
        assert shown.splitlines()[-1] == "topics: 0 offsets behind"
        wait_for(lambda: {stage["state"] for stage in served(page, "status")["stages"]} == {"good"}, LIMIT_S)
        assert served(page, "status")["trouble"] is None
        assert served(page, "views/balances/explain")["kept"]["strategy"] == "ADD"
        stack.connect.kill()
        stopped_at = datetime.now(UTC)
        try:
            wait_for(lambda: metrics(port)[state, "UNREACHABLE"] == 1, NOTICED_S)
            wait_for(lambda: metrics(port)["cdc_views_slot_active", ""] == 0, NOTICED_S)
            wait_for(lambda: "Kafka Connect does not answer" in (served(page, "status")["trouble"] or ""), NOTICED_S)
            wait_for(lambda: "will be reached in about " in (served(page, "status")["trouble"] or ""), LIMIT_S)
            shown = project.here("status")
            assert shown.stderr.startswith(
                "fix: start Kafka Connect, or correct log.connect_url: Kafka Connect does not answer; Postgres keeps "
            ), shown.stderr
            wait_for(lambda: metrics(port)["cdc_views_freshness_seconds", "view/balances"] > STUCK_AFTER_S, LIMIT_S)
            # The metric is above the limit a moment before the engine has been silent for so long.
            rows = wait_for(lambda: stuck_status(project), LIMIT_S)
            down = metrics(port)
        finally:
            stack.connect.start()
        wait_for(lambda: metrics(port)[state, "RUNNING"] == 1, LIMIT_S)
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=LIMIT_S)
        engine.send_signal(signal.SIGTERM)
        _, err = engine.communicate(timeout=LIMIT_S)
    assert down["cdc_views_slot_lag_bytes", ""] > 0
    assert down["cdc_views_slot_time_to_limit_seconds", ""] > 0
    assert down["cdc_views_service_up", "postgres"] == 1
    assert rows["balances"]["freshness_s"] > STUCK_AFTER_S
    assert (rows["balances"]["strategy"], rows["balances"]["rows"], rows["public.accounts"]["behind"]) == ("ADD", 2, 0)
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    said = next(line for line in lines if line.get("state") == "UNREACHABLE")
    assert datetime.fromisoformat(said["time"]) - stopped_at < timedelta(seconds=NOTICED_S), said
    assert "and the limit of 1.1 GB will be reached in about " in said["message"]
    assert any(line["message"].endswith(" s") and "runs again, after" in line["message"] for line in lines), err

"""The alerts and the queries of the dashboard, as Prometheus itself reads them: by `promtool` of Debian's package."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.unit.test_monitoring import FOLDER, RULES, dashboard_queries

ENGINE: Final = 'job="cdc_views", instance="engine:9464"'
MINUTES: Final = 30
STEPS: Final = MINUTES * 4  # of 15 seconds

# An engine that is idle: it publishes all the time, and every service answers. The values of each step, by series.
IDLE: Final = {
    "up": "1",
    "process_start_time_seconds": "0",
    "cdc_views_epoch": "1+1",
    "cdc_views_published_timestamp_seconds": "0+15",
    'cdc_views_connector_task_state|state="RUNNING"': "1",
    'cdc_views_connector_task_state|state="UNREACHABLE"': "0",
    'cdc_views_service_up|service="connect"': "1",
    'cdc_views_service_up|service="kafka"': "1",
    "cdc_views_slot_active": "1",
    "cdc_views_slot_safe_bytes": "1000000000",
    "cdc_views_slot_limit_bytes": "1000000000",
    "cdc_views_slot_kept_bytes": "20000000",
    "cdc_views_slot_lag_seconds": "2",
    'cdc_views_slot_wal_status|status="reserved"': "1",
    'cdc_views_slot_wal_status|status="lost"': "0",
    'cdc_views_topic_lag_offsets|topic="app.public.t"': "0",
    'cdc_views_freshness_seconds|table="v", kind="view"': "3",
    'cdc_views_table_status|table="v", kind="view", status="live"': "1",
    'cdc_views_table_status|table="v", kind="view", status="failed"': "0",
    'cdc_views_errors_total|error="MarkerTimeout"': "2",
}

# What differs, and the alerts that fire half an hour later, and no other ones.
CASES: Final[dict[str, tuple[dict[str, str], set[str]]]] = {
    "idle": ({}, set()),
    "no engine": (
        {"up": "0", "cdc_views_published_timestamp_seconds": "600"},
        {"CdcViewsEngineDown", "CdcViewsNoEpoch"},
    ),
    "nothing published lately": ({"cdc_views_published_timestamp_seconds": "600"}, {"CdcViewsNoEpoch"}),
    "Connect is stopped, and the limit of the slot comes near": (
        {
            "cdc_views_published_timestamp_seconds": "600",
            'cdc_views_connector_task_state|state="RUNNING"': "0",
            'cdc_views_connector_task_state|state="UNREACHABLE"': "1",
            'cdc_views_service_up|service="connect"': "0",
            "cdc_views_slot_active": "0",
            "cdc_views_slot_safe_bytes": "1000000000-7000000",
            "cdc_views_slot_time_to_limit_seconds": "7200-60",
            "cdc_views_slot_lag_seconds": "0+15",
            'cdc_views_freshness_seconds|table="v", kind="view"': "0+15",
        },
        {"CdcViewsNoEpoch", "CdcViewsConnectorDown", "CdcViewsServiceDown", "CdcViewsSlotNearLimit",
         "CdcViewsSlotLostSoon", "CdcViewsSlotLag", "CdcViewsStale"},
    ),
    "the slot is lost": ({'cdc_views_slot_wal_status|status="lost"': "1"}, {"CdcViewsSlotLost"}),
    "the engine is too slow": (
        {'cdc_views_topic_lag_offsets|topic="app.public.t"': "20000+10"},
        {"CdcViewsConsumerLag"},
    ),
    "a view has failed": (
        {'cdc_views_table_status|table="v", kind="view", status="failed"': "1"},
        {"CdcViewsViewFailed"},
    ),
    "an error comes again and again": (
        {'cdc_views_errors_total|error="MarkerTimeout"': "2+1"},
        {"CdcViewsErrors"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def promtool() -> str:
    """Skipped where it is absent, which in CI is a failure (tests/conftest.py)."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is absent: .ci/prometheus installs it")
    return found


def run(promtool: str, *arguments: str | Path) -> None:
    done = subprocess.run([promtool, *map(str, arguments)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def written(path: Path, content: Mapping[str, Any]) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def test_rules_and_settings_are_those_of_prometheus(promtool: str) -> None:
    run(promtool, "check", "rules", "--lint-fatal", FOLDER / "alerts.yml")
    run(promtool, "check", "config", "--lint-fatal", FOLDER / "prometheus.yml")


def test_queries_of_the_dashboard_are_promql(promtool: str, tmp_path: Path) -> None:
    variables = {"$__rate_interval": "1m", "$instance": "engine:9464"}
    found = [re.sub(r"\$\w+", lambda name: variables[name[0]], query) for _, query in dashboard_queries()]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(found)]
    run(promtool, "check", "rules", written(tmp_path / "panels.yml", {"groups": [{"name": "panels", "rules": rules}]}))


@pytest.mark.parametrize("case", CASES)
def test_alerts_that_fire(promtool: str, tmp_path: Path, case: str) -> None:
    changed, fire = CASES[case]
    series = []
    for name, values in {**IDLE, **changed}.items():
        metric, _, labels = name.partition("|")
        series.append({"series": f"{metric}{{{', '.join(filter(None, [ENGINE, labels]))}}}",
                       "values": f"{values if re.search('[+-]', values) else f'{values}+0'}x{STEPS}"})  # fmt: skip
    fired = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{MINUTES}m",
        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in fire],
    }
    rules = os.path.relpath(FOLDER / "alerts.yml", tmp_path)
    test = {"interval": "15s", "input_series": series, "promql_expr_test": [fired]}
    content = {"rule_files": [rules], "evaluation_interval": "15s", "tests": [test]}
    run(promtool, "test", "rules", written(tmp_path / "case.yml", content))


def test_cases_name_alerts_that_exist() -> None:
    assert set().union(*(fire for _, fire in CASES.values())) <= {rule["alert"] for rule in RULES}

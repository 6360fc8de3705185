"""monitoring/: every query names metrics, labels and values that a real answer of /metrics has."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from cdc_views.base.stopped import STOPPED
from cdc_views.serve.prometheus.state import TASK_STATES, WAL_STATUSES
from tests.unit.watched import full_metrics

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "monitoring"
RULES = [rule for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
DASHBOARD = json.loads((FOLDER / "grafana/cdc_views.json").read_text())
# Words of PromQL that are not metrics; those before a parenthesis are functions.
WORDS = {"and", "or", "unless", "on", "ignoring", "by", "without", "group_left", "group_right", "bool", "offset"}
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"')
# Prometheus adds these labels and this metric at a scrape.
OF_A_SCRAPE = {"job", "instance"}
# The values of labels that are not names of the user's.
VALUES = {
    "state": set(TASK_STATES),
    "status": {"live", "failed", STOPPED, "parked", "discarded", *WAL_STATUSES},
    "kind": {"mirror", "view"},
    "service": {"postgres", "kafka", "connect"},
}


def labels_of_metrics() -> dict[str, set[str]]:
    """The labels of each sample that /metrics can have, by its name."""
    found: dict[str, set[str]] = defaultdict(set, up=set())
    for family in text_string_to_metric_families(generate_latest(full_metrics().registry).decode()):
        for sample in family.samples:
            found[sample.name] |= sample.labels.keys()
    return found


LABELS = labels_of_metrics()


def dashboard_queries() -> Iterator[tuple[str, str]]:
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield f"{panel['title']}: {target['legendFormat']}", target["expr"]


QUERIES = [*((rule["alert"], rule["expr"]) for rule in RULES), *dashboard_queries()]


def selectors(query: str) -> Iterator[tuple[str, str]]:
    """The metrics of a query, each with what is in its braces."""
    bare = re.sub(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", " ", query)
    bare = re.sub(r"\[[^]]*\]", " ", bare)
    for name, matchers in re.findall(r"(?<![\w.\"$])([a-zA-Z_]\w*)(?!\w|\s*\()\s*(\{[^}]*\})?", blank_strings(bare)):
        if name not in WORDS and not re.fullmatch(r"\d+e\d+|e\d+", name):
            yield name, matchers


def blank_strings(query: str) -> str:
    """The query with the words of its strings joined to their quotes, so that they are no names."""
    return STRINGS.sub(lambda found: '"' + re.sub(r"\w", "·", found[0][1:-1]) + '"', query)


def matchers_of(query: str) -> Iterator[tuple[str, str, str]]:
    """The metric, label and value of each matcher of a query."""
    for name, matchers in re.findall(r"([a-zA-Z_]\w*)\{([^}]*)\}", query):
        for label, value in re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"', matchers):
            yield name, label, value


@pytest.mark.parametrize(("title", "query"), QUERIES, ids=lambda value: str(value)[:60])
def test_metrics_labels_and_values_of_a_query_exist(title: str, query: str) -> None:
    names = [name for name, _ in selectors(query)]
    assert names, title
    assert [name for name in names if name not in LABELS] == []
    for name, label, value in matchers_of(query):
        assert label in LABELS[name] | OF_A_SCRAPE, (name, label)
        if label in VALUES:
            assert set(value.split("|")) <= VALUES[label], (name, label, value)
    grouped = re.findall(r"\b(?:by|on|ignoring)\s*\(([^)]*)\)", query)
    known = set().union(OF_A_SCRAPE, {"le"}, *(LABELS[name] for name in names))
    assert {label.strip() for labels in grouped for label in labels.split(",")} <= known


@pytest.mark.parametrize("broken", ["cdc_views_freshness > 1", "rate(cdc_views_epochs[5m])", "sum by (x) (nothing)"])
def test_query_of_a_metric_that_does_not_exist_is_found(broken: str) -> None:
    assert [name for name, _ in selectors(broken) if name not in LABELS]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_texts_of_an_alert_name_labels_of_its_metric_and_a_remedy(rule: dict[str, Any]) -> None:
    texts = f"{rule['annotations']['summary']} {rule['annotations']['description']}"
    names = [name for name, _ in selectors(rule["expr"])]
    assert set(re.findall(r"\$labels\.(\w+)", texts)) <= set().union(*(LABELS[name] for name in names))
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["description"].rstrip().endswith(".")


def test_alerts_cover_what_the_page_of_operation_promises() -> None:
    page = (ROOT / "docs/metrics.md").read_text()
    assert sorted(re.findall(r"^\| `(CdcViews\w+)` \|", page, re.MULTILINE)) == sorted(rule["alert"] for rule in RULES)


def test_panels_of_the_dashboard_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells


def test_engine_of_compose_serves_what_prometheus_scrapes() -> None:
    scrape = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scrape["job_name"] == "cdc_views"
    [target] = scrape["static_configs"][0]["targets"]
    host, port = target.split(":")
    assert host in yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert f"cdc-views run --metrics-port {port}" in (ROOT / "docker/demo/start").read_text()

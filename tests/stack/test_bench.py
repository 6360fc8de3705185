"""Every benchmark at a size that says nothing of speed: it ends well, its figures are there, its tables are right.

Each program starts its own JVM, so they are part of `just nightly`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cdc_views.stack.local import LocalStack

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 500

PROGRAMS = {
    "freshness": ["--rate", "50", "--seconds", "3", "--warm-up", "1", "--rows", "300", "--baselines", "deltars"],
    "throughput": ["--from", "50", "--to", "50", "--seconds", "2", "--warm-up", "0", "--rows", "300"],
    "snapshot": ["--rows", "300", "--baselines", "deltars"],
    "replay": ["--rows", "300", "--changes", "1000", "--baselines", "textbook"],
    "memory": ["--rows", "300", "--no-held"],
    "flatness": ["--sizes", "1000,3000", "--ages", "0,10", "--aged-rows", "1000", "--changes", "50",
                 "--aging-changes", "5", "--samples", "3"],
    "views": ["--sizes", "1000,2000", "--changes", "1,50", "--samples", "1", "--warm-up", "1"],
    "serve": ["--documents", "300", "--followers", "50", "--rate", "20", "--seconds", "5", "--warm-up", "2",
              "--posts", "1"],
}  # fmt: skip
PICTURES = {"flatness": ["flatness-sizes.svg", "flatness-ages.svg"], "views": ["views-sizes.svg"]}
ON_DISK = {f"{log}_{what}" for log in ("table", "control")
           for what in ("files", "log_entry_bytes", "log_checkpoint_bytes")}  # fmt: skip
QUANTILES = ("p50_s", "p95_s", "p99_s", "max_s")
KEYS = {
    "freshness": {
        *(f"{prefix}mirror_{name}" for prefix in ("", "deltars_") for name in QUANTILES),
        *(f"stage_{stage}_p50_s" for stage in ("commit", "wait", "engine", "read")),
        *("backlog_slope", "system_cores", "capture_cores", "foreign_cores", "epoch_mirrors_p50_ms"),
        *("upkeep_ms_total", "compactions", "checkpoints", "sweeps"),
        *("deltars_backlog_slope", "deltars_system_cores", "deltars_equal"),
    },
    "throughput": {"throughput_changes_per_s", "trials"},
    "snapshot": {"debezium_rows_per_s", "mirror_rows_per_s", "deltars_mirror_rows_per_s", "deltars_equal",
                 "mirrors_after_topics_share"},
    "replay": {"replay_changes_per_s", "baseline_replay_changes_per_s", "baseline_equal"},
    "memory": {"rows_changed", "published_after_s", "driver_before_mb", "driver_peak_mb", "jvm_peak_mb",
               "tasks_peak_mb"},
    "flatness": {"size_1000_ms", "size_3000_ms", "age_0_ms", "age_10_ms", "scan_age_10_ms", "beside_scan_age_10_ms",
                 "flat_sizes_ratio", "flat_ages_ratio", "scan_ratio", "scan_cpu_ratio"},
    "views": {
        *(f"{kind}_2000_changes_{changes}_ms"
          for kind in ("views", "spark", "duckdb", "postgres") for changes in (1, 50)),
        *(f"{baseline}_1000_{what}"
          for baseline in ("spark", "duckdb", "postgres") for what in ("all_ms", "changes_50_ratio")),
        *("build_1000_ms", "flat_changes_1_ratio", "flat_changes_50_ratio", "views"),
    },
    "serve": {
        *(f"{operation}_{part}_ms" for operation in ("search", "timeline", "cache") for part in ("p50", "p95", "p99")),
        *(f"postgres_{operation}_p99_ms" for operation in ("search", "search_density", "timeline", "cache")),
        *(f"visible_{name}" for name in QUANTILES),
        *("scan_rows_per_s", "postgres_scan_rows_per_s", "tantivy_search_p95_ms", "tantivy_update_ms"),
        *("fanout_p50_s", "fanout_views_ms", "states_torn", "searches_equal"),
    },
}  # fmt: skip


def chosen(request: pytest.FixtureRequest) -> list[str]:
    """The programs whose tests are selected."""
    nodes = {item.nodeid for item in request.session.items}
    module = request.node.nodeid
    return [name for name in PROGRAMS if f"{module}::test_program_gives_its_figures_and_equal_tables[{name}]" in nodes]


@pytest.fixture(scope="module")
def runs(
    stack: LocalStack, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """All chosen programs at the same time, on one stack: most of what they do is waiting for one JVM each."""
    # The second compiler pays after ten minutes.
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
    pictures = tmp_path_factory.mktemp("pictures")
    programs = chosen(request)
    stack_options = ["--memory", "1g", "--state", str(stack.state)]
    drawing = ["--pictures", str(pictures)]
    further = {"flatness": drawing, "views": [*drawing, *stack_options]}
    started = {
        name: subprocess.Popen(
            [sys.executable, "-m", f"bench.{name}", *options,
             *further.get(name, stack_options)],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for name, options in PROGRAMS.items() if name in programs
    }  # fmt: skip
    yield started
    for process in started.values():
        process.terminate()
        process.communicate(timeout=60)
    drawn = [file for name in programs for file in PICTURES.get(name, ())]
    assert sorted(file.name for file in pictures.iterdir()) == sorted(drawn)


def last_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, out + err
    figures: dict[str, Any] = json.loads(out.splitlines()[-1])
    return figures


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_program_gives_its_figures_and_equal_tables(runs: dict[str, subprocess.Popen[str]], name: str) -> None:
    figures = last_line(runs[name])
    assert KEYS[name] <= figures.keys(), KEYS[name] - figures.keys()
    assert figures["bench"] == name
    assert all(stage.keys() >= ON_DISK for stage in figures.get("stages", {}).values())
    assert figures["machine"]["cores"] == os.cpu_count()
    assert all(value is True for figure, value in figures.items() if figure.endswith("equal"))
    assert figures["equal"]
    # A reader of published epochs never sees half of a transaction.
    assert figures.get("states_torn", 0) == 0

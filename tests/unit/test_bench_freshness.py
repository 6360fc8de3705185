"""Where the time of a commit went, from probes and control records written by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench import systems
from bench.freshness import stage_figures, upkeep_figures
from bench.load import Probe
from bench.observed import Observation, Seen
from bench.reader import PLACES, Sighting
from bench.rig import Rig
from bench.systems import BASELINES, CdcViews, System
from cdc_views.store.control.control_log import ControlRecord
from cdc_views.testing.postgres.compare import Difference

START_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
LOAD = {"changes": 500, "seconds": 10.0, "late_p99_s": 0.01}
WINDOW = (START_S, START_S + 10)


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(START_S + seconds, UTC)


def epoch(number: int, cut_s: float, published_s: float, mirrors_ms: int, **upkeep: float) -> ControlRecord:
    return ControlRecord(
        number, 1, "w", "publish", number, number, committed_at=moment(cut_s), published_at=moment(published_s),
        detail={"stage_ms": {"mirrors": mirrors_ms}, "changes": {"public.posts": 40}, "upkeep": upkeep},
    )  # fmt: skip


def seen(number: int, due_s: float, committed_s: float, at_s: float, in_epoch: int) -> Seen:
    probe = Probe(number, START_S + due_s, START_S + committed_s)
    return Seen(probe, Sighting(START_S + at_s, dict.fromkeys(PLACES, number), in_epoch))


def test_time_of_a_commit_is_told_by_its_stages() -> None:
    observed = Observation([seen(1, 0, 0.5, 4, 7)], [], {"system": 0.5}, LOAD, WINDOW)
    figures = stage_figures(observed, [epoch(7, cut_s=1.5, published_s=3, mirrors_ms=250)])
    stages = {name: figures[f"stage_{name}_p50_s"] for name in ("commit", "wait", "engine", "read")}
    assert stages == {"commit": 0.5, "wait": 1, "engine": 1.5, "read": 1}
    assert sum(stages.values()) == observed.samples[0].latency_s
    assert (figures["epoch_mirrors_p50_ms"], figures["epoch_changes_p50"], figures["epochs"]) == (250, 40, 1)


def test_epochs_that_upkeep_has_dropped_are_left_out() -> None:
    observed = Observation([seen(1, 0, 1, 2, 7), seen(2, 10, 10, 12, 8)], [], {}, LOAD, WINDOW)
    figures = stage_figures(observed, [epoch(8, cut_s=10, published_s=11, mirrors_ms=100)])
    assert figures["epochs"] == 1
    assert figures["stage_commit_p50_s"] == 0


def test_figures_of_a_system_have_its_prefix_and_count_torn_states() -> None:
    torn = Sighting(START_S, dict.fromkeys(PLACES, 3) | {"public.posts": 4}, None)
    whole = Sighting(START_S, dict.fromkeys(PLACES, 4), None)
    observed = Observation([seen(4, 0, 0, 2, 1)], [torn, whole], {"system": 0.25}, LOAD, WINDOW)
    figures = observed.figures("deltars_", "mirror")
    assert figures["deltars_mirror_p50_s"] == 2
    assert figures["deltars_system_cores"] == 0.25
    assert figures["deltars_load_changes_per_s"] == 50
    assert (figures["deltars_states_seen"], figures["deltars_states_torn"]) == (2, 1)


def test_upkeep_is_that_of_epochs_published_in_the_window() -> None:
    observed = Observation([], [], {}, LOAD, WINDOW)
    published = [
        epoch(6, cut_s=-2, published_s=-1, mirrors_ms=1, ms=500, compaction=9),
        epoch(7, cut_s=0, published_s=0, mirrors_ms=1, ms=1.5, compaction=1, checkpoint=2, sweep=1),
        epoch(8, cut_s=1, published_s=9, mirrors_ms=1, ms=2.1, compaction=3),
        epoch(9, cut_s=9, published_s=10, mirrors_ms=1, ms=500, sweep=1),
    ]
    told = {"upkeep_ms_total": 4, "compactions": 4, "checkpoints": 2, "sweeps": 1}
    assert upkeep_figures(observed, published) == told
    assert upkeep_figures(observed, []) == dict.fromkeys(told, 0)


@pytest.mark.parametrize(
    ("kind", "with_views", "latency"),
    [
        (CdcViews, False, "mirror"), (CdcViews, True, "epoch"),
        (BASELINES["textbook"], False, "baseline_mirror"), (BASELINES["textbook"], True, "baseline_mirror"),
        (BASELINES["deltars"], False, "deltars_mirror"),
    ],
)  # fmt: skip
def test_latencies_are_named_by_the_system_and_by_what_they_are_of(
    kind: type[System], with_views: bool, latency: str, tmp_path: Path
) -> None:
    rig = cast(Rig, SimpleNamespace(with_views=with_views, project=tmp_path.joinpath))
    system = kind(rig)
    observed = Observation([seen(1, 0, 0, 2, 1), seen(2, 5, 5, 7, 2)], [], {"system": 0.5}, LOAD, WINDOW)
    figures = observed.figures(system.prefix, system.word)
    assert (figures[f"{latency}_p50_s"], figures[f"{latency}_p99_s"]) == (2, 2)
    assert figures[f"{system.prefix}backlog_slope"] == 0


def test_a_view_that_is_not_as_postgres_answers_makes_the_epoch_unequal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Difference("bank_total", "missing", (8,))]
    monkeypatch.setattr(systems, "demo_differences", lambda dsn, warehouse: found)
    monkeypatch.setattr(systems, "_EQUAL_LIMIT_S", 0)
    system = CdcViews(cast(Rig, SimpleNamespace(with_views=True, project=tmp_path.joinpath, dsn="none")))
    assert not system.is_equal()
    assert '"bank_total": 1 missing' in str(system.describe_differences())
    found.clear()
    assert system.is_equal()

"""Where the time of a commit went, from probes and control records written by hand."""

from __future__ import annotations

from datetime import UTC, datetime

from bench.freshness import stage_figures
from bench.load import Probe
from bench.observed import Observation, Seen
from bench.reader import PLACES, Sighting
from cdc_views.store.control import ControlRecord

START_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
LOAD = {"changes": 500, "seconds": 10.0, "late_p99_s": 0.01}


def moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(START_S + seconds, UTC)


def epoch(number: int, cut_s: float, published_s: float, mirrors_ms: int) -> ControlRecord:
    return ControlRecord(
        number, 1, "w", "publish", number, number, committed_at=moment(cut_s), published_at=moment(published_s),
        detail={"stage_ms": {"mirrors": mirrors_ms}, "changes": {"public.posts": 40}},
    )  # fmt: skip


def seen(number: int, due_s: float, committed_s: float, at_s: float, in_epoch: int) -> Seen:
    probe = Probe(number, START_S + due_s, START_S + committed_s)
    return Seen(probe, Sighting(START_S + at_s, dict.fromkeys(PLACES, number), in_epoch))


def test_time_of_a_commit_is_told_by_its_stages() -> None:
    observed = Observation([seen(1, 0, 0.5, 4, 7)], [], {"system": 0.5}, LOAD)
    figures = stage_figures(observed, [epoch(7, cut_s=1.5, published_s=3, mirrors_ms=250)])
    stages = {name: figures[f"stage_{name}_p50_s"] for name in ("commit", "wait", "engine", "read")}
    assert stages == {"commit": 0.5, "wait": 1, "engine": 1.5, "read": 1}
    assert sum(stages.values()) == observed.samples[0].latency_s
    assert (figures["epoch_mirrors_p50_ms"], figures["epoch_changes_p50"], figures["epochs"]) == (250, 40, 1)


def test_epochs_that_upkeep_has_dropped_are_left_out() -> None:
    observed = Observation([seen(1, 0, 1, 2, 7), seen(2, 10, 10, 12, 8)], [], {}, LOAD)
    figures = stage_figures(observed, [epoch(8, cut_s=10, published_s=11, mirrors_ms=100)])
    assert figures["epochs"] == 1
    assert figures["stage_commit_p50_s"] == 0


def test_figures_of_a_system_have_its_prefix_and_count_torn_states() -> None:
    torn = Sighting(START_S, dict.fromkeys(PLACES, 3) | {"public.posts": 4}, None)
    whole = Sighting(START_S, dict.fromkeys(PLACES, 4), None)
    observed = Observation([seen(4, 0, 0, 2, 1)], [torn, whole], {"system": 0.25}, LOAD)
    figures = observed.figures("deltars_", "mirror")
    assert figures["deltars_mirror_p50_s"] == 2
    assert figures["deltars_system_cores"] == 0.25
    assert figures["deltars_load_changes_per_s"] == 50
    assert (figures["deltars_states_seen"], figures["deltars_states_torn"]) == (2, 1)

"""The time from a commit in Postgres to a reader of Delta, under an open load."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import click

from bench import command
from bench.figures import QUANTILES, quantile
from bench.observed import Observation, observer
from bench.rig import Rig, rig
from bench.systems import CdcViews, System, systems
from cdc_views.demo.figures import changes_of
from cdc_views.metrics import STAGES
from cdc_views.store.control import ControlRecord, PublishedDetail


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rate", default=1000.0, show_default=True, type=click.FloatRange(min=1), help="Row changes per second.")
@click.option("--seconds", default=60.0, show_default=True, type=click.FloatRange(min=1), help="Measured window.")
@click.option("--warm-up", default=30.0, show_default=True, help="Seconds of the same load before the window.")
@click.option("--rows", default=200_000, show_default=True, help="Rows of each large table, without views.")
@command.views_option
@click.option("--profile", type=click.Path(path_type=Path), help="Run the engine under cProfile, into this file.")
@command.baseline_option("textbook,deltars")
@command.stack_options
def main(rate: float, seconds: float, warm_up: float, rows: int, views: str, profile: Path | None,
         baselines: list[str], state: Path | None, memory: str) -> None:  # fmt: skip
    """Measure freshness: the time from real Postgres to Delta, as seen by a reader in another process.

    The load is open: transactions of five row changes in one to five tables, at times drawn in advance (Poisson).
    Twenty times a second a transaction is a probe, which writes its number into a row of each of the five tables. The
    latency of a probe is the time from its scheduled commit until a reader (a process that keeps the tables open with
    delta-rs) has read that number, or a later one, in all five tables. Probes of the warm-up do not count. Probes of
    the window are waited for, however long they take. Upkeep runs as usual.

    \b
    mirror_p50_s, _p95_s, _p99_s, _max_s   with views the names start with epoch_
    stage_*_p50_s, _p99_s   until the commit, the cut that contains it, publication, and the end of reading
    epoch_*_p50_ms     the stages of the engine's epochs
    upkeep_ms_total    time of the engine's upkeep in the window
    compactions, checkpoints, sweeps   steps of that upkeep, for the tables and for the control log
    backlog_slope      seconds of latency gained per second of load; about 0 if the system keeps up
    system_cores, capture_cores, load_cores, reader_cores, foreign_cores   CPU seconds per second in the window
    states_torn        how many of states_seen by the reader had half of a transaction
    equal              after the window, every mirror equals Postgres and every view equals Postgres's answer

    The baselines then run on the same topics, one at a time, under the same load, with the same cores, heap and table
    settings. baseline_* is the textbook Structured Streaming job (foreachBatch, MERGE per table). deltars_* is the
    delta-rs loop (consume for 0.2 s, last row per key, merge per table; delta-rs writes no deletion vectors).

    Example: python -m bench.freshness --rate 1000 --seconds 60 --views none
    """
    options = {"rate": rate, "seconds": seconds, "warm_up": warm_up, "rows": rows, "views": views}

    def measure() -> dict[str, Any]:
        with rig(state, rows, memory, with_views=views == "demo") as ready:
            return _measure(ready, rate, warm_up, seconds, profile, baselines)

    command.run("freshness", options, measure)


def _measure(
    rig: Rig, rate: float, warm_up_s: float, seconds: float, profile: Path | None, baselines: Sequence[str]
) -> dict[str, Any]:
    command.tell(f"snapshot of {rig.contents.rows} rows")
    rig.capture()
    figures: dict[str, Any] = {}
    number = 1
    for system in systems(rig, baselines, profile):
        more, observed, number = _observe(rig, system, rate, warm_up_s, seconds, number)
        figures |= more
        if isinstance(system, CdcViews):
            published = system.published()
            figures |= stage_figures(observed, published) | upkeep_figures(observed, published)
    return figures


def _observe(
    rig: Rig, system: System, rate: float, warm_up_s: float, seconds: float, number: int
) -> tuple[dict[str, Any], Observation, int]:
    """Start a system and observe it. Returns its figures, the observation, and the next probe number."""
    command.tell(f"{system.name}: from nothing to the end of the topics")
    with system.running():
        with observer(rig, system, number) as watching:
            watching.wait_ready()
            command.tell(f"{system.name}: {rate:g} changes a second for {warm_up_s:g} and {seconds:g} s")
            observed = watching.observe(rate, warm_up_s, seconds)
        equal = system.is_equal()
    figures = observed.figures(system.prefix, system.word) | {f"{system.prefix}equal": equal}
    if not equal:
        command.tell(str(system.describe_differences()))
    return figures, observed, watching.next_number


def stage_figures(observed: Observation, published: Sequence[ControlRecord]) -> dict[str, Any]:
    """Where the time of a commit went: quantiles over the probes, and medians over the epochs that contain them."""
    epochs = {record.epoch: record for record in published}
    parts: dict[str, list[float]] = {"commit": [], "wait": [], "engine": [], "read": []}
    for seen in observed.seen:
        record = epochs.get(seen.sighting.epoch or 0)
        if record is None:
            continue  # so old that upkeep has dropped its record
        assert record.committed_at is not None
        assert record.published_at is not None
        cut_at, published_at = record.committed_at.timestamp(), record.published_at.timestamp()
        parts["commit"].append(seen.probe.committed_at - seen.probe.due_at)
        parts["wait"].append(cut_at - seen.probe.committed_at)
        parts["engine"].append(published_at - cut_at)
        parts["read"].append(seen.sighting.at - published_at)
    inside = [epochs[number] for number in sorted({seen.sighting.epoch or 0 for seen in observed.seen} & epochs.keys())]
    spent = [stages for record in inside if (stages := PublishedDetail.read(record).stage_ms)]
    return {
        **{
            f"stage_{name}_{part}_s": round(quantile(values, QUANTILES[part]), 3)
            for name, values in parts.items()
            for part in ("p50", "p99")
            if values
        },
        **{f"epoch_{stage}_p50_ms": median(each.get(stage, 0) for each in spent) for stage in STAGES if spent},
        "epoch_changes_p50": median(map(changes_of, inside)) if inside else 0,
        "epochs": len(inside),
    }


def upkeep_figures(observed: Observation, published: Sequence[ControlRecord]) -> dict[str, Any]:
    """Upkeep between the epochs of the window: its time, and its steps for tables and control log."""
    first, last = observed.window
    upkeep = [
        PublishedDetail.read(record).upkeep
        for record in published
        if record.published_at is not None and first <= record.published_at.timestamp() < last
    ]
    steps = {"compactions": "compaction", "checkpoints": "checkpoint", "sweeps": "sweep"}
    return {
        "upkeep_ms_total": round(sum(each.get("ms", 0.0) for each in upkeep)),
        **{name: sum(each.get(step, 0) for each in upkeep) for name, step in steps.items()},
    }


if __name__ == "__main__":
    main()

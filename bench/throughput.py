"""The highest rate of row changes that mirrors and views keep up with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from bench import command
from bench.figures import backlog_slope, quantile
from bench.observed import Observation, Observer, observer
from bench.rig import Rig, rig
from bench.systems import System, systems

# Growth of the latency per elapsed second: a load of 100 s would be 5 s behind at its end.
MOST_SLOPE: Final = 0.05
# A generator that is this late produces less than the wanted rate.
MOST_LATE_S: Final = 1.0
HALVINGS: Final = 2

# Above this rate transactions are larger, otherwise the machine would be busy with transactions alone.
_MOST_TRANSACTIONS_PER_S: Final = 400


@dataclass(frozen=True)
class Trial:
    """One tried rate."""

    rate: float
    observation: Observation

    @property
    def changes_per_s(self) -> int:
        """Row changes per second that were really committed."""
        return self.observation.load_changes_per_s

    @property
    def slope(self) -> float:
        """Seconds of latency gained per second."""
        return backlog_slope(self.observation.samples)

    @property
    def is_sustained(self) -> bool:
        """Whether the load reached its rate and the latency did not grow."""
        return self.slope <= MOST_SLOPE and self.observation.load["late_p99_s"] <= MOST_LATE_S

    def as_json(self) -> dict[str, Any]:
        """An entry of the list of trials."""
        p50 = quantile([sample.latency_s for sample in self.observation.samples], 0.5)
        return {"changes_per_s": self.changes_per_s, "backlog_slope": self.slope, "mirror_p50_s": round(p50, 3),
                "load_late_p99_s": self.observation.load["late_p99_s"],
                "system_cores": round(self.observation.cores["system"], 3), "sustained": self.is_sustained}  # fmt: skip


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--from", "first", default=1000.0, show_default=True, help="First rate to try.")
@click.option("--to", "last", default=32_000.0, show_default=True, help="Highest rate to try.")
@click.option("--seconds", default=30.0, show_default=True, help="Length of each trial's window.")
@click.option("--warm-up", default=10.0, show_default=True, help="Seconds of the same load before each window.")
@click.option("--rows", default=200_000, show_default=True, help="Rows of each large table, without views.")
@command.views_option
@command.baseline_option("")
@command.stack_options
def main(first: float, last: float, seconds: float, warm_up: float, rows: int, views: str, baselines: list[str],
         state: Path | None, memory: str) -> None:  # fmt: skip
    """Measure throughput: the highest rate of row changes without a growing backlog.

    The load is that of `freshness`: open, with times drawn in advance. Above 2,000 changes per second its transactions
    are larger. The rate is doubled until the latency of the probes grows by more than 0.05 s per second of load, or the
    generator itself is late. Then the middle between the best and the failed rate is tried, twice. The engine keeps
    running, so upkeep has its share. Each trial is drained before the next one starts.

    \b
    throughput_changes_per_s   really committed changes per second of the best trial; 0 if the first trial failed
    trials                     all tried rates
    equal                      every row of every mirror equals Postgres, and every view Postgres's answer, after the
                               last trial

    With --baselines the same for these, one after the other: baseline_* (textbook job), deltars_*.

    Example: python -m bench.throughput --seconds 30
    """
    options = {"from": first, "to": last, "seconds": seconds, "warm_up": warm_up, "rows": rows, "views": views}

    def measure() -> dict[str, Any]:
        figures: dict[str, Any] = {}
        with rig(state, rows, memory, with_views=views == "demo") as ready:
            command.tell(f"snapshot of {ready.contents.rows} rows")
            ready.capture()
            number = 1
            for system in systems(ready, baselines):
                more, number = _measure(ready, system, first, last, warm_up, seconds, number)
                figures |= more
        return figures

    command.run("throughput", options, measure)


def _measure(
    rig: Rig, system: System, first: float, last: float, warm_up_s: float, seconds: float, number: int
) -> tuple[dict[str, Any], int]:
    with system.running():
        with observer(rig, system, number) as watching:
            watching.wait_ready()
            trials = search(lambda rate: _trial(watching, rate, warm_up_s, seconds), first, last)
        equal = system.is_equal()
    best = max((trial.changes_per_s for trial in trials if trial.is_sustained), default=0)
    figures = {"throughput_changes_per_s": best, "trials": [trial.as_json() for trial in trials], "equal": equal}
    return {f"{system.prefix}{name}": value for name, value in figures.items()}, watching.next_number


def search(attempt: Callable[[float], Trial], first: float, last: float) -> list[Trial]:
    """Double the rate until it is not sustained, then search between. Returns all trials in order."""
    trials = [attempt(first)]
    while trials[-1].is_sustained and trials[-1].rate * 2 <= last:
        trials.append(attempt(trials[-1].rate * 2))
    if trials[-1].is_sustained or len(trials) == 1:
        return trials
    good, bad = trials[-2].rate, trials[-1].rate
    for _ in range(HALVINGS):
        trials.append(attempt((good + bad) / 2))
        good, bad = (trials[-1].rate, bad) if trials[-1].is_sustained else (good, trials[-1].rate)
    return trials


def _trial(watching: Observer, rate: float, warm_up_s: float, seconds: float) -> Trial:
    trial = Trial(rate, watching.observe(rate, warm_up_s, seconds, size=max(5, round(rate / _MOST_TRANSACTIONS_PER_S))))
    command.tell(f"{trial.changes_per_s} changes a second: {'sustained' if trial.is_sustained else 'not sustained'}")
    return trial


if __name__ == "__main__":
    main()

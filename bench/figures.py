"""Quantiles and slopes of measured values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

QUANTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}


@dataclass(frozen=True)
class Sample:
    """A transaction of the load: when its commit was due, in seconds of the clock, and how long until it was seen.

    `latency_s` counts from the scheduled time, so a stall cannot hide in a late start.
    """

    due_s: float
    latency_s: float


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least `part` of all values do not exceed. Raises ValueError if there are none."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def latency_figures(prefix: str, samples: Sequence[Sample]) -> dict[str, Any]:
    """p50, p95, p99 and maximum of the latency in seconds, by name: `<prefix>p50_s` ..."""
    latencies = [sample.latency_s for sample in samples]
    return {f"{prefix}{name}_s": round(quantile(latencies, part), 3) for name, part in QUANTILES.items()}


def backlog_slope(samples: Sequence[Sample]) -> float:
    """Seconds of latency gained per second of load, by least squares: about 0 if the system keeps up.

    0 if there are fewer than two points in time.
    """
    count = len(samples)
    mean_due = sum(sample.due_s for sample in samples) / max(1, count)
    mean_latency = sum(sample.latency_s for sample in samples) / max(1, count)
    spread = sum((sample.due_s - mean_due) ** 2 for sample in samples)
    if not spread:
        return 0.0
    together = sum((sample.due_s - mean_due) * (sample.latency_s - mean_latency) for sample in samples)
    return round(together / spread, 4)

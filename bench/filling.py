"""Systems that read the topics from beginning to end: how long it takes, and whether the result is right."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bench import command
from bench.rig import Rig
from bench.systems import CdcViews, System


@dataclass(frozen=True)
class Filling:
    """One system's pass through the topics.

    `total_s` is the time from the start of its process to its end, unless the caller says otherwise. `reading_s` is the
    part in which it read and wrote, without its start. `equal`: every row of every mirror equals Postgres.
    """

    system: System
    total_s: float
    reading_s: float
    equal: bool

    def figures(self, word: str, count: int) -> dict[str, Any]:
        """Rates for `count` items; `word` names them, as in "rows" or "changes"."""
        prefix = self.system.prefix
        return {
            f"{prefix}{word}_per_s": round(count / self.reading_s),
            f"{prefix}{word}_with_start_per_s": round(count / self.total_s),
            f"{prefix}total_s": round(self.total_s, 2),
            f"{prefix}reading_s": round(self.reading_s, 2),
            f"{prefix}equal": self.equal,
        }


def fill(system: System) -> Filling:
    """Let a system fill its own tables from the topics, while Postgres is idle."""
    command.tell(f"{system.name}: from nothing to the end of the topics")
    began = time.monotonic()
    with system.running(until_end=True):
        system.wait_end()
        return _filling(system, time.monotonic() - began)


def fill_with_capture(rig: Rig) -> tuple[float, Filling]:
    """Let cdc_views start the capture itself, as its users do.

    Returns Debezium's seconds for the snapshot, and the filling. The total of the filling starts when the topics are
    full and ends when complete mirrors are published.
    """
    rig.prepare()
    system = CdcViews(rig)
    command.tell(f"{system.name}: capture and mirrors")
    with system.running(until_end=True):
        debezium_s, full_at = rig.watch_capture(), datetime.now(UTC)
        system.wait_end()
        complete_at = system.published()[-1].published_at
        assert complete_at is not None
        return debezium_s, _filling(system, (complete_at - full_at).total_seconds())


def _filling(system: System, total_s: float) -> Filling:
    equal = system.is_equal()
    if not equal:
        command.tell(str(system.describe_differences()))
    return Filling(system, total_s, system.reading_s(), equal)

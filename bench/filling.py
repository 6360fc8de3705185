"""Systems that take what is in the topics from their beginning to their end: how long, and is it right."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from bench import command
from bench.rig import Rig
from bench.systems import System, systems


@dataclass(frozen=True)
class Filling:
    """One system's way through the topics.

    `total_s` is from the start of its process to its end, `reading_s` what of that it read and wrote, its start not
    counted; `equal` whether every row of every mirror equals Postgres.
    """

    system: System
    total_s: float
    reading_s: float
    equal: bool

    def figures(self, word: str, count: int) -> dict[str, Any]:
        """Rates of `count` things; `word` says what, as in rows or changes."""
        prefix = self.system.prefix
        return {
            f"{prefix}{word}_per_s": round(count / self.reading_s),
            f"{prefix}{word}_with_start_per_s": round(count / self.total_s),
            f"{prefix}total_s": round(self.total_s, 2),
            f"{prefix}reading_s": round(self.reading_s, 2),
            f"{prefix}equal": self.equal,
        }


def fill(rig: Rig, baselines: list[str]) -> list[Filling]:
    """Let cdc_views and then the baselines fill tables of their own from the topics; Postgres is idle."""
    return [_fill(system) for system in systems(rig, baselines)]


def _fill(system: System) -> Filling:
    command.tell(f"{system.name}: from nothing to the end of the topics")
    began = time.monotonic()
    system.start(until_end=True)
    try:
        system.wait_end()
        total_s = time.monotonic() - began
        equal = system.is_equal()
    finally:
        system.stop()
    if not equal:
        command.tell(str(system.describe_differences()))
    return Filling(system, total_s, system.reading_s(), equal)

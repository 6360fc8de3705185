"""Names and measures of what the engine does."""

from __future__ import annotations

import time
from typing import Final

STAGES: Final = ("cut", "deltas", "mirrors", "views", "publish")


class Stages:
    """How long each stage of an epoch took, in the order in which they end."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._seconds: dict[str, float] = {}

    def done(self, stage: str) -> None:
        """The stage that ran since the last call has ended."""
        assert stage in STAGES, f"unknown stage {stage}"
        now = time.monotonic()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def milliseconds(self) -> dict[str, int]:
        """Whole milliseconds by stage."""
        return {stage: round(seconds * 1000) for stage, seconds in self._seconds.items()}

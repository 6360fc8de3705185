"""The time, as one thing that can be another one: the system's clock, or one that a test moves by hand.

Deadlines of questions to other processes are real time whatever the clock says, since their answers are.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final, Protocol


class Clock(Protocol):
    """Who knows the time."""

    def now(self) -> datetime:
        """Tell the time of day, in UTC."""

    def monotonic(self) -> float:
        """Tell the seconds since some moment, which no correction of the time of day moves."""

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Tell the time of day, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Tell the seconds since some moment, which no correction of the time of day moves."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""
        time.sleep(seconds)


SYSTEM_CLOCK: Final[Clock] = SystemClock()

"""The clock as an interface: the system's clock, or one that a test moves by hand.

A deadline for the answer of another process is always in real time, since the answer comes in real time.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final, Protocol


class Clock(Protocol):
    """A source of the time."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; corrections of the time of day do not affect them."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some fixed moment; corrections of the time of day do not affect them."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


SYSTEM_CLOCK: Final[Clock] = SystemClock()

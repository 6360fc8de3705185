"""Services that are away for a while, and a JVM that was lost: a running engine waits, and starts again from what is
published.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cdc_views.clock import SYSTEM_CLOCK, Clock
from cdc_views.errors import CdcViewsError, ConnectorFailed, DriverLost, MarkerTimeout, NotRunning, SourceUnreachable

AWAY: Final = (SourceUnreachable, NotRunning, MarkerTimeout, ConnectorFailed, DriverLost)
"""What is raised where Postgres, Kafka, Connect or Spark's JVM is away. All else is a finding, and ends the engine."""

_PAUSE_S: Final = 1.0


class Patience:
    """Lasts for `limit_s` seconds since something was published, and not at all before: a first start fails at once."""

    def __init__(
        self, limit_s: float, clock: Clock = SYSTEM_CLOCK, say: Callable[[str], None] = lambda text: None
    ) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._say = say
        self._until_s: float | None = None

    def renew(self) -> None:
        """Something was published."""
        self._until_s = self._clock.monotonic() + self._limit_s

    def wait(self, error: CdcViewsError) -> None:
        """Wait for a moment, or raise the error if patience is at its end."""
        if self._until_s is None or self._clock.monotonic() >= self._until_s:
            raise error
        self._say(f"{type(error).__name__}: {error.message}; trying again")
        self._clock.sleep(_PAUSE_S)

"""Patience with services that are down for a while, and with a lost JVM: a running engine waits, and restarts from the
last published epoch.
"""

from __future__ import annotations

import logging
from typing import Final

from cdc_views.errors import CdcViewsError, ConnectorFailed, DriverLost, MarkerTimeout, NotRunning, SourceUnreachable
from cdc_views.host.clock import SYSTEM_CLOCK, Clock

AWAY: Final = (SourceUnreachable, NotRunning, MarkerTimeout, ConnectorFailed, DriverLost)
"""Raised if Postgres, Kafka, Connect or the JVM of Spark is down. Every other error ends the engine."""

_PAUSE_S: Final = 1.0
_LOGGER: Final = logging.getLogger(__name__)


class Patience:
    """Lasts for `limit_s` seconds after the last published epoch. Before the first one, a start fails at once."""

    def __init__(self, limit_s: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._until_s: float | None = None

    def renew(self) -> None:
        """Note that an epoch was published."""
        self._until_s = self._clock.monotonic() + self._limit_s

    def wait(self, error: CdcViewsError) -> None:
        """Wait for a moment, or raise the error if patience has run out."""
        if self._until_s is None or self._clock.monotonic() >= self._until_s:
            raise error
        name = type(error).__name__
        _LOGGER.warning("%s: %s; trying again", name, error.message, extra={"fields": {"error": name}})
        self._clock.sleep(_PAUSE_S)

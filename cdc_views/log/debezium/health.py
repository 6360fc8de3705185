"""Conditions under which the log would never deliver, or would deliver wrong data: checked while waiting
and reading.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

from cdc_views.base.lsn import Lsn
from cdc_views.config import LogSettings
from cdc_views.errors import RESET, NotRunning, SlotChanged
from cdc_views.log.debezium.connect import ConnectClient, require_not_failed
from cdc_views.log.kafka.record import Record

_INTERVAL_S: Final = 2.0
# A worker that is starting may accept requests long before it answers them.
_TIMEOUT_S: Final = 1.0


class WatchedSlot(Protocol):
    """Watches the connector's slot continuously (cdc_views.source.slot_watch.SlotWatch)."""

    def require(self) -> None:
        """Raise SlotChanged if the slot is not what it was."""

    def confirmed_between(self, commit: int, change: int) -> Lsn | None:
        """Return a position above `commit` and up to `change` that was confirmed to the slot, or None."""

    def forget(self, position: Lsn) -> None:
        """Forget what was confirmed up to this position: nobody will ask for it."""


class LogHealth:
    """Checks the connector, the topics and the slot."""

    def __init__(self, settings: LogSettings, topics: Callable[[], None], slot: WatchedSlot | None) -> None:
        """`topics` raises what it finds wrong with the topics; `slot` is None if nothing watches it."""
        self._connector = settings.connector
        self._connect = ConnectClient(settings.connect_url, timeout_s=_TIMEOUT_S)
        self._topics = topics
        self._slot = slot
        self._due_s = 0.0

    def begin(self) -> None:
        """Begin a wait: most waits are over before anything needs to be checked."""
        self._due_s = time.monotonic() + _INTERVAL_S

    def look(self) -> None:
        """Check the slot, and what takes longer if it is due. Raises ConnectorFailed, SlotChanged, TopicChanged."""
        if self._slot is not None:
            self._slot.require()
        if (now := time.monotonic()) < self._due_s:
            return
        # Services that are restarting do not answer; the wait has a deadline.
        with suppress(NotRunning):
            require_not_failed(self._connector, self._connect.task_state(self._connector))
        # In a topic that was deleted and created again, a consumer may wait for offsets that it will not have for long.
        with suppress(NotRunning):
            self._topics()
        self._due_s = now + _INTERVAL_S

    def require_follows(self, record: Record) -> None:
        """Raise SlotChanged if a change was made after a confirmed position, but follows a commit before
        that position.
        """
        order = record.order
        if self._slot is None or order is None or order.commit is None or order.lsn is None:
            return
        confirmed = self._slot.confirmed_between(order.commit, order.lsn)
        if confirmed is not None:
            raise SlotChanged(
                f"{record.log_offset}: follows the commit at {Lsn(order.commit)}, wanted the one at {confirmed}, "
                "which the slot has confirmed",
                hint=f"somebody moved the slot, or created it again, and changes are lost; {RESET}",
            )

    def forget(self, position: Lsn) -> None:
        """Take note that everything up to there is in a cut."""
        if self._slot is not None:
            self._slot.forget(position)

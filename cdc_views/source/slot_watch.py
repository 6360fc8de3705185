"""Watches the slot while an engine runs, in a thread of its own.

A connector confirms a commit to its slot once that commit, and everything before it, is stored in Kafka. It resumes
after that commit. So in the log, a change that was made after a confirmed position follows the confirmed commit or a
later one. If it follows an earlier commit, somebody else has moved the slot, and the changes in between were never
sent.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from contextlib import suppress
from typing import Final

import psycopg

from cdc_views.base.lsn import Lsn
from cdc_views.errors import SlotChanged, SourceUnreachable
from cdc_views.source.catalog import SourceIdentity, read_identity
from cdc_views.source.connection import Connection, connect, require_primary
from cdc_views.source.slot import finding, read_slot

# Often enough: a restarted connector takes seconds until it confirms something.
_INTERVAL_S: Final = 0.25
# A server that does not answer must not delay the end of an engine.
_JOIN_LIMIT_S: Final = 1.0
# The same time after which a connection to a silent server counts as lost.
_BLIND_LIMIT_S: Final = 30.0


class SlotWatch:
    """Reads the slot several times a second in a thread of its own, until it is closed.

    The server may be down for a while. If the DSN leads to another server for a while, its answers are ignored.
    """

    def __init__(self, dsn: str, name: str, identity: SourceIdentity | None = None) -> None:
        """Start the thread. `identity` is that of the server; without it, any server is accepted."""
        self._identity = identity
        self._dsn = dsn
        self._name = name
        self._finding: SlotChanged | None = None
        self._confirmed: list[Lsn] = []  # ascending; only the thread replaces it
        self._floor = Lsn(0)
        self._looked_s = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"slot {name}", daemon=True)
        self._thread.start()

    def require(self) -> None:
        """Raise SlotChanged if the slot was gone at any time, or if the server has invalidated it.

        Raises SourceUnreachable if the slot could not be read for too long.
        """
        if self._finding is not None:
            raise self._finding
        if (blind_s := time.monotonic() - self._looked_s) > _BLIND_LIMIT_S:
            raise SourceUnreachable(
                f'replication slot "{self._name}" could not be read for {blind_s:.0f} s',
                hint="does the server accept another connection, and may the role read pg_replication_slots?",
            )

    def confirmed_between(self, commit: int, change: int) -> Lsn | None:
        """Return a confirmed position that was seen above `commit` and up to `change`, or None."""
        confirmed = self._confirmed
        at = bisect_right(confirmed, commit)
        return confirmed[at] if at < len(confirmed) and confirmed[at] <= change else None

    def forget(self, position: Lsn) -> None:
        """Forget positions up to this one; nobody will ask about them again."""
        self._floor = position

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(_JOIN_LIMIT_S)

    def _run(self) -> None:
        while not self._ended.wait(_INTERVAL_S):
            with suppress(SourceUnreachable, psycopg.Error), connect(self._dsn) as connection:
                if self._identity not in (None, read_identity(connection)):
                    continue
                while self._finding is None and not self._ended.wait(_INTERVAL_S):
                    self._look(connection)

    def _look(self, connection: Connection) -> None:
        slot = read_slot(connection, self._name)
        if slot is None:
            require_primary(connection)
        self._finding = finding(self._name, slot)
        self._looked_s = time.monotonic()
        last = self._confirmed[-1] if self._confirmed else self._floor
        # After a crash, a server reports an older position.
        if slot is not None and slot.confirmed_flush_lsn is not None and slot.confirmed_flush_lsn > last:
            kept = (position for position in self._confirmed if position > self._floor)
            self._confirmed = [*kept, slot.confirmed_flush_lsn]

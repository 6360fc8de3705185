"""What becomes of a slot while an engine runs, seen whatever that is busy with.

A connector confirms a commit to its slot once that is stored in Kafka with all before it, and resumes behind it. So a
change that was made after a confirmed position follows that commit, or a later one. One that follows an earlier commit
is the first after somebody else moved the slot, and what lies between was never sent.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from contextlib import suppress
from typing import Final

import psycopg

from cdc_views.errors import SlotChanged, SourceUnreachable
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceIdentity, read_identity
from cdc_views.source.connection import Connection, connect, require_primary
from cdc_views.source.slot import finding, read_slot

# A connector that is started again takes seconds to confirm something.
_INTERVAL_S: Final = 0.25
# A server that does not answer must not hold up the end of an engine.
_JOIN_LIMIT_S: Final = 1.0
# As long as a server may be silent before a connection to it counts as lost.
_BLIND_LIMIT_S: Final = 30.0


class SlotWatch:
    """Reads the slot some times a second in a thread of its own, until it is closed. A server may be away.

    What another server says that the DSN leads to for a while is not heard.
    """

    def __init__(self, dsn: str, name: str, identity: SourceIdentity | None = None) -> None:
        """`identity` is that of the server; without it any is right."""
        self._identity = identity
        self._dsn = dsn
        self._name = name
        self._finding: SlotChanged | None = None
        self._confirmed: list[Lsn] = []  # only grows, and is replaced by its thread alone
        self._floor = Lsn(0)
        self._looked_s = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"slot {name}", daemon=True)
        self._thread.start()

    def require(self) -> None:
        """Raise SlotChanged if the slot was gone at any time, or the server has invalidated it.

        Raises SourceUnreachable if it could not be looked at for long.
        """
        if self._finding is not None:
            raise self._finding
        if (blind_s := time.monotonic() - self._looked_s) > _BLIND_LIMIT_S:
            raise SourceUnreachable(
                f'replication slot "{self._name}" could not be looked at for {blind_s:.0f} s',
                hint="does the server take another connection, and may the role read pg_replication_slots?",
            )

    def confirmed_between(self, commit: int, change: int) -> Lsn | None:
        """Give a position above `commit` and up to `change` at which the slot was seen, or None."""
        confirmed = self._confirmed
        at = bisect_right(confirmed, commit)
        return confirmed[at] if at < len(confirmed) and confirmed[at] <= change else None

    def forget(self, position: Lsn) -> None:
        """No more is asked of what was confirmed up to this position."""
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
        # After a crash a server knows an older position.
        if slot is not None and slot.confirmed_flush_lsn is not None and slot.confirmed_flush_lsn > last:
            kept = (position for position in self._confirmed if position > self._floor)
            self._confirmed = [*kept, slot.confirmed_flush_lsn]

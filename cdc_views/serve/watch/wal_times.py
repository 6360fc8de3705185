"""When the WAL of the source ended where: from that, positions become seconds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from cdc_views.base.lsn import Lsn
from cdc_views.store.control import ControlRecord

_RATE_OVER: Final = timedelta(minutes=10)
_MOST: Final = 2000


class WalTimes:
    """Moments, in order, and the end of the WAL at each."""

    def __init__(self, records: Iterable[ControlRecord] = ()) -> None:
        """Begin with what published records of the control log say. Their times are of the source's clock."""
        self._ends: list[Lsn] = []
        self._times: list[datetime] = []
        for record in records:
            if record.published_at is not None and record.complete_to is not None and record.committed_at is not None:
                self.add(record.complete_to, record.committed_at)

    def add(self, end: Lsn, at: datetime) -> None:
        """Note that the WAL ended at `end`; moments that are not later than the last one are ignored."""
        if self._ends and end < self._ends[-1]:  # another server, after a failover or a restore
            self._ends, self._times = [], []
        if self._times and at <= self._times[-1]:
            return
        self._ends.append(end)
        self._times.append(at)
        if len(self._times) > _MOST:  # the newest and every other of the rest: an outage may last for days
            self._ends, self._times = self._ends[-1::-2][::-1], self._times[-1::-2][::-1]

    def forget_before(self, position: Lsn) -> None:
        """Forget what nobody will ask for once this position is confirmed, but for what the rate is taken from."""
        if self._times:
            kept_from = min(self._before(position), bisect_right(self._times, self._times[-1] - _RATE_OVER))
            del self._ends[: max(0, kept_from)], self._times[: max(0, kept_from)]

    def since(self, position: Lsn) -> datetime | None:
        """When the WAL last ended at or before a position: nothing after the position is older.

        If all known moments are later, the first of them; None if no moment is known.
        """
        return self._times[max(0, self._before(position))] if self._times else None

    def bytes_per_second(self) -> float | None:
        """How much WAL was written in each second of the last ten minutes, or of the last two moments."""
        if len(self._times) < 2:
            return None
        first = min(bisect_right(self._times, self._times[-1] - _RATE_OVER), len(self._times) - 2)
        return (self._ends[-1] - self._ends[first]) / (self._times[-1] - self._times[first]).total_seconds()

    def _before(self, position: Lsn) -> int:
        return bisect_right(self._ends, position) - 1

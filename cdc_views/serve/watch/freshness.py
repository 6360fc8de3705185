"""How old each table is as readers see it, in seconds of commit time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from cdc_views.store.control import ControlRecord


class Freshness:
    """The last published record, and for each mirror and view the commit time of the epoch whose rows it has.

    A table that is stopped, has failed or is being built keeps the time of the last epoch in which it was not; if no
    known record has that epoch, the time of the first known one. So it may be older than this says, but never fresher.
    """

    def __init__(self, records: Iterable[ControlRecord] = ()) -> None:
        self.last: ControlRecord | None = None
        self._times: dict[str, datetime] = {}
        for record in records:
            self.take(record)

    def take(self, record: ControlRecord) -> None:
        """Take the next record of the control log; one that publishes nothing changes nothing."""
        if record.published_at is None or record.committed_at is None:
            return
        self._times = {
            name: self._times.get(name, record.committed_at) if table.is_standing else record.committed_at
            for name, table in record.mirrors_and_views.items()
        }
        self.last = record

    def seconds(self, now: datetime) -> dict[str, float]:
        """How long ago the source was as each table is; never below 0, since the clocks of both may differ."""
        return {name: max(0.0, (now - time).total_seconds()) for name, time in self._times.items()}

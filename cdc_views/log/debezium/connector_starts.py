"""The starts of the connector, and the last change that the log had before each start.

At every start but the first one, the first notification of Debezium says that the snapshot is skipped. The connector
then continues after the last change that was stored, by its WAL position, and may skip rows that share that position;
engine/input/lost_rows.py asks the source whether it did. Which records came before a start is decided by the
timestamps that the worker gives to its records. Where several workers share a connector, their clocks must agree to
within the duration of a start, about a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from confluent_kafka.admin import AdminClient

from cdc_views.config import LogSettings
from cdc_views.errors import TopicChanged
from cdc_views.log.cuts.ranges import read_piece, read_pieces
from cdc_views.log.debezium.notifications import notification_partition, read_notification
from cdc_views.log.kafka.record import Offsets, Record, TopicPartition, parse_records
from cdc_views.log.kafka.topics import begin_offsets, end_offsets, offsets_at

_SKIPPED: Final = "SKIPPED"
# How far back to look for the last change of a partition, and by which factor to extend that. A worker that was killed
# leaves aborted transactions behind, of as many records as it polls at once.
_NEAR: Final = 64
_FARTHER: Final = 64


class ConnectorStarts:
    """The starts that the notifications in `partition` report, except those that a cut has left behind."""

    def __init__(self, settings: LogSettings, admin: AdminClient) -> None:
        self.partition = notification_partition(settings)
        self._settings = settings
        self._admin = admin
        self._next: int | None = None
        self._times_ms: list[int] = []

    def read_to(self, end: int) -> None:
        """Take in the notifications before this offset. Raises TopicChanged."""
        known = self._next or 0
        if end < known:
            raise TopicChanged(
                f'topic "{self.partition.topic}" ends at offset {end}, wanted at least {known}',
                hint="it was created again, so it is not known whether the connector has skipped rows when it was "
                "restarted: if it was restarted since the last epoch, rebuild the tables from a snapshot; then start "
                "the engine again",
            )
        if known < end:
            begin = max(known, begin_offsets(self._admin, [self.partition])[self.partition])
            for found in read_piece(self._settings, self.partition, begin, end):
                self._times_ms += [
                    each.timestamp()[1] for each in found if read_notification(each).get("type") == _SKIPPED
                ]
        self._next = end

    def changes_before(self, start: Offsets, end: Offsets) -> list[Record]:
        """Return the last change before each start, of those changes that lie between these offsets."""
        if self._next is None:
            self.read_to(end_offsets(self._admin, [self.partition], committed=True)[self.partition])
        found: list[Record] = []
        for index in reversed(range(len(self._times_ms))):
            last = self._last_change(start, offsets_at(self._admin, list(start), self._times_ms[index]))
            if last is None:  # no change since `start`, so none before an earlier start either
                del self._times_ms[: index + 1]
                break
            if last.offset < end[TopicPartition(last.topic, last.partition)]:
                found.append(last)
        return found

    def _last_change(self, start: Offsets, end: Offsets) -> Record | None:
        """The last change between these offsets in the source's history."""
        return max(self._last_changes(start, end), key=_order, default=None)

    def _last_changes(self, start: Offsets, end: Offsets) -> Iterator[Record]:
        """Yield the last change of each partition between these offsets."""
        wanted = {each: offset for each, offset in end.items() if offset > start[each]}
        span = _NEAR
        while wanted:
            begin = {each: max(start[each], offset - span) for each, offset in wanted.items()}
            changes = {
                TopicPartition(record.topic, record.partition): record
                for found in read_pieces(self._settings, begin, wanted)
                for record in parse_records(found)
                if record.order is not None and record.offset < end[TopicPartition(record.topic, record.partition)]
            }
            yield from changes.values()
            wanted = {each: offset for each, offset in begin.items() if each not in changes and offset > start[each]}
            span *= _FARTHER


def _order(record: Record) -> tuple[int, int, int]:
    assert record.order is not None
    return record.order.commit or 0, record.order.lsn or 0, record.timestamp_ms

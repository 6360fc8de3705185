"""The starts of the connector, and the last change that the log had before each.

Debezium says in its notifications that it skips the snapshot, as the first thing of every start but the first one. It
goes on behind the last change that was stored, by its position in the WAL, and may leave out what shares that position:
engine/lost_rows.py asks the source whether it did. What was before a start is told by the times that the worker gives
to its records: where workers share a connector their clocks must agree better than a start takes, about a second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from cdc_views.config import LogSettings
from cdc_views.log.ranges import read_piece, read_pieces
from cdc_views.log.record import Offsets, RawRecord, Record, TopicPartition, parse_records
from cdc_views.log.topics import admin_client, begin_offsets, end_offsets, notification_topic, offsets_at

_SKIPPED: Final = "SKIPPED"
# How far back one looks for a partition's last change, and how much farther each time. A killed worker leaves
# transactions that were aborted behind it, of as many records as it polls at once.
_NEAR: Final = 64
_FARTHER: Final = 64


class Starts:
    """The starts that `partition`, the notifications, tells of; forgets those that a cut has left behind."""

    def __init__(self, settings: LogSettings, partitions: Sequence[TopicPartition]) -> None:
        """`partitions` are those of all tables of the connector."""
        self.partition = TopicPartition(notification_topic(settings.topic_prefix), 0)
        self._settings = settings
        self._partitions = partitions
        self._admin = admin_client(settings)
        self._next: int | None = None
        self._times_ms: list[int] = []

    def read_to(self, end: int) -> None:
        """Take in the notifications before this offset."""
        if self._next is None:
            self._next = begin_offsets(self._admin, [self.partition])[self.partition]
        if self._next < end:
            for found in read_piece(self._settings, self.partition, self._next, end):
                self._times_ms += [notification.timestamp()[1] for notification in found if _is_start(notification)]
            self._next = end

    def changes_before(self, start: Offsets, end: Offsets) -> list[Record]:
        """The last change before each start, of those that lie between these offsets."""
        if self._next is None:
            self.read_to(end_offsets(self._admin, [self.partition], committed=True)[self.partition])
        found: list[Record] = []
        for index in reversed(range(len(self._times_ms))):
            before = offsets_at(self._admin, self._partitions, self._times_ms[index])
            if all(before[each] <= start[each] for each in start):
                del self._times_ms[: index + 1]
                break
            last = max(self._last_changes(start, before), key=_order, default=None)
            if last is not None and last.offset < end.get(TopicPartition(last.topic, last.partition), 0):
                found.append(last)
        return found

    def _last_changes(self, start: Offsets, end: Offsets) -> Iterator[Record]:
        """The last change of each partition between these offsets."""
        wanted = {each: offset for each, offset in end.items() if offset > start.get(each, 0)}
        span = _NEAR
        while wanted:
            begin = {each: max(start.get(each, 0), offset - span) for each, offset in wanted.items()}
            changes = {
                TopicPartition(record.topic, record.partition): record
                for found in read_pieces(self._settings, begin, wanted)
                for record in parse_records(found)
                if record.order is not None
            }
            yield from changes.values()
            wanted = {
                each: offset for each, offset in begin.items() if each not in changes and offset > start.get(each, 0)
            }
            span *= _FARTHER


def _is_start(notification: RawRecord) -> bool:
    told = orjson.loads(notification.value() or b"{}")
    return bool(told.get("payload", told).get("type") == _SKIPPED)


def _order(record: Record) -> tuple[int, int, int]:
    assert record.order is not None
    return record.order.commit or 0, record.order.lsn or 0, record.timestamp_ms

"""About how many bytes an offset of each topic takes: from that, offsets become bytes.

Kafka does not tell a client how many bytes lie between two offsets, and the size of a topic on the brokers says less,
since they compact it. So this is what the last epochs have read, for each offset by which they went on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from cdc_views.base.names import TableName
from cdc_views.log.kafka.record import offsets_by_partition
from cdc_views.store.control import ControlRecord, PublishedDetail

_RECENT_OFFSETS: Final = 10_000  # older ones count half as much
_RECENT_RECORDS: Final = 200  # to begin with: each takes as long to read as 10 KB of JSON


class OffsetBytes:
    """The mean of each topic. `take` and `estimate` may be called from two threads."""

    def __init__(self, tables: Mapping[str, TableName], records: Sequence[ControlRecord] = ()) -> None:
        """`tables` has the table of each topic. Begin with the last records of the control log."""
        self._tables = tables
        self._last: ControlRecord | None = None
        self._sums: dict[str, tuple[float, float]] = {}  # bytes and offsets
        for record in records[-_RECENT_RECORDS:]:
            self.take(record)

    def take(self, record: ControlRecord) -> None:
        """Take the next record of the control log; one that publishes nothing changes nothing."""
        if record.published_at is None:
            return
        last, self._last = self._last, record
        if last is None or last.generation != record.generation or last.epoch + 1 != record.epoch:
            return
        read = PublishedDetail.read(record).log_bytes
        if not read:
            return
        passed = _passed(last, record)
        for topic, table in self._tables.items():
            if (size := read.get(str(table))) is not None and passed[topic] > 0:
                self._add(topic, size, passed[topic])

    def estimate(self, topic: str, offsets: int) -> int | None:
        """About how many bytes this number of offsets takes, before compression; None if no known epoch read any."""
        if offsets == 0:
            return 0
        if (known := self._sums.get(topic)) is None:
            return None
        size, count = known
        return round(offsets * size / count)

    def _add(self, topic: str, size: float, count: float) -> None:
        known_size, known_count = self._sums.get(topic, (0.0, 0.0))
        weight = 0.5 if known_count > _RECENT_OFFSETS else 1.0
        self._sums[topic] = size + weight * known_size, count + weight * known_count


def _passed(last: ControlRecord, record: ControlRecord) -> Counter[str]:
    """By how many offsets a record is after another one, by topic."""
    before, found = offsets_by_partition(last.offsets), Counter[str]()
    for partition, end in offsets_by_partition(record.offsets).items():
        found[partition.topic] += end - before.get(partition, end)
    return found

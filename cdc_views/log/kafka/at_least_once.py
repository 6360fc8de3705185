"""Connect workers without exactly-once: what they deliver again, and up to where everything was delivered.

There a readable marker proves nothing: earlier changes of other partitions may still be on their way. The proof is the
offset that Connect has stored. Connect stores it only for changes that the brokers have acknowledged, together with all
changes before them. A worker that was killed continues from the stored offset, and delivers again what it had delivered
after it. So a redelivered record comes after every cut that was made, and after its first delivery in the same
partition.
"""

from __future__ import annotations

import time
from typing import Any, Final

import orjson

from cdc_views.base.lsn import Lsn
from cdc_views.config import LogSettings
from cdc_views.errors import BadConfig, NotRunning
from cdc_views.log.kafka.reader import Reader
from cdc_views.log.kafka.record import Order, RawRecord, Record, TopicPartition
from cdc_views.log.kafka.topics import REQUEST_TIMEOUT_S, admin_client, begin_offsets, end_offsets, topic_facts

HINT: Final = "log.offsets_topic is the worker's offset.storage.topic"

_WAIT_S: Final = 0.05
_FIRST: Final = Order(None, None)


class Redeliveries:
    """Recognizes redelivered records by their order: it is strictly below that of an earlier record of the partition.

    Pass it all records of a partition, in offset order.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], Order] = {}
        self._dropped: dict[tuple[str, int], Record] = {}

    def is_redelivery(self, record: Record) -> bool:
        """Whether to drop the record. A tombstone is dropped with its delete, which comes directly before it."""
        partition = record.topic, record.partition
        before = self._dropped.pop(partition, None)
        if record.order is None:
            is_tombstone = record.problem is None
            return is_tombstone and before is not None and before.key == record.key
        last = self._last.get(partition, _FIRST)
        if not _is_below(record.order, last):
            self._last[partition] = record.order
            return False
        self._dropped[partition] = record
        return True


class StoredOffsets:
    """The offset that a connector has stored, read from the worker's offsets topic because the REST API is slow."""

    def __init__(self, settings: LogSettings, topic: str) -> None:
        """Read the whole topic. Raises BadConfig if there is no such topic, NotRunning."""
        self._key = [settings.connector, {"server": settings.topic_prefix}]
        self._commit: Lsn | None = None
        admin = admin_client(settings)
        facts = topic_facts(admin, [topic])
        if topic not in facts:
            raise BadConfig(f'topic "{topic}" does not exist', hint=HINT)
        partitions = [TopicPartition(topic, number) for number in range(facts[topic]["partitions"])]
        self._reader = Reader(settings)
        self._reader.assign(begin_offsets(admin, partitions))
        # An earlier life of the connector may have stored a position beyond everything that is stored now.
        ends, deadline = end_offsets(admin, partitions, committed=True), time.monotonic() + REQUEST_TIMEOUT_S
        while not self._reader.reached(ends):
            self._take(self._reader.read(_WAIT_S))
            if time.monotonic() > deadline:
                self.close()
                raise NotRunning(f'topic "{topic}" could not be read within {REQUEST_TIMEOUT_S} s')

    def commit(self) -> Lsn | None:
        """Return the end of the last commit that the brokers have in full; None if there is none."""
        self._take(self._reader.read(0))
        return self._commit

    def close(self) -> None:
        """Close the consumer."""
        self._reader.close()

    def _take(self, records: list[RawRecord]) -> None:
        for record in records:
            if orjson.loads(record.key() or b"null") == self._key:
                stored: dict[str, Any] = orjson.loads(record.value() or b"{}")
                commit = stored.get("lsn_commit")
                self._commit = None if commit is None else Lsn(commit)


def _is_below(order: Order, last: Order) -> bool:
    """Compare as a partition is ordered: equal orders are no redelivery, nor are those before the first commit."""
    if order.commit is None or last.commit is None:
        return order.commit is None and last.commit is not None
    if order.commit != last.commit:
        return order.commit < last.commit
    return order.lsn is not None and last.lsn is not None and order.lsn < last.lsn

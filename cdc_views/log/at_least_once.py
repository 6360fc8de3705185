"""A worker without exactly-once: what it delivers again, and how far everything is delivered.

A marker that can be read says nothing there: earlier changes of other partitions may still be under way. What
says it is the offset that Connect has stored, which it does for changes that the brokers have acknowledged, with all
before them. A worker that was killed goes on from there, and delivers again what it had delivered since. So what comes
again is of after every cut that was made, and stands behind its first delivery in the same partition.
"""

from __future__ import annotations

import time
from typing import Any, Final

import orjson

from cdc_views.config import LogSettings
from cdc_views.errors import BadConfig, NotRunning
from cdc_views.log.reader import Reader
from cdc_views.log.record import Order, RawRecord, Record, TopicPartition
from cdc_views.log.topics import REQUEST_TIMEOUT_S, admin_client, begin_offsets, end_offsets, topic_facts
from cdc_views.lsn import Lsn

HINT: Final = "log.offsets_topic is the worker's offset.storage.topic"

_WAIT_S: Final = 0.05
_FIRST: Final = Order(None, None)


class Redeliveries:
    """Tells records that come again, by their order: strictly below one that came before in the same partition.

    Give it all records of a partition, in offset order.
    """

    def __init__(self) -> None:
        self._last: dict[tuple[str, int], Order] = {}
        self._dropped: dict[tuple[str, int], Record] = {}

    def is_redelivery(self, record: Record) -> bool:
        """Whether it is to be dropped; a tombstone shares the fate of its delete, which stands directly before it."""
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
    """What a connector has stored, read from the worker's topic for that; the REST interface is slow."""

    def __init__(self, settings: LogSettings, topic: str) -> None:
        """Read all that is there. Raises BadConfig where there is no such topic, NotRunning."""
        self._key = [settings.connector, {"server": settings.topic_prefix}]
        self._commit: Lsn | None = None
        admin = admin_client(settings)
        facts = topic_facts(admin, [topic])
        if topic not in facts:
            raise BadConfig(f'topic "{topic}" does not exist', hint=HINT)
        partitions = [TopicPartition(topic, number) for number in range(facts[topic]["partitions"])]
        self._reader = Reader(settings)
        self._reader.assign(begin_offsets(admin, partitions))
        # What was stored in an earlier life of the connector may be of after all that is stored now.
        ends, deadline = end_offsets(admin, partitions, committed=True), time.monotonic() + REQUEST_TIMEOUT_S
        while not self._reader.reached(ends):
            self._take(self._reader.read(_WAIT_S))
            if time.monotonic() > deadline:
                self.close()
                raise NotRunning(f'topic "{topic}" could not be read within {REQUEST_TIMEOUT_S} s')

    def commit(self) -> Lsn | None:
        """The last commit up to which the brokers have everything; None if there is none."""
        self._take(self._reader.read(0))
        return self._commit

    def close(self) -> None:
        """Let the consumer go."""
        self._reader.close()

    def _take(self, records: list[RawRecord]) -> None:
        for record in records:
            if orjson.loads(record.key() or b"null") == self._key:
                stored: dict[str, Any] = orjson.loads(record.value() or b"{}")
                commit = stored.get("lsn_commit")
                self._commit = None if commit is None else Lsn(commit)


def _is_below(order: Order, last: Order) -> bool:
    """As a partition is ordered: equal ones are no repetition, nor are those of before the first commit."""
    if order.commit is None or last.commit is None:
        return order.commit is None and last.commit is not None
    if order.commit != last.commit:
        return order.commit < last.commit
    return order.lsn is not None and last.lsn is not None and order.lsn < last.lsn

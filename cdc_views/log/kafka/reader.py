"""Reading partitions up to given offsets: one consumer, explicit offsets, only committed records.

Progress is the consumer's position, never a count of records: transaction markers and aborted records take up offsets
too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaPartition

from cdc_views.config import LogSettings
from cdc_views.errors import RESET, OffsetCompacted
from cdc_views.log.kafka.record import Offsets, RawRecord, TopicPartition
from cdc_views.log.kafka.topics import PASSING, admin_client, require_partitions, unreachable

BATCH: Final = 5000
_NO_EPOCH: Final = -1  # the client's value for "unknown"
_NONE: Final[Mapping[TopicPartition, int]] = {}
_UNKNOWN: Final = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION, KafkaError._UNKNOWN_TOPIC)


class Reader:
    """Reads the partitions that it was assigned, each in offset order."""

    def __init__(self, settings: LogSettings, prefetched: int = 100_000, batch: int = BATCH) -> None:
        """Fetch about `prefetched` records of each partition ahead; return about `batch` records at once."""
        self._batch = batch
        self.next: dict[TopicPartition, int] = {}
        self.leader_epochs: dict[TopicPartition, int] = {}
        """The leader epoch of the last record that was read of each partition, or the one it was assigned with."""
        self.answered: set[TopicPartition] = set()
        """The partitions of which a record, or the end, was read."""
        self._settings = settings
        self._consumer = Consumer(
            {
                "bootstrap.servers": settings.bootstrap_servers,
                # Required by the client; nothing is ever committed under it.
                "group.id": f"cdc-views-{uuid4().hex}",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                # With the default, a second after a full queue, every large cut would take a second longer.
                "fetch.queue.backoff.ms": 10,
                "fetch.error.backoff.ms": 20,
                "fetch.wait.max.ms": 50,
                "queued.min.messages": prefetched,
                "queued.max.messages.kbytes": 128 * 1024,
                "log_level": 2,
            }
        )

    def assign(self, offsets: Offsets, leader_epochs: Mapping[TopicPartition, int] = _NONE) -> None:
        """Read these partitions from these offsets on, and no others.

        `leader_epochs` are those of the last record before these offsets, where they are known, or later ones. If
        brokers have lost what was there, reading raises OffsetCompacted, whatever was written instead (KIP-320).
        """
        self.next, self.leader_epochs, self.answered = dict(offsets), dict(leader_epochs), set()
        self._consumer.assign(
            [
                KafkaPartition(each.topic, each.partition, at, leader_epoch=leader_epochs.get(each, _NO_EPOCH))
                for each, at in offsets.items()
            ]
        )

    def read_only(self, wanted: Collection[TopicPartition]) -> None:
        """Read these of the assigned partitions, and pause the others."""
        waiting = [KafkaPartition(*each) for each in self.next if each not in wanted]
        self._consumer.resume([KafkaPartition(*each) for each in self.next if each in wanted])
        self._consumer.pause(waiting)

    def read(self, wait_s: float) -> list[RawRecord]:
        """Return what has arrived; wait at most `wait_s` for the first message.

        Raises OffsetCompacted, TopicChanged and LogError. While a broker is down there are no messages.
        """
        first = self._consumer.poll(wait_s)
        if first is None:
            return []
        messages = [first, *self._consumer.consume(self._batch, 0)]
        records = [message for message in messages if message.error() is None]
        if len(records) < len(messages):
            for message in messages:
                if (error := message.error()) is not None:
                    self._take_error(message, error)
        # The ignored types are safe: a message without an error has a topic, a partition and an offset.
        for message in self._last_of_each(records):
            self._reach(message, message.offset() + 1)  # type: ignore[operator]
            if (epoch := message.leader_epoch()) is not None:
                self.leader_epochs[TopicPartition(message.topic(), message.partition())] = epoch  # type: ignore[arg-type]
        return records  # type: ignore[return-value]

    def reached(self, ends: Offsets) -> bool:
        """Whether everything before these offsets has been read."""
        return all(self.next[each] >= end for each, end in ends.items())

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _last_of_each(self, records: list[Message]) -> Iterable[Message]:
        """The last record of each partition."""
        if len(self.next) == 1:
            return records[-1:]
        return {(record.topic(), record.partition()): record for record in records}.values()

    def _reach(self, message: Message, offset: int) -> None:
        partition = TopicPartition(message.topic(), message.partition())  # type: ignore[arg-type]
        if partition in self.next:
            self.answered.add(partition)
            self.next[partition] = max(self.next[partition], offset)

    def _take_error(self, message: Message, error: KafkaError) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            # The offset of this event comes after the transaction markers at the end of the partition.
            self._reach(message, message.offset())  # type: ignore[arg-type]
            return
        if error.code() in PASSING:
            return
        partition = TopicPartition(message.topic(), message.partition())  # type: ignore[arg-type]
        if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
            raise OffsetCompacted(
                f'partition "{partition}": the wanted offset {self.next.get(partition)} no longer exists',
                hint=f"the log no longer holds the changes that the mirrors need; {RESET}",
            )
        if error.code() in _UNKNOWN:
            require_partitions(admin_client(self._settings), [partition])
            return
        raise unreachable(KafkaException(error))

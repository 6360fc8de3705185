"""Records as the log has them, for tests without Kafka."""

from __future__ import annotations

from typing import Any

import orjson

from cdc_views.config import LogSettings
from cdc_views.log.kafka.record import Order, Record, TopicPartition

PARTITION = TopicPartition("app.public.orders", 0)


def log_settings(**others: Any) -> LogSettings:
    """Of a log that nobody asks."""
    return LogSettings(bootstrap_servers="none", connect_url="http://none", **others)


def change(offset: int, commit: int | None, lsn: int | None, op: str = "u", **after: Any) -> Record:
    """A change of the given order."""
    value = {"op": op, "before": None, "after": after or {"id": offset}, "source": {"ts_us": 1_000_000 * offset}}
    return Record(*PARTITION, offset, 0, {"id": offset}, value, {}, Order(commit, lsn))


def tombstone(offset: int) -> Record:
    """A tombstone."""
    return Record(*PARTITION, offset, 0, {"id": offset}, None, {}, None)


class FakeMessage:
    """What confluent_kafka.Message answers."""

    def __init__(
        self, value: Any, key: Any = None, headers: list[tuple[str, bytes]] | None = None, offset: int = 7
    ) -> None:
        self._value, self._key, self._headers, self._offset = value, key or {"id": 1}, headers, offset

    def __len__(self) -> int:
        return len(self.value() or b"")

    def topic(self) -> str:
        """The topic."""
        return PARTITION.topic

    def partition(self) -> int:
        """The partition."""
        return PARTITION.partition

    def offset(self) -> int:
        """The offset."""
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        """Kind and milliseconds."""
        return 1, 1234

    def headers(self) -> list[tuple[str, bytes]] | None:
        """Headers or None."""
        return self._headers

    def key(self) -> bytes:
        """The key as JSON."""
        return orjson.dumps(self._key)

    def value(self) -> bytes | None:
        """The value as JSON, or as it was given."""
        if self._value is None or isinstance(self._value, bytes):
            return self._value
        return orjson.dumps(self._value)

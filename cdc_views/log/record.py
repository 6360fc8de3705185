"""One record of a topic: a change as Debezium writes it, or a tombstone."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, Self

import orjson

from cdc_views.errors import BadEvent


class TopicPartition(NamedTuple):
    """A partition of a topic, printed as `topic/partition`."""

    topic: str
    partition: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the form `topic/partition`; a topic's name has no slash."""
        topic, _, partition = text.rpartition("/")
        return cls(topic, int(partition))

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


Offsets = Mapping[TopicPartition, int]


def offsets_by_name(offsets: Offsets) -> dict[str, int]:
    """Offsets as JSON can hold them, by `topic/partition`."""
    return {str(partition): offset for partition, offset in offsets.items()}


def offsets_by_partition(offsets: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Read what `offsets_by_name` gives."""
    return {TopicPartition.parse(name): offset for name, offset in offsets.items()}


class Order(NamedTuple):
    """Where a change stands in the source's history: `source.sequence`.

    `commit` is the end LSN of the commit before its transaction, the same for all changes of one
    transaction; None for snapshot reads and for the first transaction after the slot was made.
    `lsn` is the change's own; all rows of a COPY, and both halves of a key change, have the same.
    """

    commit: int | None
    lsn: int | None


@dataclass(slots=True)
class Record:
    """A record; `value` and `order` are None for a tombstone. Nobody changes one after it was parsed."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: dict[str, Any]
    value: dict[str, Any] | None
    headers: Mapping[str, bytes]
    order: Order | None


class RawRecord(Protocol):
    """A record as it came from Kafka, without an error; nothing of it was parsed."""

    def topic(self) -> str:
        """The topic."""

    def partition(self) -> int:
        """The number of the partition."""

    def offset(self) -> int:
        """The offset."""

    def timestamp(self) -> tuple[int, int]:
        """What it is the time of, and milliseconds since 1970."""

    def headers(self) -> list[tuple[str, bytes]] | None:
        """None if there are none."""

    def key(self) -> bytes | None:
        """The key."""

    def value(self) -> bytes | None:
        """None for a tombstone."""

    def __len__(self) -> int:
        """Bytes of the value."""


_NO_HEADERS: Final[Mapping[str, bytes]] = {}
_loads = orjson.loads


def parse_record(message: RawRecord) -> Record:
    """Parse a message of a table's topic. Raises BadEvent, which never quotes the message."""
    try:
        raw = message.value()
        value = None if raw is None else _loads(raw)
        pairs = message.headers()
        return Record(
            message.topic(),
            message.partition(),
            message.offset(),
            message.timestamp()[1],
            _loads(message.key()),  # type: ignore[arg-type]  # none is no JSON, and told below
            value,
            dict(pairs) if pairs else _NO_HEADERS,
            None if value is None else parse_order(value["source"]["sequence"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise BadEvent(
            f'topic "{message.topic()}" partition {message.partition()} offset {message.offset()} is not an event '
            f"of Debezium: {type(error).__name__}",
            hint="only the connector may write to this topic, with the settings in connectors/postgres.json",
        ) from None


def parse_records(messages: Iterable[RawRecord]) -> list[Record]:
    """Parse many messages.

    Python looks for cycles again and again while so many objects are made; JSON has none, and the
    search would take as long as the parsing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [parse_record(message) for message in messages]
    finally:
        if was_enabled:
            gc.enable()


def parse_order(sequence: str) -> Order:
    """Read `source.sequence`: a JSON list of two decimal LSNs, the first or both of which may be null."""
    commit, lsn = _loads(sequence)
    return Order(None if commit is None else int(commit), None if lsn is None else int(lsn))

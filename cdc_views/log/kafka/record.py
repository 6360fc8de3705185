"""One record of a topic: a change as Debezium writes it, or a tombstone."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, Self

import orjson

from cdc_views.errors import BadEvent
from cdc_views.errors.log_offset import LogOffset


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
    """Return offsets by `topic/partition`, as JSON can hold them."""
    return {str(partition): offset for partition, offset in offsets.items()}


def offsets_by_partition(offsets: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Read what `offsets_by_name` returns."""
    return {TopicPartition.parse(name): offset for name, offset in offsets.items()}


class Order(NamedTuple):
    """The order of a change in the source's history: `source.sequence`.

    `commit` is the end LSN of the commit before its transaction, the same for all changes of one transaction; None for
    snapshot reads and for the first transaction after the slot was created. `lsn` is the change's own LSN; all rows of
    a COPY, and both halves of a key change, have the same.
    """

    commit: int | None
    lsn: int | None


@dataclass(slots=True)
class Record:
    """A record; `value` and `order` are None for a tombstone. It is not changed after it was parsed.

    `raw` is what was parsed. A record that could not be parsed has a `problem`, no value and no order: whether it stops
    a mirror, and which one, is not known where it is read.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: dict[str, Any]
    value: dict[str, Any] | None
    headers: Mapping[str, bytes | None]
    order: Order | None
    raw: RawRecord | None = None
    problem: str | None = None

    @property
    def log_offset(self) -> LogOffset:
        """Where the record is in the log."""
        return LogOffset(self.topic, self.partition, self.offset)

    @property
    def log_bytes(self) -> int:
        """The bytes of key and value in the log, before compression; 0 for a record that was not read from one."""
        return 0 if self.raw is None else len(self.raw) + len(self.raw.key() or b"")


class RawRecord(Protocol):
    """A record as it came from Kafka, without an error and not yet parsed."""

    def topic(self) -> str:
        """The topic."""

    def partition(self) -> int:
        """The number of the partition."""

    def offset(self) -> int:
        """The offset."""

    def timestamp(self) -> tuple[int, int]:
        """The kind of the timestamp, and milliseconds since 1970."""

    def headers(self) -> list[tuple[str, bytes]] | None:
        """The headers; None if there are none."""

    def key(self) -> bytes | None:
        """The key."""

    def value(self) -> bytes | None:
        """The value; None for a tombstone."""

    def __len__(self) -> int:
        """The number of bytes of the value."""


@dataclass(frozen=True)
class KeptRecord:
    """The bytes of a record, with the methods of a message of Kafka's client."""

    log_offset: LogOffset
    at_ms: int
    key_bytes: bytes | None
    value_bytes: bytes | None
    header_pairs: list[tuple[str, bytes]] | None

    def topic(self) -> str:
        """The topic."""
        return self.log_offset.topic

    def partition(self) -> int:
        """The partition."""
        return self.log_offset.partition

    def offset(self) -> int:
        """The offset."""
        return self.log_offset.offset

    def timestamp(self) -> tuple[int, int]:
        """The kind of the timestamp, and milliseconds since 1970."""
        return 1, self.at_ms

    def headers(self) -> list[tuple[str, bytes]] | None:
        """The headers, or None."""
        return self.header_pairs

    def key(self) -> bytes | None:
        """The key."""
        return self.key_bytes

    def value(self) -> bytes | None:
        """The value; None for a tombstone."""
        return self.value_bytes

    def __len__(self) -> int:
        """The number of bytes of the value."""
        return len(self.value_bytes or b"")


_NO_HEADERS: Final[Mapping[str, bytes | None]] = {}
_LARGEST_LSN: Final = 2**64 - 1
_HINT: Final = "only the connector may write to this topic, with the settings in connectors/postgres.json"
_loads = orjson.loads


def parse_record(message: RawRecord) -> Record:
    """Parse a message of a table's topic; one that is not an event of Debezium becomes a record with a `problem`."""
    try:
        raw = message.value()
        value = None if raw is None else _loads(raw)
        if value is None and raw is not None:
            raise ValueError("null is no tombstone")
        pairs = message.headers()
        return Record(
            message.topic(),
            message.partition(),
            message.offset(),
            message.timestamp()[1],
            _loads(message.key()),  # type: ignore[arg-type]  # a missing key is not JSON: handled below
            value,
            dict(pairs) if pairs else _NO_HEADERS,
            None if value is None else parse_order(value["source"]["sequence"]),
            message,
        )
    except (ValueError, TypeError, KeyError) as error:
        problem = f"is not an event of Debezium: {type(error).__name__}"
        key, timestamp_ms = _key_alone(message), message.timestamp()[1]
        return Record(*log_offset_of(message), timestamp_ms, key, None, _NO_HEADERS, None, message, problem)


def _key_alone(message: RawRecord) -> dict[str, Any]:
    """The key of a record that is otherwise bad; empty if the key itself is bad."""
    try:
        key = _loads(message.key() or b"")
    except ValueError:
        return {}
    return key if isinstance(key, dict) else {}


def log_offset_of(message: RawRecord) -> LogOffset:
    """Return where a message is in the log."""
    return LogOffset(message.topic(), message.partition(), message.offset())


def bad_event(record: Record, problem: str, *, hint: str | None = None) -> BadEvent:
    """Return the error of a record that is not what Debezium writes; it never quotes the record."""
    return BadEvent(problem, hint=hint, log_offset=record.log_offset)


def require_event(record: Record) -> None:
    """Raise BadEvent if the record could not be parsed."""
    if record.problem is not None:
        raise bad_event(record, record.problem, hint=_HINT)


def parse_records(messages: Iterable[RawRecord]) -> list[Record]:
    """Parse many messages.

    The garbage collector is off meanwhile: JSON has no cycles, and searching all the new objects for them would take as
    long as parsing.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [parse_record(message) for message in messages]
    finally:
        if was_enabled:
            gc.enable()


def parse_order(sequence: str) -> Order:
    """Read `source.sequence`: a JSON list of two decimal LSNs, of which the first or both may be null."""
    found = _loads(sequence)
    if type(found) is not list:
        raise TypeError("not a list")
    commit, lsn = found
    return Order(None if commit is None else _lsn(commit), None if lsn is None else _lsn(lsn))


def _lsn(text: Any) -> int:
    # int() would also accept signs, underscores and a number with a fraction.
    if type(text) is not str or not (text.isascii() and text.isdigit()):
        raise TypeError("not a decimal number in a text")
    lsn = int(text)
    if lsn > _LARGEST_LSN:
        raise ValueError("beyond 64 bits")
    return lsn

"""A log in memory: transactions as Debezium writes them into topics, and cuts of them.

As in Kafka, messages are bytes in the partitions of one topic per table, and the decoder for Kafka reads them.
Transactions are written one after the other, and a cut contains all earlier ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.stopped import StoppedTable
from cdc_views.capture.envelope import NEW_KEY, OLD_KEY
from cdc_views.capture.unchanged import Forms, forms
from cdc_views.errors import LogGap
from cdc_views.errors.log_offset import LogOffset
from cdc_views.host.clock import Clock
from cdc_views.log.cuts.cut import Cut, PartitionBuffer
from cdc_views.log.kafka.record import KeptRecord, Offsets, Order, RawRecord, Record, TopicPartition, parse_records
from cdc_views.source.catalog import SourceColumn, SourceTable
from cdc_views.testing.memory.memory_source import Row, SourceChange
from cdc_views.testing.memory.values import written

PREFIX: Final = "harness"
# Postgres stores values out of line if the row is larger than this. Here the limit applies to each value.
TOAST_BYTES: Final = 2048
_FIRST_LSN: Final = 0x1000000
_STEP: Final = 0x38


class MemoryLog:
    """A `CutLog`. `validity_s` is the time for which a cut can be read again before compaction may change it."""

    def __init__(self, tables: Iterable[SourceTable], clock: Clock, *, partitions: int, validity_s: float) -> None:
        self.end = Lsn(_FIRST_LSN)  # end of the last commit
        self._clock = clock
        self._validity_s = validity_s
        self._committed_at = clock.now()
        self._tables = {f"{PREFIX}.{table.name}": table.name for table in tables}
        self._topics = {name: topic for topic, name in self._tables.items()}
        self._partitions: dict[TopicPartition, list[KeptRecord]] = {
            TopicPartition(topic, number): [] for topic in self._tables for number in range(partitions)
        }
        self._count = partitions

    def begin(self) -> Offsets:
        """The first offset of every partition."""
        return dict.fromkeys(self._partitions, 0)

    def write(self, changes: Sequence[SourceChange]) -> None:
        """Write a committed transaction."""
        order = Order(self.end, self.end)
        for change in changes:
            order = Order(order.commit, (order.lsn or 0) + _STEP)
            for message in _messages(change):
                self._append(change.table.name, message, order)
        self.end = Lsn((order.lsn or 0) + _STEP)
        self._committed_at = self._clock.now()

    def put(
        self, table: TableName, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]] | None = None
    ) -> LogOffset:
        """Write a record of any bytes, as somebody else than the connector would; returns where it is."""
        partition = TopicPartition(self._topics[table], zlib.crc32(key or b"") % self._count)
        at = LogOffset(*partition, len(self._partitions[partition]))
        self._partitions[partition].append(
            KeptRecord(at, int(self._clock.now().timestamp() * 1000), key, value, headers)
        )
        self.end = Lsn(self.end + _STEP)
        self._committed_at = self._clock.now()
        return at

    def cut(
        self,
        after: Offsets,
        position: Lsn | None,
        caught_up_at: object = None,
        held: Collection[TableName] = (),
        stopped: Mapping[TableName, StoppedTable] | None = None,
    ) -> Cut:
        """A cut of everything written so far."""
        found = [self._held(partition, after[partition], position) for partition in self._partitions]
        ends = {each.partition: each.end(each.prefix(self.end)) for each in found}
        bulk = self.bulk(position) - set(held)
        return Cut(self.end, self.end, self._committed_at, dict(after), ends, bulk, stopped=dict(stopped or {}))

    def bulk(self, position: Lsn | None) -> frozenset[TableName]:
        """The tables that may be in `Cut.bulk` of the cut after `position`: none."""
        return frozenset()

    def has_changes(self, cut: Cut) -> bool:
        """Whether the cut has records."""
        read = (partition for partition in cut.end if self.table_of(partition.topic) not in cut.stopped)
        return any(cut.start[partition] < cut.end[partition] for partition in read)

    def records(self, cut: Cut) -> Iterator[Record]:
        """The records of the cut, by partition."""
        for partition, end in cut.end.items():
            if self.table_of(partition.topic) not in cut.stopped:
                yield from self._read(partition, cut.start[partition], end)

    def record_at(self, at: LogOffset) -> RawRecord | None:
        """A record."""
        return self._partitions[TopicPartition(at.topic, at.partition)][at.offset]

    def raw(self, partition: TopicPartition) -> Sequence[RawRecord]:
        """Everything written to a partition."""
        return self._partitions[partition]

    def changes_before_starts(self, cut: Cut) -> list[Record]:
        """No records: there is no connector that could start."""
        return []

    def require_repeatable(self, cut: Cut) -> None:
        """Raise LogGap if the cut is older than the time for which a log stays uncompacted."""
        age_s = (self._clock.now() - cut.committed_at).total_seconds()
        if age_s > self._validity_s:
            raise LogGap(
                f"the cut at position {cut.position} is {age_s:.0f} s old, and after {self._validity_s:.0f} s its rows "
                "may have been compacted away",
                hint="a later cut holds all of it",
            )

    def require_read_in_time(self, began: datetime) -> None:
        """Do nothing: a log that deletes nothing is always read in time."""

    def require_gapless(self, since: datetime) -> None:
        """Do nothing: the log has no gaps."""

    def table_of(self, topic: str) -> TableName:
        """The table of a topic."""
        return self._tables[topic]

    def _held(self, partition: TopicPartition, start: int, position: Lsn | None) -> PartitionBuffer:
        held = PartitionBuffer(partition, start, position)
        for record in self._read(partition, start, len(self._partitions[partition])):
            held.add(record)
        return held

    def _read(self, partition: TopicPartition, start: int, end: int) -> list[Record]:
        return parse_records(self._partitions[partition][start:end])

    def _append(self, table: TableName, message: _WrittenRecord, order: Order) -> None:
        key = _dumped(message.key)
        partition = TopicPartition(self._topics[table], zlib.crc32(key) % self._count)
        messages = self._partitions[partition]
        now = self._clock.now()
        value = None if message.op is None else _dumped(message.value(order, int(now.timestamp() * 1_000_000)))
        messages.append(
            KeptRecord(LogOffset(*partition, len(messages)), int(now.timestamp() * 1000), key, value, message.headers)
        )


@dataclass(frozen=True)
class _WrittenRecord:
    """A record to write; `op` None is a tombstone."""

    op: str | None
    key: Mapping[str, Any]
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    headers: list[tuple[str, bytes]] | None = None

    def value(self, order: Order, at_us: int) -> dict[str, Any]:
        sequence = [None if lsn is None else f"{lsn:d}" for lsn in order]
        source = {"sequence": orjson.dumps(sequence).decode(), "ts_ms": at_us // 1000, "ts_us": at_us}
        return {"op": self.op, "before": self.before, "after": self.after, "source": source}


def _dumped(value: Mapping[str, Any]) -> bytes:
    # The bytes that orjson returns keep their 4 KB buffer alive, so they are copied.
    return bytes(memoryview(orjson.dumps(value)))


def _messages(change: SourceChange) -> list[_WrittenRecord]:
    """Debezium's messages for a changed row. For a changed key: a delete and a create that name each other."""
    table, old, new = change.table, change.old, change.new
    old_key, new_key = (None if row is None else _json(table, row, table.key) for row in (old, new))
    before = None if old is None else _before(table, old)
    if new is None:
        assert old_key is not None
        return [_WrittenRecord("d", old_key, before), _WrittenRecord(None, old_key)]
    assert new_key is not None
    after = _after(table, old, new)
    if old is None:
        return [_WrittenRecord("c", new_key, None, after)]
    assert old_key is not None
    if old_key == new_key:
        return [_WrittenRecord("u", new_key, before, after)]
    to_new, to_old = [(NEW_KEY, orjson.dumps(new_key))], [(OLD_KEY, orjson.dumps(old_key))]
    return [
        _WrittenRecord("d", old_key, before, headers=to_new),
        _WrittenRecord(None, old_key, headers=to_new),
        _WrittenRecord("c", new_key, None, after, to_old),
    ]


def _before(table: SourceTable, old: Row) -> dict[str, Any] | None:
    """The old row, which Postgres writes only with REPLICA IDENTITY FULL."""
    return _json(table, old, old) if table.replica_identity == "full" else None


def _after(table: SourceTable, old: Row | None, new: Row) -> dict[str, Any]:
    found = _json(table, new, new)
    if old is None or table.replica_identity == "full":
        return found
    unchanged = [column for column in table.columns if _is_omitted(column, found, old[column.name], new[column.name])]
    return found | {column.name: _placeholder(column, forms(table)) for column in unchanged}


def _placeholder(column: SourceColumn, forms: Forms) -> Any:
    """What Debezium writes instead of the column's value."""
    if column.element is not None:
        by_element = {"uuid": forms.uuids, **dict.fromkeys(("int4", "int8", "date"), forms.numbers)}
        return by_element.get(column.element, forms.texts)
    return {"hstore": forms.hstore, "bytea": forms.base64}.get(column.type_name, forms.text)


def _is_omitted(column: SourceColumn, found: Mapping[str, Any], old: Any, new: Any) -> bool:
    """Whether Postgres omits the value from the WAL: it is stored out of line and has not changed."""
    return column.toastable and old == new and len(orjson.dumps(found[column.name])) > TOAST_BYTES


def _json(table: SourceTable, row: Row, columns: Iterable[str]) -> dict[str, Any]:
    by_name = {column.name: column for column in table.columns}
    return {name: _value(by_name[name], row[name]) for name in columns}


def _value(column: SourceColumn, value: Any) -> Any:
    if column.element is None or value is None:
        return written(value, column.type_name)
    return [written(item, column.element) for item in value]

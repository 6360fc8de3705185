"""What was read since the last cut, and how much of it is held in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from cdc_views.config import LogSettings
from cdc_views.errors import CutTooLarge
from cdc_views.log.at_least_once import Redeliveries
from cdc_views.log.cut import PartitionBuffer
from cdc_views.log.memory_limit import EVENT_BYTES, event_bytes, limit_bytes
from cdc_views.log.record import Offsets, Record, TopicPartition
from cdc_views.lsn import Lsn
from cdc_views.names import TableName


class BufferFull(Exception):
    """More came than is to be held. Without these tables it is not; there are none where the others are too many."""

    def __init__(self, tables: frozenset[TableName]) -> None:
        super().__init__(tables)
        self.tables = tables


class CutBuffer:
    """The partitions of a log. Of the tables in `bulk` the next cut has records before those that are held."""

    def __init__(
        self,
        settings: LogSettings,
        tables: Mapping[str, TableName],
        partitions: Iterable[TopicPartition],
        may_be_bulk: Collection[TableName],
    ) -> None:
        """`tables` are those of the topics; nothing is held before `begin`."""
        self._settings = settings
        self._tables = tables
        self._partitions = list(partitions)
        self._may_be_bulk = frozenset(may_be_bulk)
        self.never_bulk: frozenset[TableName] = frozenset()
        """Tables whose events are not all to be applied, so that the next cut has to hold them."""
        self.unread: frozenset[TableName] = frozenset()
        """Tables whose events nobody reads, so that none need be held."""
        self._held: dict[TopicPartition, PartitionBuffer] = {}
        self._redeliveries: Redeliveries | None = None  # only without exactly-once
        self._is_all_held = False
        self._most_bytes = limit_bytes(settings)
        self._bytes: Counter[TableName] = Counter()
        self.held_bytes = 0
        """About how much memory the events take that are held."""
        self._most_at_end: int | None = None
        self.start: Offsets = {}
        """Where the next cut begins."""
        self.bulk: frozenset[TableName] = frozenset()

    def begin(
        self,
        after: Offsets,
        position: Lsn | None,
        bulk: frozenset[TableName] = frozenset(),
        bulk_from: Offsets | None = None,
        *,
        is_all_held: bool = False,
    ) -> None:
        """Hold what comes after these offsets, at which the cut at `position` ended; of `bulk` after `bulk_from`.

        With `is_all_held` no table is too long for the next cut; all of them together may be.
        """
        starts = {**after, **(bulk_from or {})}
        self._held = {each: PartitionBuffer(each, starts[each], position) for each in self._partitions}
        self._redeliveries = None if self._settings.exactly_once else Redeliveries()
        self._is_all_held, self._most_at_end = is_all_held, None
        self._bytes, self.held_bytes = Counter(), 0
        self.start, self.bulk = dict(after), bulk

    def forget(self) -> None:
        """Hold nothing; the next thing to be called is `begin`."""
        self._held = {}

    def goes_on_from(self, after: Offsets) -> bool:
        """Whether what is held begins there."""
        return bool(self._held) and self.start == after

    def add(self, record: Record) -> bool:
        """Hold a record; False if its partition is not one of these. Raises SequenceRegressed and LogDiscontinuity."""
        # A plain tuple equals a TopicPartition, and is made for every record.
        held = self._held.get((record.topic, record.partition))  # type: ignore[call-overload]
        if held is None:
            return False
        if self._redeliveries is not None and self._redeliveries.is_redelivery(record):
            held.skip(record)
        else:
            held.add(record)
            self._count(record, 1)
        return True

    def _count(self, record: Record, sign: int) -> None:
        size = sign * event_bytes(record)
        self._bytes[self._tables[record.topic]] += size
        self.held_bytes += size

    def require_not_too_long(self) -> None:
        """Raise BufferFull once more is held than is to be, of one table or of all.

        Raises CutTooLarge for a cut that was to end soon.
        """
        if self._most_at_end is not None:
            if self.held_bytes > self._most_at_end:
                raise self.too_large("one transaction, or events that have to be read together, are too large")
            return
        if not self._is_all_held and sum(map(len, self._held.values())) >= self._settings.bulk_offsets:
            starts = {each: held.start for each, held in self._held.items()}
            if tables := self.too_long(starts, {each: held.next for each, held in self._held.items()}):
                raise BufferFull(tables)
        if self.held_bytes > self._most_bytes:
            tables = self._without(self._bytes, self._most_bytes)
            left = self.held_bytes - sum(self._bytes[table] for table in tables)
            raise BufferFull(tables if left <= self._most_bytes else frozenset())

    def end_soon(self) -> None:
        """Of what the next cut needs to end before everything was read, as much again may be held."""
        self._most_at_end = self.held_bytes + self._most_bytes

    def too_large(self, why: str) -> CutTooLarge:
        """The error of a cut that the driver cannot hold."""
        largest = ", ".join(f'"{table}" {size >> 20} MiB' for table, size in self._bytes.most_common(3))
        return CutTooLarge(
            f"the driver holds events of {self.held_bytes >> 20} MiB, wanted at most {self._most_bytes >> 20}: {why}; "
            f"the largest tables are {largest}",
            hint="raise log.driver_mb; a table with REPLICA IDENTITY FULL, and without parked events, is read by Spark",
        )

    def _without(self, sizes: Mapping[TableName, int], most: int) -> frozenset[TableName]:
        """The largest tables that may be bulk, as many as are needed so that the others have half of `most` at most."""
        found, left = set(), sum(sizes.values())
        for table in sorted(self._bulk_to_be(), key=lambda table: -sizes[table]):
            if left <= most // 2 or not sizes[table]:
                break
            found.add(table)
            left -= sizes[table]
        return frozenset(found)

    def _bulk_to_be(self) -> frozenset[TableName]:
        return frozenset() if self._is_all_held else self._allowed_in_bulk() - self.bulk

    def _allowed_in_bulk(self) -> frozenset[TableName]:
        return (self._may_be_bulk - self.never_bulk) | self.unread

    def too_long(self, start: Offsets, end: Offsets) -> frozenset[TableName]:
        """The tables with so much log between these offsets that it is not to be held."""
        offsets: Counter[TableName] = Counter()
        for each, last in end.items():
            offsets[self._tables[each.topic]] += last - start[each]
        long = {table for table in self._allowed_in_bulk() if offsets[table] >= self._settings.bulk_offsets}
        # What they take at least is known before they are read.
        sizes = Counter({table: EVENT_BYTES * count for table, count in offsets.items() if table not in long})
        return frozenset(long | self._without(sizes, self._most_bytes) if sizes.total() > self._most_bytes else long)

    def of(self, table: TableName) -> list[PartitionBuffer]:
        """What is held of a table."""
        return [held for each, held in self._held.items() if self._tables[each.topic] == table]

    def position_reached(self, behind: Collection[TopicPartition]) -> Lsn | None:
        """The highest position at which a cut has all of its events, if of all partitions but `behind` all was read.

        In these a later event has at least the highest s0 so far. None if there is no such position.
        """
        highest = [self._held[each].highest for each in behind]
        position = min(highest) if highest else max(held.highest for held in self._held.values())
        return Lsn(position) if position > 0 else None

    def slowest(self, behind: Collection[TopicPartition]) -> set[TopicPartition]:
        """Those of some partitions of which the least was read."""
        least = min(self._held[each].highest for each in behind)
        return {each for each in behind if self._held[each].highest == least}

    def first_after(self, position: Lsn) -> Record:
        """The first event of a transaction that begins at a position that `position_reached` gave."""
        return next(
            record
            for held in self._held.values()
            for commit, record in held
            if commit == position and record.value is not None and record.order is not None
        )

    def is_empty_below(self, position: Lsn) -> bool:
        """Whether a cut at `position` would have no records."""
        return not any(held.prefix(position) for held in self._held.values())

    def take(self, position: Lsn) -> tuple[Offsets, dict[TopicPartition, list[Record]]]:
        """Remove what a cut at `position` has, the next one goes on behind it; returns where it ends, and its records.

        Of tables in `bulk` the records are left out.
        """
        taken = {each: held.take(held.prefix(position), position) for each, held in self._held.items()}
        end = {each: held.start for each, held in self._held.items()}
        for record in chain.from_iterable(taken.values()):
            self._count(record, -1)
        records = {each: found for each, found in taken.items() if self._tables[each.topic] not in self.bulk}
        self.start, self.bulk = end, frozenset()
        self._is_all_held, self._most_at_end = False, None
        return end, records

"""The records since the last cut, and how much of the driver's memory they take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.config import LogSettings
from cdc_views.errors import CutTooLarge
from cdc_views.log.cuts.cut import PartitionBuffer
from cdc_views.log.kafka.at_least_once import Redeliveries
from cdc_views.log.kafka.memory_limit import EVENT_BYTES, event_bytes, limit_bytes
from cdc_views.log.kafka.record import Offsets, Record, TopicPartition


class BufferFull(Exception):
    """More records came than may be held. With `tables` in bulk, the rest may be held.

    `tables` is empty if the rest would still be too much.
    """

    def __init__(self, tables: frozenset[TableName]) -> None:
        super().__init__(tables)
        self.tables = tables


class CutBuffer:
    """The buffers of all partitions of a log.

    For tables in `bulk`, the next cut also has records before those that are held.
    """

    def __init__(
        self,
        settings: LogSettings,
        tables: Mapping[str, TableName],
        partitions: Iterable[TopicPartition],
        may_be_bulk: Collection[TableName],
    ) -> None:
        """`tables` maps each topic to its table, `may_be_bulk` lists the tables that Spark can read. Call `begin`
        first.
        """
        self._settings = settings
        self._tables = tables
        self._partitions = list(partitions)
        self._may_be_bulk = frozenset(may_be_bulk)
        self.never_bulk: frozenset[TableName] = frozenset()
        """Tables with parked or discarded events: the driver must read their part of the next cut."""
        self.unread: frozenset[TableName] = frozenset()
        """Stopped tables: nobody reads their events, so they need not be held."""
        self._held: dict[TopicPartition, PartitionBuffer] = {}
        self._redeliveries: Redeliveries | None = None  # only without exactly-once
        self._is_all_held = False
        self._most_bytes = limit_bytes(settings)
        self._bytes: Counter[TableName] = Counter()
        self.held_bytes = 0
        """About how much memory the held events take, in bytes."""
        self._most_at_end: int | None = None
        self.start: Offsets = {}
        """The offsets at which the next cut begins."""
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
        """Hold what comes after these offsets, the end of the cut at `position`; for `bulk`, what comes after
        `bulk_from`.

        With `is_all_held` no single table is too long for the next cut; all of them together may still be.
        """
        starts = {**after, **(bulk_from or {})}
        self._held = {each: PartitionBuffer(each, starts[each], position) for each in self._partitions}
        self._redeliveries = None if self._settings.exactly_once else Redeliveries()
        self._is_all_held, self._most_at_end = is_all_held, None
        self._bytes, self.held_bytes = Counter(), 0
        self.start, self.bulk = dict(after), bulk

    def forget(self) -> None:
        """Drop everything; call `begin` next."""
        self._held = {}

    def continues_from(self, after: Offsets) -> bool:
        """Whether the held records begin at these offsets."""
        return bool(self._held) and self.start == after

    def add(self, record: Record) -> bool:
        """Hold a record; False if its partition is not one of these. Raises SequenceRegressed and LogDiscontinuity."""
        # A plain tuple equals a TopicPartition, and this runs for every record.
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
        """Raise BufferFull once more is held than allowed, of one table or in all.

        Raises CutTooLarge after `end_soon`.
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
        """Allow as much again: the next cut has to read on a little before it can end early."""
        self._most_at_end = self.held_bytes + self._most_bytes

    def too_large(self, why: str) -> CutTooLarge:
        """Return the error of a cut that the driver cannot hold."""
        largest = ", ".join(f'"{table}" {size >> 20} MiB' for table, size in self._bytes.most_common(3))
        return CutTooLarge(
            f"the driver holds events of {self.held_bytes >> 20} MiB, wanted at most {self._most_bytes >> 20}: {why}; "
            f"the largest tables are {largest}",
            hint="raise log.driver_mb; a table with REPLICA IDENTITY FULL, and without parked events, is read by Spark",
        )

    def _without(self, sizes: Mapping[TableName, int], most: int) -> frozenset[TableName]:
        """The largest tables that may become bulk: as many as leave at most half of `most` for the other tables."""
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
        """Return the tables with more log between these offsets than may be held."""
        offsets: Counter[TableName] = Counter()
        for each, last in end.items():
            offsets[self._tables[each.topic]] += last - start[each]
        long = {table for table in self._allowed_in_bulk() if offsets[table] >= self._settings.bulk_offsets}
        # The least that they will take is known before they are read.
        sizes = Counter({table: EVENT_BYTES * count for table, count in offsets.items() if table not in long})
        return frozenset(long | self._without(sizes, self._most_bytes) if sizes.total() > self._most_bytes else long)

    def of(self, table: TableName) -> list[PartitionBuffer]:
        """Return the buffers of a table."""
        return [held for each, held in self._held.items() if self._tables[each.topic] == table]

    def position_reached(self, behind: Collection[TopicPartition]) -> Lsn | None:
        """Return the highest position at which a cut would have all of its events; None if there is none.

        All partitions but `behind` were read to their ends. In those that are behind, a later event has at least the
        highest s0 that was read so far.
        """
        highest = [self._held[each].highest for each in behind]
        position = min(highest) if highest else max(held.highest for held in self._held.values())
        return Lsn(position) if position > 0 else None

    def slowest(self, behind: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return those of the partitions `behind` of which the least was read, by position."""
        least = min(self._held[each].highest for each in behind)
        return {each for each in behind if self._held[each].highest == least}

    def first_after(self, position: Lsn) -> Record:
        """Return the first event of the transaction that begins at a position that `position_reached` has returned."""
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
        """Remove what a cut at `position` contains, and continue after it. Returns its end offsets and its records.

        The records of tables in `bulk` are not returned.
        """
        taken = {each: held.take(held.prefix(position), position) for each, held in self._held.items()}
        end = {each: held.start for each, held in self._held.items()}
        for record in chain.from_iterable(taken.values()):
            self._count(record, -1)
        records = {each: found for each, found in taken.items() if self._tables[each.topic] not in self.bulk}
        self.start, self.bulk = end, frozenset()
        self._is_all_held, self._most_at_end = False, None
        return end, records

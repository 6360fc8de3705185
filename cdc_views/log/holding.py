"""What was read since the last cut, and how much of it is held in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from cdc_views.config import LogSettings
from cdc_views.log.at_least_once import Redeliveries
from cdc_views.log.cut import Held
from cdc_views.log.record import Offsets, Record, TopicPartition
from cdc_views.lsn import Lsn
from cdc_views.names import TableName


class TooLong(Exception):
    """More of these tables came than is to be held."""

    def __init__(self, tables: frozenset[TableName]) -> None:
        super().__init__(tables)
        self.tables = tables


class Holding:
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
        self._held: dict[TopicPartition, Held] = {}
        self._redeliveries: Redeliveries | None = None  # only without exactly-once
        self._has_limit = True
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
        has_limit: bool = True,
    ) -> None:
        """Hold what comes after these offsets, at which the cut at `position` ended; of `bulk` after `bulk_from`.

        Without `has_limit` the next cut is held however long it is.
        """
        starts = {**after, **(bulk_from or {})}
        self._held = {each: Held(each, starts[each], position) for each in self._partitions}
        self._redeliveries = None if self._settings.exactly_once else Redeliveries()
        self._has_limit = has_limit
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
        if self._redeliveries is not None and self._redeliveries.is_again(record):
            held.skip(record)
        else:
            held.add(record)
        return True

    def require_not_too_long(self) -> None:
        """Raise TooLong once more of a table is held than is to be."""
        if self._has_limit and sum(map(len, self._held.values())) >= self._settings.bulk_offsets:
            starts = {each: held.start for each, held in self._held.items()}
            if tables := self.too_long(starts, {each: held.next for each, held in self._held.items()}):
                raise TooLong(tables)

    def too_long(self, start: Offsets, end: Offsets) -> frozenset[TableName]:
        """The tables with so much log between these offsets that it is not to be held."""
        offsets: Counter[TableName] = Counter()
        for each, last in end.items():
            offsets[self._tables[each.topic]] += last - start[each]
        return frozenset(table for table in self._may_be_bulk if offsets[table] >= self._settings.bulk_offsets)

    def of(self, table: TableName) -> list[Held]:
        """What is held of a table."""
        return [held for each, held in self._held.items() if self._tables[each.topic] == table]

    def is_empty_below(self, position: Lsn) -> bool:
        """Whether a cut at `position` would have no records."""
        return not any(held.prefix(position) for held in self._held.values())

    def take(self, position: Lsn) -> tuple[Offsets, dict[TopicPartition, list[Record]]]:
        """Remove what a cut at `position` has, the next one goes on behind it; returns where it ends, and its records.

        Of tables in `bulk` the records are left out.
        """
        taken = {each: held.take(held.prefix(position), position) for each, held in self._held.items()}
        end = {each: held.start for each, held in self._held.items()}
        records = {each: found for each, found in taken.items() if self._tables[each.topic] not in self.bulk}
        self.start, self.bulk, self._has_limit = end, frozenset(), True
        return end, records

"""The cut, without Kafka: which of the records that were read belong to everything committed up to B.

A record belongs to the cut if and only if its s0, the end of the commit before its transaction, is below B: then its
own commit ends at B or earlier. A record without s0 (a tombstone, a snapshot read, the first transaction after the slot
was created, one that could not be parsed) inherits the highest s0 before it in its partition. In each partition the cut
ends before the first record with s0 at or above B; the next cut starts there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Protocol

from cdc_views.base.captured import CapturedSet
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.stopped import StoppedTable
from cdc_views.errors import RESET, LogDiscontinuity, SequenceRegressed
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.record import Offsets, Order, RawRecord, Record, TopicPartition


@dataclass(frozen=True)
class Cut:
    """What the next epoch contains: from `start` to before `end` in each partition; the state at `position`.

    Everything committed before `complete_to` is in it; `committed_at` is that moment by the source's clock. `bulk`
    lists the tables whose part is too long to be held: it is read in pieces by whoever needs it. `marker` is the number
    of the marker that vouches for the cut, `captured` describes the captured tables at its position. `leader_epochs`
    are those of the last records before `end`, or later ones, where they are known. The cut has no records of tables in
    `stopped`.
    """

    position: Lsn
    complete_to: Lsn
    committed_at: datetime
    start: Offsets
    end: Offsets
    bulk: frozenset[TableName] = frozenset()
    marker: int | None = None
    captured: CapturedSet | None = None
    leader_epochs: Mapping[TopicPartition, int] = field(default_factory=dict)
    stopped: Mapping[TableName, StoppedTable] = field(default_factory=dict)


class CutLog(Protocol):
    """What an epoch asks of a log: Kafka's (log.py), or one in memory (cdc_views.testing)."""

    def cut(
        self,
        after: Offsets,
        position: Lsn | None,
        caught_up_at: datetime | None = None,
        held: Collection[TableName] = (),
        stopped: Mapping[TableName, StoppedTable] | None = None,
    ) -> Cut:
        """Cut what was committed up to now and comes after `after`, or a first part of it; `held` tables are not in
        `bulk`.

        The cut omits the tables in `stopped`, and those that it finds it must stop; with None it raises the error.
        """

    def has_changes(self, cut: Cut) -> bool:
        """Whether the cut has records of mirrored tables."""

    def records(self, cut: Cut) -> Iterator[Record]:
        """Yield the records of mirrored tables in the cut except `bulk`, by partition in offset order."""

    def record_at(self, at: LogOffset) -> RawRecord | None:
        """Read one record of a table's topic again; None if it is gone."""

    def changes_before_starts(self, cut: Cut) -> list[Record]:
        """For each start of the connector, return the last change before it if that is in the cut and of a mirrored
        table.
        """

    def require_repeatable(self, cut: Cut) -> None:
        """Raise LogGap or OffsetCompacted if the cut may not be read again as it was."""

    def require_read_in_time(self, began: datetime) -> None:
        """Raise LogGap unless reading from the first offsets, which has just ended, was fast enough to see
        each delete.
        """

    def require_gapless(self, since: datetime) -> None:
        """Raise LogGap unless the log still has every delete since then."""

    def table_of(self, topic: str) -> TableName:
        """Return the table of a topic."""


class PartitionBuffer:
    """The records of one partition that were read and are in no cut yet, in offset order."""

    def __init__(self, partition: TopicPartition, start: int, floor: Lsn | None) -> None:
        """Everything before offset `start` is in the cut at position `floor`; None before the first cut."""
        self.partition = partition
        self.start = start
        self.next = start
        self._floor = floor
        self._records: deque[tuple[int, Record]] = deque()
        # -1 stands for minus infinity: no record with an s0 was read yet.
        self._commit = -1
        self._lsn: int | None = None

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        """Yield pairs of the s0 that counts for a record, and the record."""
        return iter(self._records)

    @property
    def highest(self) -> int:
        """The highest s0 so far, below which no later record is; -1 if there was none."""
        return self._commit

    def add(self, record: Record) -> None:
        """Take the next record. Raises SequenceRegressed and LogDiscontinuity."""
        order = record.order
        if order is not None:
            if order.commit == self._commit:
                if order.lsn is not None and self._lsn is not None and order.lsn < self._lsn:
                    raise self._regressed(record, order)
                self._lsn = order.lsn
            elif order.commit is not None and order.commit > self._commit:
                self._advance(record, order.commit, order.lsn)
            elif order.commit is not None or self._commit >= 0:
                raise self._regressed(record, order)
            elif self._floor is not None:
                raise discontinuity(record, self._floor, self._order)
        self._records.append((self._commit, record))
        self.next = record.offset + 1

    def skip(self, record: Record) -> None:
        """Pass over the next record."""
        self.next = record.offset + 1

    def prefix(self, position: int) -> int:
        """Count the records that belong to everything committed up to `position`."""
        count = 0
        for commit, _ in self._records:
            if commit >= position:
                break
            count += 1
        return count

    def end(self, count: int) -> int:
        """Return the offset at which a cut with the first `count` records ends."""
        if count < len(self._records):
            return self._records[count][1].offset
        return self.next

    def take(self, count: int, position: Lsn) -> list[Record]:
        """Remove the first `count` records: they are in the cut at `position` now."""
        self.start = self.end(count)
        taken = [record for _, record in islice(self._records, count)]
        for _ in range(count):
            self._records.popleft()
        self._floor = position
        return taken

    def _advance(self, record: Record, commit: int, lsn: int | None) -> None:
        if self._floor is not None and commit < self._floor:
            raise discontinuity(record, self._floor, self._order)
        self._commit, self._lsn = commit, lsn

    @property
    def _order(self) -> Order:
        """The highest order so far."""
        return Order(None if self._commit < 0 else self._commit, self._lsn)

    def _regressed(self, record: Record, order: Order) -> SequenceRegressed:
        return SequenceRegressed(
            f'topic "{record.topic}" partition {record.partition} offset {record.offset}: order is '
            f"{_printed(order)}, wanted at least {_printed(Order(max(self._commit, 0), self._lsn))}",
            hint="the topic was written twice: by two connectors, by a second snapshot, or without exactly-once; "
            f"{RESET}",
        )


def discontinuity(record: Record, floor: Lsn, before: Order | None = None) -> LogDiscontinuity:
    """Return the error of a record whose order is below what is published already, or that has no order.

    `before` is the highest order in its partition so far: it tells a late change from a redelivered one.
    """
    return LogDiscontinuity(
        f"{record.log_offset}: order is {_printed(record.order or Order(None, None))}, "
        f"wanted at least the published position {floor}"
        + ("" if before is None else f"; the highest before it is {_printed(before)}"),
        hint=f"the log continues from an earlier state of the source (a failover, a restore, a new slot); {RESET}",
    )


def _printed(order: Order) -> str:
    commit = "none" if order.commit is None else str(Lsn(order.commit))
    return f"({commit}, {'none' if order.lsn is None else Lsn(order.lsn)})"

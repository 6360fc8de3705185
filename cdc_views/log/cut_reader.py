"""Reading the log up to a marker, into the buffer that the next cut is taken from.

What was committed before a marker is in Kafka once the marker can be read (cuts/barrier.py). The end offsets are taken
after that, and the log is read up to them, soon enough that the cleaner has removed nothing.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.service_schema import DDL, HEARTBEAT, TRUNCATES
from cdc_views.config import LogSettings
from cdc_views.errors import RESET, LogDiscontinuity, LogGap, MarkerTimeout, OffsetCompacted, TopicChanged
from cdc_views.host.clock import Clock
from cdc_views.log.cuts.barrier import Barrier
from cdc_views.log.cuts.buffer import BufferFull, CutBuffer
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.cuts.markers import ArrivedMarker
from cdc_views.log.debezium.connector_starts import ConnectorStarts
from cdc_views.log.debezium.health import LogHealth, WatchedSlot
from cdc_views.log.kafka.memory_limit import batch_size
from cdc_views.log.kafka.reader import Reader
from cdc_views.log.kafka.record import Offsets, RawRecord, Record, TopicPartition, parse_records, require_event
from cdc_views.log.kafka.retention import LogRetention
from cdc_views.log.kafka.topics import committed_ends, end_offsets
from cdc_views.log.log_topics import LogTopics

_WAIT_S: Final = 0.05
# Their records describe the log as a whole: if one cannot be read, no cut is right.
SERVICE_TABLES: Final = frozenset({DDL, HEARTBEAT, TRUNCATES})


@dataclass(frozen=True)
class LastCut:
    """Where the last published cut ended: the next one begins there.

    `position` and `caught_up_at`, the commit time of the cut, are None before the first cut.
    """

    end: Offsets
    position: Lsn | None
    caught_up_at: datetime | None


@dataclass(frozen=True)
class TakenRecords:
    """What a cut has taken from the buffer; `leader_epochs` are those at `end`, where they are known."""

    start: Offsets
    end: Offsets
    bulk: frozenset[TableName]
    records: dict[TopicPartition, list[Record]]
    leader_epochs: dict[TopicPartition, int]


class CutReader:
    """Fills `buffer` with what was committed before a marker; one consumer, from one thread."""

    def __init__(
        self,
        settings: LogSettings,
        topics: LogTopics,
        retention: LogRetention,
        barrier: Barrier,
        *,
        bulk: Collection[TableName],
        published: Cut | None,
        clock: Clock,
        slot: WatchedSlot | None,
    ) -> None:
        """See `Log` for the arguments. Raises NotRunning."""
        self._settings = settings
        self._topics = topics
        self._retention = retention
        self._barrier = barrier
        self._clock = clock
        self._epochs: Mapping[TopicPartition, tuple[int, int]] = _epochs_at_end(published) if published else {}
        self._has_snapshot = False  # all of it is in a cut
        self.buffer = CutBuffer(settings, topics.tables, topics.partitions, bulk)
        self.connector_starts = ConnectorStarts(settings, topics.admin)
        self._health = LogHealth(settings, topics.require_same, slot)
        self._reader = Reader(settings, batch=batch_size(settings))

    def resume(self, last: LastCut) -> None:
        """Make sure that the buffer continues after the last cut; read from there again if it does not."""
        if self.buffer.continues_from(last.end):
            return
        self._topics.require_same()
        if set(last.end) != set(self._topics.partitions):
            odd = min(set(last.end) ^ set(self._topics.partitions))
            raise TopicChanged(f'partition "{odd}" is in only one of the published epoch and the log')
        ends = self._topics.ends(last.end)
        self._topics.require_readable(last.end)
        self._retention.start(last.caught_up_at)
        self.hold(last, self.buffer.too_long(last.end, ends))

    def hold(self, last: LastCut, bulk: frozenset[TableName], *, is_all_held: bool = False) -> None:
        """Start reading after the last cut; of the tables in `bulk`, hold only what comes from now on.

        What can be read of these tables now was committed before the next marker is written, so it is in the cut,
        whatever its order is. With `is_all_held` no table is too long to be held.
        """
        epochs = {each: epoch for each, (at, epoch) in self._epochs.items() if last.end[each] == at}
        in_bulk = {each: epoch for each, epoch in epochs.items() if self._topics.tables[each.topic] in bulk}
        self._topics.require_kept(last.end, in_bulk)
        partitions = self._topics.partitions_of(bulk)
        now, epochs_now = committed_ends(self._topics.admin, partitions) if bulk else ({}, {})
        self.buffer.begin(last.end, last.position, bulk, now, is_all_held=is_all_held)
        self._has_snapshot = last.position is not None
        self._barrier.forget()
        heartbeat = end_offsets(self._topics.admin, self._topics.heartbeat)
        self._reader.assign({**last.end, **now, **heartbeat}, {**epochs, **epochs_now})

    def read_past_marker(self, last: LastCut) -> ArrivedMarker:
        """Read everything that a new marker vouches for; tables that are too long to be held become bulk.

        Raises BufferFull if that is still more than may be held.
        """
        while True:
            try:
                return self._read_past_marker()
            except BufferFull as found:
                if not found.tables:
                    raise
                self.hold(last, self.buffer.bulk | found.tables)

    def _read_past_marker(self) -> ArrivedMarker:
        deadline = self.new_deadline()
        while True:
            marker = self.await_marker(deadline)
            self._read_to(self._ends(), deadline)
            # The end offsets were those of these topics, and these partitions have all that precedes the marker.
            self.require_same_topics()
            self._retention.caught_up(self._clock.now().timestamp())
            if self._clock.monotonic() - self._barrier.touched_s <= self._retention.validity_s:
                return marker
            if time.monotonic() > deadline:
                raise LogGap(
                    f"reading the log takes longer than {self._retention.validity_s:.0f} s, the time for which it "
                    "keeps every version of a row",
                    hint="raise min.compaction.lag.ms of the topics",
                )

    def new_deadline(self) -> float:
        """Begin a wait for a marker: return when it must have ended, by time.monotonic()."""
        self._health.begin()
        return time.monotonic() + self._settings.marker_timeout_s

    def is_over(self, deadline: float) -> bool:
        """Whether a wait has lasted too long."""
        return time.monotonic() > deadline

    def await_marker(self, deadline: float, *, alone: bool = False) -> ArrivedMarker:
        """Write a marker and read until it has passed; `alone` reads no topic but the markers'.

        Raises MarkerTimeout, and what the checks of the log's health raise.
        """
        if alone:
            self._reader.read_only(self._topics.heartbeat)
        self._barrier.touch()
        while (marker := self._barrier.passed()) is None:
            if time.monotonic() > deadline:
                ends = end_offsets(self._topics.admin, self._topics.heartbeat)
                raise self._barrier.timeout(
                    {each: start for each, end in ends.items() if (start := self._reader.next[each]) < end}
                )
            self._health.look()
            if self._retention.is_due(self._clock.now().timestamp()):
                self._note_caught_up()
            self._read(_WAIT_S)
        return marker

    def unread(self) -> dict[TopicPartition, int]:
        """Return the end offsets of the partitions that were not read to their ends."""
        return {each: end for each, end in self._ends().items() if self._reader.next[each] < end}

    def read_some(self, partitions: Collection[TopicPartition]) -> None:
        """Read a batch of these partitions and of the markers'; the others wait where they are."""
        self._reader.read_only({*self._topics.heartbeat, *partitions})
        self._read(_WAIT_S)
        self._health.look()

    def resume_all(self) -> None:
        """Resume the partitions that `read_some`, or waiting for a marker alone, has paused."""
        self._reader.read_only(self._reader.next)

    def timeout(self, ends: Offsets) -> MarkerTimeout:
        """Return the error of partitions that were not read to these offsets in time."""
        behind = next(each for each, end in ends.items() if self._reader.next[each] < end)
        return MarkerTimeout(
            f'partition "{behind}" could not be read to offset {ends[behind]}, only to {self._reader.next[behind]}',
            hint="a transaction of a connector that was killed may stay open until its timeout",
        )

    def require_same_topics(self) -> None:
        """Raise TopicChanged if the topics are others, or keep records for less time, than when the log was opened."""
        self._topics.require_same()
        self._topics.require_kept_as_long()

    def take(self, position: Lsn) -> TakenRecords:
        """Remove from the buffer what a cut at `position` contains."""
        start, bulk = self.buffer.start, self.buffer.bulk
        end, records = self.buffer.take(position)
        self._health.forget(position)
        epochs = {each: epoch for each, epoch in self._reader.leader_epochs.items() if each in end}
        self._epochs = {each: (end[each], epoch) for each, epoch in epochs.items()}
        self._has_snapshot = True
        return TakenRecords(start, end, bulk, records, epochs)

    def close(self) -> None:
        """Close the consumers."""
        self._reader.close()
        self._barrier.close()

    def _ends(self) -> dict[TopicPartition, int]:
        """Return the end offsets of the tables' partitions, and take note of new starts of the connector."""
        read = {each: self._reader.next[each] for each in self._topics.partitions}
        ends = self._topics.ends({**read, self.connector_starts.partition: 0})
        self.connector_starts.read_to(ends.pop(self.connector_starts.partition))
        return ends

    def _read_to(self, ends: Offsets, deadline: float) -> None:
        while not self._reader.reached(ends):
            if time.monotonic() > deadline:
                raise self.timeout(ends)
            self._read(_WAIT_S)
            self._health.look()

    def _read(self, wait_s: float) -> None:
        for record in parse_records(self._read_raw(wait_s)):
            if record.problem is not None and self._topics.tables[record.topic] in SERVICE_TABLES:
                require_event(record)
            self._health.require_follows(record)
            if not self.buffer.add(record) and (record.topic, record.partition) in self._topics.heartbeat:
                self._require_no_snapshot(record)
                self._barrier.take(record)
        self.buffer.require_not_too_long()

    def _read_raw(self, wait_s: float) -> list[RawRecord]:
        try:
            return self._reader.read(wait_s)
        except OffsetCompacted as error:
            raise self._topics.error_of_lost(error, self._reader.next) from None

    def _require_no_snapshot(self, heartbeat: Record) -> None:
        if self._has_snapshot and heartbeat.value is not None and heartbeat.value.get("op") == "r":
            raise LogDiscontinuity(
                f'topic "{heartbeat.topic}" offset {heartbeat.offset}: a snapshot was taken again, wanted changes',
                hint=f"rows that were deleted before it have no event; {RESET}",
            )

    def _note_caught_up(self) -> None:
        now = self._clock.now().timestamp()
        ends = end_offsets(self._topics.admin, self._topics.partitions, committed=True)
        if self._reader.reached(ends):
            self._retention.caught_up(now)


def _epochs_at_end(cut: Cut) -> Mapping[TopicPartition, tuple[int, int]]:
    """The end offset of each partition of a cut, and the leader epoch there where it is known."""
    return {each: (cut.end[each], epoch) for each, epoch in cut.leader_epochs.items()}

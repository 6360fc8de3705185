"""The log of one connector: one cut after the other, and the records of each.

`Log.cut` is the main path. The engine writes a marker into the source and waits until the marker can be read. What
was in the topics at that moment is read (cut_reader.py) and cut at the marker's position (cuts/cut.py). The cut ends
earlier before DDL that cannot be applied (cuts/table_stops.py), and where it would not fit into memory (`_part`).
Whatever would make a cut inexact, such as compaction, other topics or another history of the source, is an error of its
own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cdc_views.base.captured import CapturedSet
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.stopped import StoppedTable
from cdc_views.config import LogSettings
from cdc_views.errors import CdcViewsError, LogDiscontinuity, LogGap
from cdc_views.errors.log_offset import LogOffset
from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.log.cut_reader import SERVICE_TABLES, CutReader, LastCut
from cdc_views.log.cuts.barrier import Barrier
from cdc_views.log.cuts.buffer import BufferFull
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.cuts.markers import ArrivedMarker, MarkerWriter, committed_at
from cdc_views.log.cuts.ranges import is_end, read_piece, read_range
from cdc_views.log.cuts.table_stops import TableStops
from cdc_views.log.debezium.health import WatchedSlot
from cdc_views.log.debezium.snapshot import require_one_snapshot
from cdc_views.log.kafka.record import Offsets, RawRecord, Record, TopicPartition
from cdc_views.log.kafka.retention import LogRetention
from cdc_views.log.kafka.topics import Topic
from cdc_views.log.log_topics import LogTopics

_END_LIMIT_S: Final = 30.0
# A command that is committed between a marker and the look at the captured set is explained by a record that comes
# before the next marker. So an unexplained difference is looked at with a new marker, until the fifth look.
_LOOKS: Final = 5


class Log:
    """The topics of the mirrored tables, cut at positions of the source. One cut at a time, from one thread."""

    def __init__(
        self,
        settings: LogSettings,
        tables: Sequence[TableName],
        marker: MarkerWriter,
        *,
        publication: str = "",
        known_topics: Mapping[str, Any] | None = None,
        toast_lookup: Collection[TableName] = (),
        bulk: Collection[TableName] = (),
        published: Cut | None = None,
        clock: Clock = SYSTEM_CLOCK,
        slot: WatchedSlot | None = None,
        changed: Mapping[TableName, CdcViewsError] | None = None,
        zoned: Collection[TableName] = (),
    ) -> None:
        """Open the log: look at its topics. Raises TopicChanged, NotRunning.

        `publication` is the project's: only its records of DDL and TRUNCATE count. `known_topics` is what `topics()`
        returned when the mirrors were made. `toast_lookup` lists the tables whose unchanged TOAST values come from
        the mirror: every version of their rows is needed. `bulk` lists the tables that Spark may read instead of the
        driver (`Cut.bulk`). `published` is the last published cut: with it the log finds out what happened to tables
        and brokers since. `clock` tells the age of what is read; waits for Kafka use real time. `slot` watches the
        connector's slot, if anything does. `changed` lists tables that are no longer what their mirrors were made of;
        the log is expected to show when that happened. `zoned` lists tables with values that are printed in the time
        zone of the connector's session.
        """
        self._settings = settings
        self._clock = clock
        self._topics = LogTopics(settings, tables, known_topics or {})
        self._mirrored = frozenset(tables)
        self._retention = LogRetention(
            [self._topics.topic_of(table) for table in tables],
            [self._topics.topic_of(table) for table in tables if table in toast_lookup],
        )
        self._barrier = Barrier(settings, marker, clock, zoned)
        self._reader = CutReader(
            settings,
            self._topics,
            self._retention,
            self._barrier,
            bulk=bulk,
            published=published,
            clock=clock,
            slot=slot,
        )
        self._buffer = self._reader.buffer
        self._stops = TableStops(
            publication,
            self._mirrored,
            published.captured if published else None,
            changed or {},
            barrier=self._barrier,
            buffer=self._buffer,
        )
        self._taken: tuple[Cut, dict[TopicPartition, list[Record]]] | None = None

    def cut(
        self,
        after: Offsets,
        position: Lsn | None,
        caught_up_at: datetime | None = None,
        held: Collection[TableName] = (),
        stopped: Mapping[TableName, StoppedTable] | None = None,
    ) -> Cut:
        """Cut what was committed up to now, or before the first DDL or TRUNCATE that cannot be applied.

        The cut after such a one leaves that table out: `Cut.stopped` lists it, and the tables in `stopped`. The error
        of the table is raised instead if `stopped` is None, before the first published cut, and for the last table.

        What the driver must not hold at once (`log.driver_mb`), and Spark cannot read, is cut in several parts.

        `after` and `position` are the end of the last published cut; `position` is None before the first one.
        `caught_up_at` is the `committed_at` of that cut; it matters to a Log that has not made the cut itself. Tables
        in `held` are never in `Cut.bulk`.
        Raises MarkerTimeout, ConnectorFailed, PrintedOtherwise, SchemaChanged, TableTruncated, LogGap, OffsetCompacted,
        TopicChanged, SequenceRegressed, LogDiscontinuity, SnapshotInterrupted, CutTooLarge.
        """
        self._taken = None  # the driver holds the events of one cut
        self._buffer.never_bulk, self._buffer.unread = frozenset(held), frozenset(stopped or ())
        self._stops.begin(stopped)
        try:
            return self._cut(LastCut(after, position, caught_up_at))
        except BaseException:
            self._buffer.forget()  # some records may not be in it: the next cut reads them again
            raise

    def _cut(self, last: LastCut, looks: int = _LOOKS) -> Cut:
        self._reader.resume(last)
        try:
            marker = self._reader.read_past_marker(last)
        except BufferFull:
            return self._part(last)
        return self._at_marker(last, marker, looks)

    def _at_marker(self, last: LastCut, marker: ArrivedMarker, looks: int = _LOOKS) -> Cut:
        """Cut at a marker, or before the first stop; everything up to the marker was read."""
        assert marker.position is not None
        if last.position is None:
            # Connect may have been killed after it reported the snapshot as complete, before it stored the offset.
            require_one_snapshot(self._settings)
        elif marker.position < last.position:
            raise LogDiscontinuity(
                f"the marker is at position {marker.position}, wanted at least the published {last.position}",
                hint="the source continues from an earlier state of itself (a failover or a restore)",
            )
        while (unexplained := self._stops.unexplained(marker)) is not None:
            if looks > 1:
                return self._cut(last, looks - 1)
            self._stops.stop(unexplained, last.position)
        stop = self._stops.first_ahead(marker, last.position)
        if stop is None and (changed := self._stops.changed_since_start()) is not None:
            self._stops.stop(changed, last.position)
            return self._at_marker(last, marker, looks)
        if stop is None:
            return self._take(marker.position, marker.lsn, marker.committed_at, marker, self._barrier.captured)
        if self._buffer.bulk:
            # Only reading the records of these tables shows which of them come before the stop.
            self._reader.hold(last, frozenset(), is_all_held=True)
            return self._cut(last)
        assert stop.position is not None
        assert stop.committed_at is not None
        return self._take(stop.position, stop.position, stop.committed_at, marker, self._captured_at(stop.position))

    def _part(self, last: LastCut) -> Cut:
        """Cut earlier than at a marker: more is held than may be, and no table can be left to Spark.

        A cut may be at any position all events before which were read. But a later version of a row, which is not in
        such a cut, may have made the cleaner remove the version that is. So everything that is still to be read must
        be too young for that.
        """
        if last.position is None or not self._settings.exactly_once:
            raise self._buffer.too_large("the first cut, and every cut without exactly-once, must be read as a whole")
        if not self._retention.has_every_version(self._clock.now().timestamp()):
            raise self._buffer.too_large("the log was not read for so long that it can only be read as a whole")
        if self._buffer.bulk:
            self._reader.hold(last, frozenset(), is_all_held=True)
            return self._cut(last)
        self._buffer.end_soon()
        try:
            return self._read_part(last, last.position)
        finally:
            self._reader.resume_all()

    def _read_part(self, last: LastCut, position: Lsn) -> Cut:
        deadline, looks = self._reader.new_deadline(), _LOOKS
        marker = self._reader.await_marker(deadline, alone=True)
        while True:
            unread = self._reader.unread()
            if not unread:
                self._reader.require_same_topics()
                return self._at_marker(last, marker)
            if self._reader.is_over(deadline):
                raise self._reader.timeout(unread)
            # First read everything that was done to the tables before the marker, even what comes after this cut.
            wanted = {each for each in unread if self._topics.tables[each.topic] in SERVICE_TABLES}
            if not wanted:
                if (stop := self._stops.unexplained(marker)) is not None:
                    looks -= 1
                    if not looks:
                        self._stops.stop(stop, position)
                        looks = 1
                    marker = self._reader.await_marker(deadline, alone=True)
                    continue
                reached = self._buffer.position_reached(unread)
                if reached is not None and reached > position and not self._buffer.is_empty_below(reached):
                    return self._take_part(reached, position, marker)
                wanted = self._buffer.slowest(unread)
            self._reader.read_some(wanted)

    def _take_part(self, reached: Lsn, position: Lsn, marker: ArrivedMarker) -> Cut:
        self._reader.require_same_topics()
        stop = self._stops.first_ahead(marker, position)
        if stop is not None and stop.position is not None and stop.position <= reached:
            assert stop.committed_at is not None
            reached, at = stop.position, stop.committed_at
        else:
            first = self._buffer.first_after(reached)
            assert first.value is not None
            at = committed_at(first.value)
        cut = self._take(reached, reached, at, marker, self._captured_at(reached))
        if self.changes_before_starts(cut):
            # Whether the connector has skipped rows there, only a cut at a later marker can show.
            raise self._buffer.too_large("the connector was started in between, so it must be read as a whole")
        return cut

    def _captured_at(self, position: Lsn) -> CapturedSet:
        _, result = self._stops.check(position)
        return result.captured

    def _take(
        self, position: Lsn, complete_to: Lsn, committed_at: datetime, marker: ArrivedMarker, captured: CapturedSet
    ) -> Cut:
        taken, stopped = self._reader.take(position), self._stops.stopped
        cut = Cut(
            position,
            complete_to,
            committed_at,
            taken.start,
            taken.end,
            taken.bulk - stopped.keys(),
            marker.number,
            captured,
            taken.leader_epochs,
            stopped,
        )
        self._stops.captured = captured
        self._taken = (cut, taken.records)
        return cut

    def has_changes(self, cut: Cut) -> bool:
        """Whether the cut has records of mirrored tables."""
        return bool(cut.bulk) or next(self.records(cut), None) is not None

    def records(self, cut: Cut) -> Iterator[Record]:
        """Yield the records of the mirrored tables in the cut except `cut.bulk`, by partition in offset order.

        The records of the last cut are in memory; those of another one are read again.
        Raises LogGap or OffsetCompacted if they can no longer be read as they were.
        """
        if self._taken is None or self._taken[0] != cut:
            self.require_repeatable(cut)
            unread = [name for name, table in self._topics.tables.items() if table in cut.bulk or table in cut.stopped]
            records = read_range(self._settings, cut, self._settings.marker_timeout_s, leaving_out=unread)
            self.require_repeatable(cut)  # compaction may have begun in the meantime
            self._taken = (cut, records)
        for partition, records_of_it in self._taken[1].items():
            if self._is_applied(partition.topic, cut):
                yield from records_of_it

    def _is_applied(self, topic: str, cut: Cut) -> bool:
        table = self.table_of(topic)
        return table in self._mirrored and table not in cut.stopped

    def record_at(self, at: LogOffset) -> RawRecord | None:
        """Read one record again; None if it was compacted away."""
        partition = TopicPartition(at.topic, at.partition)
        pieces = read_piece(self._settings, partition, at.offset, at.offset + 1)
        return next((record for piece in pieces for record in piece), None)

    def changes_before_starts(self, cut: Cut) -> list[Record]:
        """For each start of the connector, return the last change before it if that is in the cut and applied."""
        found = self._reader.connector_starts.changes_before(cut.start, cut.end)
        return [record for record in found if self._is_applied(record.topic, cut)]

    def require_repeatable(self, cut: Cut) -> None:
        """Raise LogGap, OffsetCompacted or LogDiscontinuity if the cut may not be read again as it was."""
        self.require_gapless(cut.committed_at)  # tombstones are removed by time alone, whatever comes after them
        ends = self._topics.ends(cut.end)
        self._topics.require_readable(cut.start)
        self._topics.require_same()
        self._topics.require_kept(cut.end, cut.leader_epochs)
        age_s = (self._clock.now() - cut.committed_at).total_seconds()
        # The cleaner removes a version of a row only if there is a later one.
        if age_s > self._retention.validity_s and not is_end(self._settings, cut.end, ends, _END_LIMIT_S):
            raise LogGap(
                f"the cut at position {cut.position} is {age_s:.0f} s old, and after "
                f"{self._retention.validity_s:.0f} s its rows may have been compacted away",
                hint="a later cut holds all of it",
            )

    def require_gapless(self, since: datetime) -> None:
        """Raise LogGap unless the log still has every delete since then."""
        self._retention.require_gapless(since.timestamp(), self._clock.now().timestamp())

    def require_read_in_time(self, began: datetime) -> None:
        """Raise LogGap unless reading from the first offsets, which has just ended, was fast enough to see each delete.

        A delete that the cleaner has met stays only for delete.retention.ms from then on: it may disappear meanwhile.
        """
        took_s = (self._clock.now() - began).total_seconds()
        if took_s > self._retention.reading_limit_s:
            raise LogGap(
                f"reading the log from its beginning took {took_s:.0f} s, and it keeps deletes for "
                f"{self._retention.reading_limit_s:.0f} s",
                hint="raise delete.retention.ms of the topics, or rebuild from a snapshot",
            )

    def begin(self) -> Offsets:
        """Return the first offset of every partition of the topics of tables, DDL and TRUNCATE."""
        return self._topics.begin_offsets()

    def topics(self) -> dict[str, Any]:
        """Return what must never change about the topics, as JSON."""
        return self._topics.facts()

    def table_of(self, topic: str) -> TableName:
        """Return the table of a topic."""
        return self._topics.tables[topic]

    def topic_of(self, table: TableName) -> Topic:
        """Return the topic of a table."""
        return self._topics.topic_of(table)

    def partitions_of(self, tables: Collection[TableName]) -> list[TopicPartition]:
        """Return the partitions of the topics of these tables."""
        return self._topics.partitions_of(tables)

    def too_long(self, start: Offsets, end: Offsets) -> frozenset[TableName]:
        """Return the tables with more log between these offsets than the driver should hold."""
        return self._buffer.too_long(start, end)

    def close(self) -> None:
        """Close the consumers."""
        self._reader.close()

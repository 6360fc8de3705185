"""The log of one connector: cut after cut, and the records of each.

The engine's marker is written into the source and waited for; then everything that was in the
topics when it was seen is read, and cut at its position (cut.py). Whatever makes that inexact,
compaction, other topics, other histories, is an error of its own.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from cdc_views.captured import CapturedSet
from cdc_views.clock import SYSTEM_CLOCK, Clock
from cdc_views.config import LogSettings
from cdc_views.errors import (
    RESET,
    CdcViewsError,
    LogDiscontinuity,
    LogGap,
    MarkerTimeout,
    OffsetCompacted,
    TopicChanged,
)
from cdc_views.log.barrier import Barrier
from cdc_views.log.buffer import BufferFull, CutBuffer
from cdc_views.log.connector_starts import ConnectorStarts
from cdc_views.log.cut import Cut
from cdc_views.log.ddl import DdlCheck, DdlResult, Stop
from cdc_views.log.health import LogHealth, WatchedSlot
from cdc_views.log.markers import ArrivedMarker, MarkerWriter, committed_at
from cdc_views.log.memory_limit import batch_size
from cdc_views.log.ranges import is_end, read_piece, read_range, require_kept, require_readable
from cdc_views.log.reader import Reader
from cdc_views.log.record import Offsets, RawRecord, Record, TopicPartition, parse_records, require_event
from cdc_views.log.retention import LogRetention
from cdc_views.log.snapshot import require_one_snapshot
from cdc_views.log.topics import (
    Topic,
    admin_client,
    begin_offsets,
    committed_ends,
    describe_topics,
    end_offsets,
    require_kept_as_long,
    require_same_topics,
    topic_facts,
    topic_names,
)
from cdc_views.log_offset import LogOffset
from cdc_views.lsn import Lsn
from cdc_views.names import TableName
from cdc_views.service_schema import DDL, HEARTBEAT, TRUNCATES
from cdc_views.stopped import StoppedTable

_WAIT_S: Final = 0.05
_BEYOND_LIMIT_S: Final = 30.0
_SHRUNK_LIMIT_S: Final = 10.0
# The settings of thirty topics take a broker 30 ms, and its cleaner rests for 15 s.
_SETTINGS_INTERVAL_S: Final = 2.0
# A command committed between a marker and the look at the captured set is explained by the rows below the next marker.
_LOOKS: Final = 5
# What these say is for the log as a whole: without it no cut is right.
_SERVICE_TABLES: Final = frozenset({DDL, HEARTBEAT, TRUNCATES})


class Log:
    """The topics of the mirrored tables, cut at positions of the source. One at a time, from one thread."""

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
        """Look at the topics. Raises TopicChanged, NotRunning.

        `publication` names the project whose rows of DDL and TRUNCATE count. `known_topics` is what `topics()` said
        when the mirrors were made. `toast_lookup` are the
        tables whose unchanged TOAST values come from the mirror: they need every version of a row. `bulk` are
        those of which a cut does not hold what is long (`Cut.bulk`). `published` is the last published cut: a table may
        have been changed since, or brokers have lost some of it. `clock` tells how old what we read
        is; how long we wait for Kafka is real time. `slot` is the connector's, if somebody watches it. `changed` are
        tables that are no longer what their mirrors were made of: the log is to say when that was done. `zoned` have
        values that are printed in the time zone of the connector's session.
        """
        self._settings = settings
        self._clock = clock
        self._admin = admin_client(settings)
        self._tables = topic_names(settings.topic_prefix, tables)
        self._topics = describe_topics(self._admin, self._tables)
        require_same_topics(known_topics or {}, self.topics())
        self._require_topics()
        self._mirrored = frozenset(tables)
        self._publication = publication
        self._captured = published.captured if published else None
        self._changed = dict(changed or {})
        self._stopped: dict[TableName, StoppedTable] | None = None  # by the cut that is being made
        self._epochs = _epochs_at_end(published) if published else {}
        mirrored = [topic for name, topic in self._topics.items() if self._tables[name] in self._mirrored]
        self._retention = LogRetention(mirrored, [t for t in mirrored if self._tables[t.name] in toast_lookup])
        self._partitions = self._partitions_of(lambda table: table != HEARTBEAT)
        self._heartbeat = self._partitions_of(lambda table: table == HEARTBEAT)
        self._buffer = CutBuffer(settings, self._tables, self._partitions, bulk)
        self._has_snapshot = False  # all of it is in a cut
        self._settings_due_s = time.monotonic() + _SETTINGS_INTERVAL_S
        self._taken: tuple[Cut, dict[TopicPartition, list[Record]]] | None = None
        self._connector_starts = ConnectorStarts(settings, self._admin)
        self._health = LogHealth(settings, self._require_same_topics, slot)
        self._barrier = Barrier(settings, marker, clock, zoned)
        self._reader = Reader(settings, batch=batch_size(settings))

    def begin(self) -> Offsets:
        """Give the first offset of every partition of the tables' topics and of those of DDL and TRUNCATE."""
        return begin_offsets(self._admin, self._partitions)

    def topics(self) -> dict[str, Any]:
        """Tell what must never change about the topics, as JSON."""
        return {name: topic.facts() for name, topic in sorted(self._topics.items())}

    def table_of(self, topic: str) -> TableName:
        """Give the table of a topic."""
        return self._tables[topic]

    def cut(
        self,
        after: Offsets,
        position: Lsn | None,
        caught_up_at: datetime | None = None,
        held: Collection[TableName] = (),
        stopped: Mapping[TableName, StoppedTable] | None = None,
    ) -> Cut:
        """Cut everything committed up to now, or up to before the first DDL or TRUNCATE.

        The next cut goes on without the table of that: it is in `Cut.stopped`, as those in `stopped` are. Where nobody
        goes on without a table (None), before the first published cut, and for the last table, it raises.

        What the driver may not hold at once (`log.driver_mb`), and Spark cannot read, is cut in several parts.

        `after` and `position` are those of the last published cut, None for the first; so is
        `caught_up_at`, its `committed_at`, which matters to a Log that has not made that cut itself. Tables in `held`
        are never in `Cut.bulk`.
        Raises MarkerTimeout, ConnectorFailed, PrintedOtherwise, SchemaChanged, TableTruncated, LogGap, OffsetCompacted,
        TopicChanged, SequenceRegressed, LogDiscontinuity, SnapshotInterrupted, CutTooLarge.
        """
        self._taken = None  # the driver holds the events of one cut
        self._buffer.never_bulk, self._buffer.unread = frozenset(held), frozenset(stopped or ())
        self._stopped = None if stopped is None else dict(stopped)
        try:
            return self._cut(after, position, caught_up_at)
        except BaseException:
            self._buffer.forget()  # what was met may have been passed by: whoever goes on reads it again
            raise

    def _cut(self, after: Offsets, position: Lsn | None, caught_up_at: datetime | None, looks: int = _LOOKS) -> Cut:
        self._resume(after, position, caught_up_at)
        try:
            marker = self._held_past_a_marker(after, position)
        except BufferFull:
            return self._part(after, position, caught_up_at)
        return self._all(after, position, caught_up_at, marker, looks)

    def _all(
        self,
        after: Offsets,
        position: Lsn | None,
        caught_up_at: datetime | None,
        marker: ArrivedMarker,
        looks: int = _LOOKS,
    ) -> Cut:
        """The cut at a marker, past which everything was read."""
        assert marker.position is not None
        if position is None:
            # Connect may have been killed after the snapshot was told to be complete and before its offset was stored.
            require_one_snapshot(self._settings)
        elif marker.position < position:
            raise LogDiscontinuity(
                f"the marker is at position {marker.position}, wanted at least the published {position}",
                hint="the source goes on from an earlier state of itself (a failover or a restore)",
            )
        while (unexplained := self._unexplained(marker)) is not None:
            if looks > 1:
                return self._cut(after, position, caught_up_at, looks - 1)
            self._leave_out(unexplained, position)
        stop = self._first_stop(marker, position)
        if stop is None and (changed := self._changed_since()) is not None:
            self._leave_out(changed, position)
            return self._all(after, position, caught_up_at, marker, looks)
        if stop is None:
            return self._take(marker.position, marker.lsn, marker.committed_at, marker, self._barrier.captured)
        if self._buffer.bulk:
            # Which records are before a DDL or TRUNCATE only reading them tells.
            self._hold(after, position, frozenset(), is_all_held=True)
            return self._cut(after, position, caught_up_at)
        assert stop.position is not None
        assert stop.committed_at is not None
        before, _ = self._judged(stop.position)
        return self._take(stop.position, stop.position, stop.committed_at, marker, before.captured)

    def _first_stop(self, marker: ArrivedMarker, position: Lsn | None) -> Stop | None:
        """The first stop before which there may be something to cut; the tables of earlier ones are left out."""
        assert marker.position is not None
        while (stop := self._judged(marker.position)[0].stop) is not None:
            at = stop.position
            is_ahead = at is not None and (position is None or at > position)
            if at is not None and is_ahead and (self._buffer.bulk or not self._buffer.is_empty_below(at)):
                return stop
            self._leave_out(stop, position)
        return None

    def _leave_out(self, stop: Stop, position: Lsn | None) -> None:
        """Go on without the table of a stop, or raise its error (see `cut`)."""
        if self._stopped is None or position is None or self._mirrored <= {*self._stopped, stop.table}:
            raise stop.error
        self._stopped[stop.table] = StoppedTable.by(stop.error, max(position, stop.position or position))

    def _changed_since(self) -> Stop | None:
        """The stop of a table that is no longer what its mirror was made of, and the log does not say why."""
        left = (table for table in self._changed if table not in (self._stopped or {}))
        return next((Stop(table, None, None, self._changed[table]) for table in left), None)

    def _judged(self, position: Lsn) -> tuple[DdlResult, DdlCheck]:
        """What DDL and TRUNCATE below a position mean, and who judges that."""
        tables = self._mirrored - set(self._stopped or ())
        judge = DdlCheck(self._publication, tables, self._captured, self._barrier.captured)
        return judge.judge(self._buffer.of(DDL), self._buffer.of(TRUNCATES), position), judge

    def _part(self, after: Offsets, position: Lsn | None, caught_up_at: datetime | None) -> Cut:
        """Cut earlier than at a marker, where more is held than is to be, and no table can be left to Spark.

        Any position is one of a cut if all events before it were read. A later version of a row, which is not in such
        a cut, may have made the cleaner remove the one that is: not if all that is to be read is too young for that.
        """
        if position is None or not self._settings.exactly_once:
            raise self._buffer.too_large("the first cut, and any without exactly-once, is one")
        if not self._retention.has_every_version(self._clock.now().timestamp()):
            raise self._buffer.too_large("the log was not read for so long that it can only be read as a whole")
        if self._buffer.bulk:
            self._hold(after, position, frozenset(), is_all_held=True)
            return self._cut(after, position, caught_up_at)
        self._buffer.end_soon()
        try:
            return self._part_read(after, position, caught_up_at)
        finally:
            self._reader.read_only(self._reader.next)

    def _part_read(self, after: Offsets, position: Lsn, caught_up_at: datetime | None) -> Cut:
        deadline, looks = time.monotonic() + self._settings.marker_timeout_s, _LOOKS
        self._health.begin()
        self._reader.read_only(self._heartbeat)
        marker = self._await_marker(deadline)
        while True:
            read = {each: self._reader.next[each] for each in self._partitions}
            ends = self._ends({**read, self._connector_starts.partition: 0})
            self._connector_starts.read_to(ends.pop(self._connector_starts.partition))
            behind = {each for each, end in ends.items() if read[each] < end}
            if not behind:
                self._require_same_topics()
                self._require_kept_as_long()
                return self._all(after, position, caught_up_at, marker)
            if time.monotonic() > deadline:
                raise self._behind(ends)
            # What was done to the tables before the marker is known first: all of it, also what is behind the cut.
            wanted = {each for each in behind if self._tables[each.topic] in _SERVICE_TABLES}
            if not wanted:
                if (stop := self._unexplained(marker)) is not None:
                    looks -= 1
                    if not looks:
                        self._leave_out(stop, position)
                        looks = 1
                    self._reader.read_only(self._heartbeat)
                    marker = self._await_marker(deadline)
                    continue
                reached = self._buffer.position_reached(behind)
                if reached is not None and reached > position and not self._buffer.is_empty_below(reached):
                    return self._take_part(reached, position, marker)
                wanted = self._buffer.slowest(behind)
            self._reader.read_only({*self._heartbeat, *wanted})
            self._read(_WAIT_S)
            self._health.look()

    def _unexplained(self, marker: ArrivedMarker) -> Stop | None:
        """The stop of a table that is not as the changes before a marker have left it."""
        assert marker.position is not None
        judged, judge = self._judged(marker.position)
        return judge.unexplained(judged)

    def _take_part(self, reached: Lsn, position: Lsn, marker: ArrivedMarker) -> Cut:
        self._require_same_topics()
        self._require_kept_as_long()
        assert marker.position is not None
        stop = self._first_stop(marker, position)
        if stop is not None and stop.position is not None and stop.position <= reached:
            assert stop.committed_at is not None
            reached, at = stop.position, stop.committed_at
        else:
            first = self._buffer.first_after(reached)
            assert first.value is not None
            at = committed_at(first.value)
        cut = self._take(reached, reached, at, marker, self._judged(reached)[0].captured)
        if self.changes_before_starts(cut):
            # Whether the connector has left rows out there only a cut at a later marker can tell.
            raise self._buffer.too_large("the connector was started in between, so that it is read as a whole")
        return cut

    def has_changes(self, cut: Cut) -> bool:
        """Whether the cut has records of mirrored tables."""
        return bool(cut.bulk) or next(self.records(cut), None) is not None

    def records(self, cut: Cut) -> Iterator[Record]:
        """Yield all records of the mirrored tables in the cut, but for `cut.bulk`, in offset order by partition.

        The last cut is in memory; another one is read again. Raises LogGap or OffsetCompacted if it
        can no longer be read as it was.
        """
        if self._taken is None or self._taken[0] != cut:
            self.require_repeatable(cut)
            unread = [name for name, table in self._tables.items() if table in cut.bulk or table in cut.stopped]
            records = read_range(self._settings, cut, self._settings.marker_timeout_s, leaving_out=unread)
            self.require_repeatable(cut)  # compaction may have begun while we were reading
            self._taken = (cut, records)
        for partition, records_of_it in self._taken[1].items():
            if self._is_applied(partition.topic, cut):
                yield from records_of_it

    def _is_applied(self, topic: str, cut: Cut) -> bool:
        table = self._tables[topic]
        return table in self._mirrored and table not in cut.stopped

    def record_at(self, at: LogOffset) -> RawRecord | None:
        """Read one record again; None if it was compacted away."""
        partition = TopicPartition(at.topic, at.partition)
        pieces = read_piece(self._settings, partition, at.offset, at.offset + 1)
        return next((record for piece in pieces for record in piece), None)

    def changes_before_starts(self, cut: Cut) -> list[Record]:
        """Of each start of the connector, the last change before it, if that is in the cut and of a mirrored table."""
        found = self._connector_starts.changes_before(cut.start, cut.end)
        return [record for record in found if self._is_applied(record.topic, cut)]

    def require_repeatable(self, cut: Cut) -> None:
        """Raise LogGap, OffsetCompacted or LogDiscontinuity if the cut may not be read again as it was."""
        self.require_gapless(cut.committed_at)  # tombstones go by time alone, whatever comes after them
        ends = self._ends(cut.end)
        require_readable(begin_offsets(self._admin, cut.start), cut.start)
        self._require_same_topics()
        self._require_kept(cut.end, cut.leader_epochs)
        age_s = (self._clock.now() - cut.committed_at).total_seconds()
        # Only a later version of a row makes the cleaner remove an earlier one.
        if age_s > self._retention.validity_s and not is_end(self._settings, cut.end, ends, _BEYOND_LIMIT_S):
            raise LogGap(
                f"the cut at position {cut.position} is {age_s:.0f} s old, and after "
                f"{self._retention.validity_s:.0f} s its rows may have been compacted away",
                hint="a later cut holds all of it",
            )

    def require_gapless(self, since: datetime) -> None:
        """Raise LogGap unless the log still tells of everything that was deleted since then."""
        self._retention.require_gapless(since.timestamp(), self._clock.now().timestamp())

    def require_read_in_time(self, began: datetime) -> None:
        """Raise LogGap unless a reading from the first offsets, just ended, was fast enough to meet every delete.

        A delete that was cleaned already stays for delete.retention.ms from then on only: it may go while we read.
        """
        took_s = (self._clock.now() - began).total_seconds()
        if took_s > self._retention.reading_limit_s:
            raise LogGap(
                f"reading the log from its beginning took {took_s:.0f} s, and it keeps deletes for "
                f"{self._retention.reading_limit_s:.0f} s",
                hint="raise delete.retention.ms of the topics, or rebuild from a snapshot",
            )

    def topic_of(self, table: TableName) -> Topic:
        """Give the topic of a table."""
        return next(self._topics[name] for name, known in self._tables.items() if known == table)

    def partitions_of(self, tables: Collection[TableName]) -> list[TopicPartition]:
        """Give the partitions of these tables' topics."""
        return self._partitions_of(lambda table: table in tables)

    def too_long(self, start: Offsets, end: Offsets) -> frozenset[TableName]:
        """The tables with so much log between these offsets that it is not to be held."""
        return self._buffer.too_long(start, end)

    def close(self) -> None:
        """Let the consumer go."""
        self._reader.close()
        self._barrier.close()

    def _require_topics(self) -> None:
        for name in self._tables:
            if name not in self._topics:
                raise TopicChanged(f'topic "{name}" does not exist', hint='"cdc-views run" makes it with the connector')

    def _partitions_of(self, wanted: Any) -> list[TopicPartition]:
        return [
            TopicPartition(name, number)
            for name, table in self._tables.items()
            if wanted(table)
            for number in range(self._topics[name].partitions)
        ]

    def _resume(self, after: Offsets, position: Lsn | None, caught_up_at: datetime | None) -> None:
        if self._buffer.goes_on_from(after):
            return
        self._require_same_topics()
        if set(after) != set(self._partitions):
            odd = min(set(after) ^ set(self._partitions))
            raise TopicChanged(f'partition "{odd}" is in only one of the published epoch and the log')
        ends = self._ends(after)
        require_readable(begin_offsets(self._admin, after), after)
        self._retention.start(caught_up_at)
        self._hold(after, position, self.too_long(after, ends))

    def _hold(
        self, after: Offsets, position: Lsn | None, bulk: frozenset[TableName], *, is_all_held: bool = False
    ) -> None:
        """Read from these offsets on, and hold what is read; of the tables in `bulk` what comes from now on.

        All that can be read of them now was committed before the next marker is touched, so it is in the cut,
        whatever its order is.
        """
        epochs = {each: epoch for each, (at, epoch) in self._epochs.items() if after[each] == at}
        self._require_kept(after, {each: epoch for each, epoch in epochs.items() if self._tables[each.topic] in bulk})
        now, epochs_now = committed_ends(self._admin, self.partitions_of(bulk)) if bulk else ({}, {})
        self._buffer.begin(after, position, bulk, now, is_all_held=is_all_held)
        self._has_snapshot = position is not None
        self._barrier.forget()
        self._reader.assign({**after, **now, **end_offsets(self._admin, self._heartbeat)}, {**epochs, **epochs_now})

    def _held_past_a_marker(self, after: Offsets, position: Lsn | None) -> ArrivedMarker:
        """Read past a marker, and hold only what is not too long. Raises BufferFull if that is still too much."""
        while True:
            try:
                return self._read_past_a_marker()
            except BufferFull as found:
                if not found.tables:
                    raise
                self._hold(after, position, self._buffer.bulk | found.tables)

    def _read_past_a_marker(self) -> ArrivedMarker:
        """Read to the end of what a marker vouches for, soon enough after it that nothing of it was compacted."""
        deadline = time.monotonic() + self._settings.marker_timeout_s
        self._health.begin()
        while True:
            marker = self._await_marker(deadline)
            read = {each: self._reader.next[each] for each in self._partitions}
            ends = self._ends({**read, self._connector_starts.partition: 0})
            self._connector_starts.read_to(ends.pop(self._connector_starts.partition))
            self._read_to(ends, deadline)
            # The ends were those of these topics, and what was committed before the marker is in these partitions.
            self._require_same_topics()
            self._require_kept_as_long()
            self._retention.caught_up(self._clock.now().timestamp())
            if self._clock.monotonic() - self._barrier.touched_s <= self._retention.validity_s:
                return marker
            if time.monotonic() > deadline:
                raise LogGap(
                    f"reading the log takes longer than {self._retention.validity_s:.0f} s, for which it keeps "
                    "every version of a row",
                    hint="raise min.compaction.lag.ms of the topics",
                )

    def _await_marker(self, deadline: float) -> ArrivedMarker:
        self._barrier.touch()
        while (marker := self._barrier.passed()) is None:
            if time.monotonic() > deadline:
                ends = end_offsets(self._admin, self._heartbeat)
                raise self._barrier.timeout(
                    {each: start for each, end in ends.items() if (start := self._reader.next[each]) < end}
                )
            self._health.look()
            if self._retention.is_due(self._clock.now().timestamp()):
                self._note_caught_up()
            self._read(_WAIT_S)
        return marker

    def _ends(self, wanted: Offsets) -> dict[TopicPartition, int]:
        """Where these partitions end. Raises LogDiscontinuity if that is before the wanted offsets, TopicChanged."""
        deadline = time.monotonic() + _SHRUNK_LIMIT_S
        while True:
            ends = end_offsets(self._admin, wanted)
            shrunk = next((each for each, at in wanted.items() if ends[each] < at), None)
            if shrunk is None:
                return ends
            self._require_same_topics()
            if time.monotonic() > deadline:
                raise _records_lost(f'partition "{shrunk}" ends at offset {ends[shrunk]}, wanted {wanted[shrunk]}')
            time.sleep(_WAIT_S)  # a broker that was deposed may have answered

    def _behind(self, ends: Offsets) -> MarkerTimeout:
        """The error of partitions that could not be read to their ends in time."""
        behind = next(each for each, end in ends.items() if self._reader.next[each] < end)
        return MarkerTimeout(
            f'partition "{behind}" could not be read to offset {ends[behind]}, only to {self._reader.next[behind]}',
            hint="a transaction of a killed connector may be open until its timeout",
        )

    def _read_to(self, ends: Offsets, deadline: float) -> None:
        while not self._reader.reached(ends):
            if time.monotonic() > deadline:
                raise self._behind(ends)
            self._read(_WAIT_S)
            self._health.look()

    def _read(self, wait_s: float) -> None:
        for record in parse_records(self._read_raw(wait_s)):
            if record.problem is not None and self._tables[record.topic] in _SERVICE_TABLES:
                require_event(record)
            self._health.require_follows(record)
            if not self._buffer.add(record) and (record.topic, record.partition) in self._heartbeat:
                self._require_no_snapshot(record)
                self._barrier.take(record)
        self._buffer.require_not_too_long()

    def _require_no_snapshot(self, heartbeat: Record) -> None:
        if self._has_snapshot and heartbeat.value is not None and heartbeat.value.get("op") == "r":
            raise LogDiscontinuity(
                f'topic "{heartbeat.topic}" offset {heartbeat.offset}: a snapshot was taken again, wanted changes',
                hint=f"rows deleted before it may be in no event; {RESET}",
            )

    def _read_raw(self, wait_s: float) -> list[RawRecord]:
        try:
            return self._reader.read(wait_s)
        except OffsetCompacted as error:
            raise self._lost(error, self._reader.next) from None

    def _require_kept(self, end: Offsets, leader_epochs: Mapping[TopicPartition, int]) -> None:
        """Raise LogDiscontinuity if what was before these offsets, of these epochs or earlier ones, was lost since."""
        if known := {each: end[each] for each in leader_epochs}:
            try:
                require_kept(self._settings, known, leader_epochs)
            except OffsetCompacted as error:
                raise self._lost(error, known) from None

    def _lost(self, error: OffsetCompacted, wanted: Offsets) -> Exception:
        """What the error means that a Reader has raised, which cannot tell. Raises TopicChanged."""
        self._require_same_topics()  # in one that was made anew our offsets are not there either
        begin = begin_offsets(self._admin, wanted)
        is_compacted = any(begin[each] > at for each, at in wanted.items())
        return error if is_compacted else _records_lost(error.message)

    def _require_same_topics(self) -> None:
        require_same_topics(self.topics(), topic_facts(self._admin, self._tables))

    def _require_kept_as_long(self) -> None:
        """What was read is all there was only as long as the topics keep what they kept when this log was made."""
        if (now := time.monotonic()) >= self._settings_due_s:
            require_kept_as_long(self._topics, describe_topics(self._admin, self._topics))
            self._settings_due_s = now + _SETTINGS_INTERVAL_S

    def _note_caught_up(self) -> None:
        now = self._clock.now().timestamp()
        ends = end_offsets(self._admin, self._partitions, committed=True)
        if self._reader.reached(ends):
            self._retention.caught_up(now)

    def _take(
        self, position: Lsn, complete_to: Lsn, committed_at: datetime, marker: ArrivedMarker, captured: CapturedSet
    ) -> Cut:
        start, bulk = self._buffer.start, self._buffer.bulk
        end, records = self._buffer.take(position)
        self._health.forget(position)
        epochs = {each: epoch for each, epoch in self._reader.leader_epochs.items() if each in end}
        stopped = dict(self._stopped or {})
        cut = Cut(position, complete_to, committed_at, start, end, bulk - stopped.keys(), marker.number, captured,
                  epochs, stopped)  # fmt: skip
        self._captured = captured
        self._epochs = _epochs_at_end(cut)
        self._taken = (cut, records)
        self._has_snapshot = True
        return cut


def _epochs_at_end(cut: Cut) -> dict[TopicPartition, tuple[int, int]]:
    """Where each partition of a cut ends, and what is known to be the leader epoch there."""
    return {each: (cut.end[each], epoch) for each, epoch in cut.leader_epochs.items()}


def _records_lost(problem: str) -> LogDiscontinuity:
    return LogDiscontinuity(
        f"{problem}: the log has lost records that it had",
        hint=f"a broker's machine has lost power, or a replica that was behind was made the leader; {RESET}",
    )

"""Reads tables in bulk while Debezium still fills their topics, so that the first epoch has less to read.

The rows are written as data files into the folders of the future mirrors. No table refers to these files before the
first epoch commits them. Upkeep removes files that no epoch uses, as it does after a crash.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Self
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.base.names import TableName
from cdc_views.capture.unchanged import with_placeholder
from cdc_views.config import Settings
from cdc_views.engine.capture.declared import Declared
from cdc_views.engine.capture.generation import generation_facts, generation_name
from cdc_views.engine.input.bulk import Ahead, BulkReader, OnProgress, Progress, is_looked_up
from cdc_views.engine.input.bulk_files import Range
from cdc_views.engine.tables import mirror_spec
from cdc_views.errors import CdcViewsError, NotRunning
from cdc_views.errors.unexpected import described
from cdc_views.log.debezium.placeholder import read_placeholder
from cdc_views.log.kafka.record import Offsets, TopicPartition
from cdc_views.log.kafka.retention import LogRetention
from cdc_views.log.kafka.topics import (
    Topic,
    admin_client,
    begin_offsets,
    committed_ends,
    describe_topics,
    partitions_of,
    topic_name,
    topic_names,
)
from cdc_views.source.catalog import SourceTable
from cdc_views.store.commits import Written
from cdc_views.store.delta_log import TableSpec

# A Spark job costs about 0.1 s, in which a task reads 10,000 offsets.
_LEAST_OFFSETS: Final = 25_000
# To avoid many small files, a long topic waits until half of what was read before has come, or a whole file.
_SHARE_OF_READ: Final = 0.5
_FILE_OFFSETS: Final = 400_000
# Debezium snapshots one table after the other: a topic that is quiet for this time is complete.
_QUIET_S: Final = 2.0
_POLL_S: Final = 0.2
_LOGGER: Final = logging.getLogger(__name__)


class ReadAhead:
    """Reads in a thread from `begin` to the end of the block, which waits until the current piece is written."""

    def __init__(
        self,
        settings: Settings,
        declared: Declared,
        session: Callable[[], SparkSession],
        on_progress: OnProgress = lambda progress: None,
    ) -> None:
        """`session` returns the session and may block. `on_progress` gets the share of its topic that a table has read.

        An error is logged and ends only the reading ahead of its table: the epoch that reads the table meets the error
        again. Unreachable brokers are waited for.
        """
        self._settings = settings
        self._declared = declared
        self._session = session
        self._on_progress = on_progress
        self._reading: Reading | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._reading is not None:
            self._reading.end()
            if kind is None:
                self._reading.join()

    def begin(self) -> None:
        """Start to read the topics, which exist, and what is still added to them. Another call changes nothing."""
        if self._reading is None:
            self._reading = Reading(self._settings, self._declared, self._session, self._on_progress)
            self._reading.start()

    def forget(self) -> None:
        """Forget what was read, since the topics are created again."""
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def take(self, source: SourceTable, spec: TableSpec, start: Offsets, end: Offsets) -> Ahead | None:
        """See TakeAhead. None if it was read from other topics, for another mirror, too long ago, or beyond `end`."""
        return self._reading.take(source, spec, start, end) if self._reading is not None else None


@dataclass
class TableAhead:
    """What was read of a table.

    `read` has for each partition an empty range at the offset up to which it was read, with the files of what comes
    before. `begin` are the first offsets. `leader_epochs` are those of all records read. `until` is as in Ahead.
    `ends` are the last known ends of the topic, which moved at `moved_s` (monotonic). `reading_s` is the time spent
    reading, without waiting.
    """

    source: SourceTable
    spec: TableSpec
    begin: Offsets
    read: dict[TopicPartition, Range]
    leader_epochs: Mapping[TopicPartition, int]
    until: datetime
    ends: Offsets
    moved_s: float
    reading_s: float = 0.0

    def due(self, ends: Offsets, now_s: float) -> list[Range]:
        """The next piece of each partition that has enough to read; of all partitions if the topic has become quiet."""
        if ends != self.ends:
            self.ends, self.moved_s = ends, now_s
        is_quiet = now_s - self.moved_s >= _QUIET_S
        return [
            replace(read, end=min(ends[each], read.end + _FILE_OFFSETS), ahead=())
            for each, read in self.read.items()
            if ends[each] - read.end >= (1 if is_quiet else self._enough(read))
        ]

    def _enough(self, read: Range) -> int:
        before = read.end - self.begin[read.partition]
        return min(max(_LEAST_OFFSETS, int(_SHARE_OF_READ * before)), _FILE_OFFSETS)

    def progress(self, piece: Progress) -> Progress:
        """The progress of the table while a piece is read, compared with what its topic has so far."""
        before, begin = sum(read.end for read in self.read.values()), sum(self.begin.values())
        total, seconds = sum(self.ends.values()) - begin, self.reading_s + piece.seconds
        return Progress(piece.table, before - begin + piece.done, total, seconds)

    def take_in(self, piece: Range, written: Written) -> None:
        """Record that a piece was read."""
        before = self.read[piece.partition]
        self.read[piece.partition] = Range(piece.partition, piece.end, piece.end, (*before.ahead, written))


class Reading:
    """Reads the topics that exist when it starts."""

    def __init__(
        self,
        settings: Settings,
        declared: Declared,
        session: Callable[[], SparkSession],
        on_progress: OnProgress = lambda progress: None,
    ) -> None:
        self.tables: dict[str, TableAhead] = {}
        self._settings = settings
        self._declared = declared
        self._session = session
        self._on_progress = on_progress
        self._left: Sequence[SourceTable] = [table for table in declared.sources if not is_looked_up(table)]
        self._admin = admin_client(settings.log)
        self._spark: SparkSession | None = None
        self._tag = f"cdc-views-{uuid4()}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="read ahead", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """Start no further piece."""
        self._ended.set()

    def cancel(self) -> None:
        """Cancel the current piece, and start no other."""
        self.end()
        if self._spark is not None:
            self._spark.sparkContext.cancelJobsWithTag(self._tag)

    def join(self) -> None:
        """Wait for the last piece."""
        self._thread.join()

    def take(self, source: SourceTable, spec: TableSpec, start: Offsets, end: Offsets) -> Ahead | None:
        """See TakeAhead. The thread must have ended."""
        table = self.tables.pop(spec.name, None)
        if table is None or (table.source, table.spec, table.begin) != (source, spec, start):
            return None
        if any(read.end > end[each] for each, read in table.read.items()):
            return None  # the cut is that of an earlier engine, which had started with it
        _, epochs = committed_ends(self._admin, start)
        # With another leader there may be other records at these offsets.
        if epochs != table.leader_epochs or datetime.now(UTC) > table.until:
            return None
        return Ahead(table.read, table.until)

    def _run(self) -> None:
        try:
            self._spark = self._session()
            self._spark.sparkContext.addJobTag(self._tag)
            while (self.tables or self._left) and not self._ended.wait(_POLL_S):
                with suppress(NotRunning):
                    self._begin()
                    self._read(self._spark)
        except Exception as error:
            self._log_unread(error)

    def _begin(self) -> None:
        """Start with the tables that have not been started."""
        if not self._left:
            return
        declared, prefix, slot = self._declared, self._settings.log.topic_prefix, self._settings.source.slot
        left = with_placeholder(self._left, read_placeholder(self._settings.log))
        topics = describe_topics(self._admin, topic_names(prefix, self._settings.source.tables))
        facts = {name: topic.facts() for name, topic in topics.items()}
        generation = generation_name(generation_facts(declared.identity, slot, facts, declared.sources))
        begun = [self._nothing_read(source, generation, topics[topic_name(prefix, source.name)]) for source in left]
        self.tables |= {table.spec.name: table for table in begun if table is not None}
        self._left = []

    def _nothing_read(self, source: SourceTable, generation: str, topic: Topic) -> TableAhead | None:
        """A table that was not read yet; None if the brokers do not report its leader epochs."""
        until = datetime.now(UTC) + timedelta(seconds=LogRetention([topic], ()).reading_limit_s)
        begin = begin_offsets(self._admin, partitions_of(topic))
        ends, epochs = committed_ends(self._admin, begin)
        if len(epochs) < len(begin):
            return None
        read = {each: Range(each, at, at) for each, at in begin.items()}
        return TableAhead(source, mirror_spec(source, generation), begin, read, epochs, until, ends, time.monotonic())

    def _read(self, spark: SparkSession) -> None:
        """Read the pieces of each table that are due."""
        ends, epochs = committed_ends(self._admin, [each for table in self.tables.values() for each in table.begin])
        for name, table in list(self.tables.items()):
            if self._ended.is_set():
                return
            if table.leader_epochs != {each: epochs.get(each) for each in table.begin}:
                fields = {"table": str(table.source.name)}
                text = 'table "%s" is read again: its topic has another leader'
                _LOGGER.info(text, table.source.name, extra={"fields": fields})
                self._left = [*self._left, self.tables.pop(name).source]
                continue
            try:
                self._read_on(spark, table, {each: ends[each] for each in table.begin})
            except NotRunning:
                raise
            except Exception as error:
                del self.tables[name]
                self._log_unread(error, table.source.name)

    def _read_on(self, spark: SparkSession, table: TableAhead, ends: Offsets) -> None:
        if sum(ends[each] - at for each, at in table.begin.items()) < self._settings.log.bulk_offsets:
            return  # small enough for the driver in the first cut
        began = time.monotonic()
        pieces = {piece.partition: piece for piece in table.due(ends, began)}
        folder = self._settings.warehouse / table.spec.path
        reader = BulkReader(spark, self._settings.log, lambda piece: self._on_progress(table.progress(piece)))
        # A later piece may delete rows of an earlier one.
        written = reader.write(table.source, table.spec, folder, pieces.values(), all_new=False)
        table.reading_s += time.monotonic() - began
        for partition, part in written.items():
            table.take_in(pieces[partition], part)
        if written:
            faults.point("read_ahead.after_piece")

    def _log_unread(self, error: Exception, table: TableName | None = None) -> None:
        """Log that a table is not read, or that no table is. Messages of others than us may quote values of rows."""
        if not self._ended.is_set():
            what = "tables are" if table is None else f'table "{table}" is'
            name = type(error).__name__
            text = f"{name}: {error.message}" if isinstance(error, CdcViewsError) else described(error)
            fields = {"error": name} if table is None else {"error": name, "table": str(table)}
            _LOGGER.warning("%s not read while the snapshot goes on: %s", what, text, extra={"fields": fields})

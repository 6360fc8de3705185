"""Reading tables in bulk while Debezium still fills their topics, so that the first epoch finds most of it done.

What is read is written as data files into the folders that the mirrors will have, where nothing names them before the
first epoch does. Files that no epoch takes are removed by upkeep, as any that a crash has left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.config import Settings
from cdc_views.engine.bulk import BulkReader, is_looked_up
from cdc_views.engine.bulk_files import Range
from cdc_views.engine.declared import Declared
from cdc_views.engine.generation import generation_facts, generation_name
from cdc_views.engine.tables import mirror_spec
from cdc_views.log.record import Offsets, TopicPartition
from cdc_views.log.topics import admin_client, begin_offsets, committed_ends, topic_facts, topic_name, topic_names
from cdc_views.source.catalog import SourceTable
from cdc_views.store.commit import Written
from cdc_views.store.schema import TableSpec

# A job of Spark costs some 0.1 s, in which a task reads 10,000 offsets.
_LEAST_OFFSETS: Final = 25_000
# So that a long topic is not cut into many small files: it waits for half of what was read before, or for a whole file.
_SHARE_OF_READ: Final = 0.5
_FILE_OFFSETS: Final = 400_000
# Debezium takes one table after the other: this one is done.
_QUIET_S: Final = 2.0
_POLL_S: Final = 0.2


class ReadAhead:
    """Reads in a thread, from `begin` to the end of a block, which waits until the piece is written that it is at."""

    def __init__(
        self,
        settings: Settings,
        declared: Declared,
        session: Callable[[], SparkSession],
        on_failure: Callable[[Exception], None],
    ) -> None:
        """`session` is waited for.

        An error ends the reading ahead, and no more than that: who reads for good meets it again.
        """
        self._settings = settings
        self._declared = declared
        self._session = session
        self._on_failure = on_failure
        self._reading: Reading | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if self._reading is not None:
            self._reading.end()
            if kind is None:
                self._reading.join()

    def begin(self) -> None:
        """Read what is in the topics, and what comes; the topics are there. Goes on if it has begun already."""
        if self._reading is None:
            self._reading = Reading(self._settings, self._declared)
            self._reading.start(self._session, self._on_failure)

    def forget(self) -> None:
        """Forget what was read, since the topics are made anew."""
        if self._reading is not None:
            self._reading.end()
            self._reading = None

    def take(
        self, source: SourceTable, spec: TableSpec, start: Offsets, end: Offsets
    ) -> Mapping[TopicPartition, Range]:
        """See TakeAhead. Nothing if it was read of other topics, for another mirror, or further than wanted."""
        return self._reading.take(source, spec, start, end) if self._reading is not None else {}


@dataclass
class TableAhead:
    """What was read of a table: of each partition the range behind it, empty, with the files of what is before.

    `begin` is where it began; `leader_epochs` are those of all of it.
    """

    source: SourceTable
    spec: TableSpec
    begin: Offsets
    read: dict[TopicPartition, Range]
    leader_epochs: Mapping[TopicPartition, int]
    ends: Offsets
    moved_s: float

    def due(self, ends: Offsets, now_s: float) -> list[Range]:
        """The next piece of each partition that is long enough, or of all if they end where they did for a while."""
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

    def take_in(self, piece: Range, written: Written) -> None:
        """Note that a piece was read."""
        before = self.read[piece.partition]
        self.read[piece.partition] = Range(piece.partition, piece.end, piece.end, (*before.ahead, written))


class Reading:
    """A reading of the topics that were there when it was made."""

    def __init__(self, settings: Settings, declared: Declared) -> None:
        self._settings = settings
        self._admin = admin_client(settings.log)
        self._declared = declared
        self._ended = threading.Event()
        self.tables: dict[str, TableAhead] = {}

    def start(self, session: Callable[[], SparkSession], on_failure: Callable[[Exception], None]) -> None:
        """Read in a thread from now on."""
        self._thread = threading.Thread(target=self._run, args=(session, on_failure), name="read ahead", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Begin with no further piece."""
        self._ended.set()

    def join(self) -> None:
        """Wait for the last piece."""
        self._thread.join()

    def take(
        self, source: SourceTable, spec: TableSpec, start: Offsets, end: Offsets
    ) -> Mapping[TopicPartition, Range]:
        """See TakeAhead; it has ended."""
        table = self.tables.pop(spec.name, None)
        if table is None or (table.source, table.spec, table.begin) != (source, spec, start):
            return {}
        if any(read.end > end[each] for each, read in table.read.items()):
            return {}  # the cut is that of another engine, which began with it before
        _, epochs = committed_ends(self._admin, start)
        # Under another leader there may be other records at these offsets.
        return table.read if epochs == table.leader_epochs else {}

    def _nothing_read(self) -> Iterator[TableAhead]:
        declared, prefix, slot = self._declared, self._settings.log.topic_prefix, self._settings.source.slot
        topics = topic_facts(self._admin, topic_names(prefix, self._settings.source.tables))
        generation = generation_name(generation_facts(declared.identity, slot, topics, declared.sources))
        for source in declared.sources:
            topic = topic_name(prefix, source.name)
            partitions = [TopicPartition(topic, number) for number in range(topics[topic]["partitions"])]
            begin, (ends, epochs) = begin_offsets(self._admin, partitions), committed_ends(self._admin, partitions)
            if not is_looked_up(source):
                read = {each: Range(each, at, at) for each, at in begin.items()}
                spec = mirror_spec(source, generation)
                yield TableAhead(source, spec, begin, read, epochs, ends, time.monotonic())

    def _run(self, session: Callable[[], SparkSession], on_failure: Callable[[Exception], None]) -> None:
        try:
            self.tables = {table.spec.name: table for table in self._nothing_read()}
            reader = BulkReader(session(), self._settings.log, lambda progress: None)
            while not self._ended.wait(_POLL_S):
                ends, _ = committed_ends(self._admin, [each for table in self.tables.values() for each in table.begin])
                for table in self.tables.values():
                    if not self._ended.is_set():
                        self._read_on(reader, table, {each: ends[each] for each in table.begin})
        except Exception as error:
            if not self._ended.is_set():
                on_failure(error)

    def _read_on(self, reader: BulkReader, table: TableAhead, ends: Offsets) -> None:
        if sum(ends[each] - at for each, at in table.begin.items()) < self._settings.log.bulk_offsets:
            return  # the first cut may hold it
        pieces = {piece.partition: piece for piece in table.due(ends, time.monotonic())}
        folder = self._settings.warehouse / table.spec.path
        # A later piece may delete what an earlier one has.
        written = reader.write(table.source, table.spec, folder, pieces.values(), all_new=False)
        for partition, part in written.items():
            table.take_in(pieces[partition], part)
        if written:
            faults.point("read_ahead.after_piece")

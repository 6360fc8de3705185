"""A table's rows from its topic, however long, in parallel by Spark: for a first epoch, and for a rebuild.

Each task reads a piece of a partition and decodes the last event of each key; of what the pieces
say of one key, the last one of its partition is right. All events of a key are in one partition.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from pyspark import StatusTracker
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from cdc_views import errors
from cdc_views.capture.fold import Folded
from cdc_views.capture.latest import Latest
from cdc_views.capture.types import arrow_schema
from cdc_views.config import LogSettings
from cdc_views.log.ranges import read_piece
from cdc_views.log.record import Offsets, TopicPartition
from cdc_views.source.catalog import SourceTable
from cdc_views.store.schema import quoted
from cdc_views.store.spark_work import job_group

PIECE_OFFSETS: Final = 100_000
_NUMBER: Final = "_cv_number"
_DELETED: Final = "_cv_deleted"
_POLL_S: Final = 0.5
_PIECES_PER_SHUFFLE: Final = 8
_HELD_BYTES: Final = 64_000_000  # a task holds so many of its piece before it decodes them
_NUMBERS_PER_PIECE: Final = 1 << 32

_ERROR: Final = re.compile(r"cdc_views\.errors\.(\w+): (.*?)(?:\nhint: (.*?))?(?:\n|$)")


@dataclass(frozen=True)
class Piece:
    """Offsets of one partition: from `start` to before `end`."""

    partition: TopicPartition
    start: int
    end: int


@dataclass(frozen=True)
class Progress:
    """How far the reading of one table is, in offsets; `seconds` since it began."""

    table: str
    done: int
    total: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Offsets read in a second."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None while nothing is done."""
        return (self.total - self.done) / self.per_second if self.done else None


OnProgress = Callable[[Progress], None]


def pieces_of(start: Offsets, end: Offsets, size: int = PIECE_OFFSETS) -> list[Piece]:
    """Cut ranges into pieces of so many offsets; those of a partition in the order of their offsets."""
    return [
        Piece(partition, at, min(at + size, last))
        for partition, last in sorted(end.items())
        for at in range(start[partition], last, size)
    ]


def read_rows(spark: SparkSession, log: LogSettings, table: SourceTable, pieces: Sequence[Piece]) -> DataFrame:
    """The table's rows as the pieces tell them, for the SQL of a session. Reading begins with the first action."""
    schema = arrow_schema(table).append(pa.field(_DELETED, pa.bool_())).append(pa.field(_NUMBER, pa.int64()))

    def fold_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _latest(log, table, pieces[number], number, schema)

    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", str(max(2, len(pieces) // _PIECES_PER_SHUFFLE)))
    numbers = session.range(0, len(pieces), 1, max(1, len(pieces)))
    found = numbers.mapInArrow(fold_pieces, from_arrow_schema(schema))
    newest = Window.partitionBy(*(F.col(quoted(name)) for name in table.key)).orderBy(F.desc(_NUMBER))
    rows = found.withColumn("_cv_age", F.row_number().over(newest)).where(f"_cv_age = 1 AND NOT {_DELETED}")
    return rows.drop("_cv_age", _NUMBER, _DELETED)


@contextmanager
def watched(spark: SparkSession, table: str, pieces: Sequence[Piece], on_progress: OnProgress) -> Iterator[None]:
    """Tell how one action on `read_rows` gets on. Raises what the decoder raised in a task."""
    total = sum(piece.end - piece.start for piece in pieces)
    began, ended = time.monotonic(), threading.Event()

    def watch() -> None:
        while not ended.wait(_POLL_S):
            done = int(_share_done(spark.sparkContext.statusTracker(), group, len(pieces)) * total)
            on_progress(Progress(table, done, total, time.monotonic() - began))

    with job_group(spark, f"reading the log of {table}") as group:
        watcher = threading.Thread(target=watch, name=group, daemon=True)
        watcher.start()
        try:
            yield
        except PySparkException as error:
            raise _named(error) from error
        finally:
            ended.set()
            watcher.join()
    on_progress(Progress(table, total, total, time.monotonic() - began))


class BulkReader:
    """Reads the tables of a cut that the driver does not hold (`Cut.bulk`)."""

    def __init__(self, spark: SparkSession, log: LogSettings, on_progress: OnProgress) -> None:
        self._spark = spark
        self._log = log
        self._on_progress = on_progress

    def changes(self, table: SourceTable, start: Offsets, end: Offsets) -> BulkRows:
        """The first rows of a mirror, from these offsets of its partitions."""
        pieces = pieces_of(start, end)
        rows = read_rows(self._spark, self._log, table, pieces)
        return BulkRows(rows, lambda: watched(self._spark, str(table.name), pieces, self._on_progress))


@dataclass(frozen=True)
class BulkRows:
    """Rows that are read by the first action on them, which belongs into a `with watching():`."""

    rows: DataFrame
    watching: Callable[[], AbstractContextManager[None]]


def _share_done(status: StatusTracker, group: str, pieces: int) -> float:
    """Of the stage that reads, which has a task for each piece."""
    jobs = [status.getJobInfo(job) for job in status.getJobIdsForGroup(group)]
    stages = [status.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    reading = [stage for stage in stages if stage and stage.numTasks == pieces]
    return max((stage.numCompletedTasks / pieces for stage in reading), default=0.0)


def _latest(
    log: LogSettings, table: SourceTable, piece: Piece, number: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """What a piece says of each key; of what it says twice, `number` tells what is later."""
    latest, later = Latest(table), number * _NUMBERS_PER_PIECE
    for records in read_piece(log, piece.partition, piece.start, piece.end):
        latest.add(records)
        if latest.size_bytes > _HELD_BYTES:
            yield from _numbered(latest.finish(), later, schema)
            latest, later = Latest(table), later + 1
    yield from _numbered(latest.finish(), later, schema)


def _numbered(folded: Folded, number: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for rows, deleted in ((folded.upserts, False), (folded.deletes, True)):
        columns = [
            rows.column(field.name) if field.name in rows.column_names else pa.nulls(rows.num_rows, field.type)
            for field in schema
            if field.name not in (_DELETED, _NUMBER)
        ]
        marks = [pa.array([deleted] * rows.num_rows, pa.bool_()), pa.array([number] * rows.num_rows, pa.int64())]
        yield from pa.table([*columns, *marks], schema=schema).combine_chunks().to_batches()


def _named(error: PySparkException) -> Exception:
    """The error of ours that a task has died of, as it was raised there."""
    found = _ERROR.search(str(error))
    kind = getattr(errors, found[1], None) if found else None
    return kind(found[2], hint=found[3]) if found and kind else error

"""Bulk reads: Spark tasks read a long part of a table's topic in parallel, for a first epoch, a long cut or a rebuild.

Each task reads a partition and writes the remaining rows as data files of the table. This uses nothing of Spark but
tasks on its executors, so a JVM that has just started is as fast as an old one.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.config import LogSettings
from cdc_views.engine.input.bulk_files import PIECE_OFFSETS, FilesOfRange, Range, do_nothing
from cdc_views.engine.spark.jobs import job_group
from cdc_views.errors import CdcViewsError, DriverLost
from cdc_views.log.kafka.record import Offsets, TopicPartition
from cdc_views.source.catalog import SourceTable
from cdc_views.store.commits import Written, WrittenRows
from cdc_views.store.delta_log import TableSpec, key_schema, make_folder

_POLL_S: Final = 0.5
_PROGRESS: Final = ".progress"  # below the table's folder, which executors and driver share


@dataclass(frozen=True)
class Progress:
    """The progress of reading one table, in offsets; `seconds` since it began."""

    table: str
    done: int
    total: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Offsets read per second."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None while nothing is done."""
        return (self.total - self.done) / self.per_second if self.done else None


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Ahead:
    """What was read ahead of a table.

    `ranges` has an empty range for each partition, at the offset up to which it was read; its `ahead` has the files.
    After `until`, the log may no longer have the deletion of a row in these files.
    """

    ranges: Mapping[TopicPartition, Range]
    until: datetime


TakeAhead = Callable[[SourceTable, TableSpec, Offsets, Offsets], Ahead | None]
"""Hands over what was read ahead of a table for its mirror, from the first offsets on and not beyond the second."""


def nothing_ahead(source: SourceTable, spec: TableSpec, start: Offsets, end: Offsets) -> Ahead | None:
    """Nothing was read ahead."""


@dataclass(frozen=True)
class _Returning:
    """A task that returns its error as a result: Spark would return only the text of an exception."""

    task: FilesOfRange

    def __call__(self, wanted: Range) -> Written | CdcViewsError:
        try:
            return self.task(wanted)
        except CdcViewsError as error:
            return error


class BulkReader:
    """Reads the tables of a cut that the driver does not hold (`Cut.bulk`)."""

    def __init__(
        self,
        spark: SparkSession,
        log: LogSettings,
        on_progress: OnProgress,
        piece_offsets: int = PIECE_OFFSETS,
        take_ahead: TakeAhead = nothing_ahead,
    ) -> None:
        self._spark = spark
        self._log = log
        self._on_progress = on_progress
        self._piece_offsets = piece_offsets
        self._take_ahead = take_ahead

    def rows(
        self, table: SourceTable, start: Offsets, end: Offsets, *, all_new: bool = True, floor: Lsn | None = None
    ) -> WrittenRows:
        """What these offsets of its partitions change in a mirror. Reading begins with the commit.

        `all_new`: the mirror is empty. `floor` is the position that the mirror holds: no event may be earlier.
        """

        def write(spec: TableSpec, folder: Path) -> Written:
            # Rows were read ahead for an empty mirror.
            if all_new and floor is None and (ahead := self._take_ahead(table, spec, start, end)) is not None:
                ranges = [replace(first, end=end[each]) for each, first in ahead.ranges.items()]
                parts = self.write(table, spec, folder, ranges, all_new=True)
                if datetime.now(UTC) <= ahead.until:
                    return _together(spec, parts.values())
            ranges = [Range(each, first, end[each]) for each, first in start.items()]
            return _together(spec, self.write(table, spec, folder, ranges, all_new=all_new, floor=floor).values())

        return WrittenRows(write, all_new)

    def write(
        self,
        table: SourceTable,
        spec: TableSpec,
        folder: Path,
        ranges: Iterable[Range],
        *,
        all_new: bool,
        floor: Lsn | None = None,
    ) -> dict[TopicPartition, Written]:
        """Have the remaining rows of each range, one per partition, written as files into a folder."""
        task = FilesOfRange(self._log, table, spec, folder, folder / _PROGRESS, all_new, floor, self._piece_offsets)
        wanted = [each for each in ranges if each.offsets or each.ahead]
        # The longest first, so that none of them runs alone at the end.
        wanted = sorted(wanted, key=lambda each: (-each.offsets, each.partition))
        written = self._run(task, wanted) if wanted else []
        return {each.partition: part for each, part in zip(wanted, written, strict=True)}

    def _run(self, task: FilesOfRange, ranges: Sequence[Range]) -> list[Written]:
        """Have the files written, and report the progress. Raises what a task raised."""
        name, total, context = task.table.name, sum(each.offsets for each in ranges), self._spark.sparkContext
        with self._watched(str(name), total, task.progress), job_group(self._spark, f"bulk of {name}"):
            parts = context.parallelize(ranges, len(ranges)).map(_Returning(task)).collect()
        if len(parts) != len(ranges):
            # PySpark returns a part of the results if the JVM ends while it sends them.
            raise DriverLost(f'table "{name}": {len(parts)} of {len(ranges)} parts came back from Spark')
        return [_written(part) for part in parts]

    @contextmanager
    def _watched(self, table: str, total: int, folder: Path) -> Iterator[None]:
        began, ended = time.monotonic(), threading.Event()

        def report(done: int) -> None:
            self._on_progress(Progress(table, done, total, time.monotonic() - began))

        def watch() -> None:
            while not ended.wait(_POLL_S):
                report(sum(map(_offsets_done, folder.glob("*"))))

        shutil.rmtree(folder, ignore_errors=True)  # left by a crash
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        watcher = threading.Thread(target=watch, name=f"progress of {table}", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            shutil.rmtree(folder, ignore_errors=True)
        report(total)


def is_looked_up(table: SourceTable) -> bool:
    """Whether its events may lack values, so that a piece of its log cannot be read alone."""
    return table.replica_identity != "full" and any(column.toastable for column in table.columns)


def warm_up(spark: SparkSession) -> None:
    """Start Python on the executors, with everything that a bulk read imports. It waits there for a minute."""
    slots = spark.sparkContext.defaultParallelism
    spark.sparkContext.parallelize(range(slots), slots).map(do_nothing).collect()


def _written(part: Written | CdcViewsError) -> Written:
    """Return what a task has written, or raise its error."""
    if isinstance(part, CdcViewsError):
        raise part
    return part


def _together(spec: TableSpec, parts: Collection[Written]) -> Written:
    deleted = [key_schema(spec).empty_table(), *(part.deleted for part in parts)]
    return Written([add for part in parts for add in part.added], pa.concat_tables(deleted))


def _offsets_done(file: Path) -> int:
    """The number of offsets that a task has done; 0 while it writes the file."""
    with suppress(ValueError, FileNotFoundError):
        return int(file.read_text())
    return 0

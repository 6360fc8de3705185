"""What a long piece of a table's topic leaves, in parallel by Spark: for a first epoch, a long cut, and a rebuild.

Each task reads a partition, and writes what is left of it as data files of the table. Of Spark that takes
tasks on its executors alone, so that a JVM which has just started is as fast as an old one.
"""

from __future__ import annotations

import re
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
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_views import errors
from cdc_views.config import LogSettings
from cdc_views.engine.input.bulk_files import PIECE_OFFSETS, FilesOfRange, Range, do_nothing
from cdc_views.engine.spark.jobs import job_group
from cdc_views.log.record import Offsets, TopicPartition
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceTable
from cdc_views.store.commits.through_spark import Written, WrittenRows
from cdc_views.store.delta_log.entries import make_folder
from cdc_views.store.delta_log.schema import TableSpec, key_schema

_POLL_S: Final = 0.5
_TOLD: Final = ".progress"  # below the table's folder, which executors and driver share

_ERROR: Final = re.compile(r"cdc_views\.errors\.(\w+): (.*?)(?:\nhint: (.*?))?(?:\n|$)")


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


@dataclass(frozen=True)
class Ahead:
    """What was read ahead of a table.

    In place of a partition's first offset it gives a range that is empty: of what is before it, `ahead` has the files.
    After `until` the log may not tell any more that a row of these files was deleted.
    """

    ranges: Mapping[TopicPartition, Range]
    until: datetime


TakeAhead = Callable[[SourceTable, TableSpec, Offsets, Offsets], Ahead | None]
"""Give up what was read ahead of a table: for its mirror, from these offsets on and not beyond those."""


def nothing_ahead(source: SourceTable, spec: TableSpec, start: Offsets, end: Offsets) -> Ahead | None:
    """What there is where nobody reads ahead."""


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

        `all_new`: nothing is in it yet. `floor` is the position of what it holds: no event is to be of before it.
        """

        def write(spec: TableSpec, folder: Path) -> Written:
            # What was read ahead was read into nothing.
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
        """Have files written into a folder with what each range leaves, of one partition each."""
        task = FilesOfRange(self._log, table, spec, folder, folder / _TOLD, all_new, floor, self._piece_offsets)
        wanted = [each for each in ranges if each.offsets or each.ahead]
        # The longest first, so that none is left over at the end.
        wanted = sorted(wanted, key=lambda each: (-each.offsets, each.partition))
        written = self._run(task, wanted) if wanted else []
        return {each.partition: part for each, part in zip(wanted, written, strict=True)}

    def _run(self, task: FilesOfRange, ranges: Sequence[Range]) -> list[Written]:
        """Have the files written, and tell how that gets on. Raises what a task raised."""
        name, total, context = task.table.name, sum(each.offsets for each in ranges), self._spark.sparkContext
        with self._watched(str(name), total, task.told), job_group(self._spark, f"bulk of {name}"):
            try:
                parts = context.parallelize(ranges, len(ranges)).map(task).collect()
            except (PySparkException, Py4JJavaError) as error:
                raise _named(error) from error
        if len(parts) != len(ranges):
            # What PySpark has of a JVM that ends while it sends the results.
            raise errors.DriverLost(f'table "{name}": {len(parts)} of {len(ranges)} parts came back from Spark')
        return parts

    @contextmanager
    def _watched(self, table: str, total: int, told: Path) -> Iterator[None]:
        began, ended = time.monotonic(), threading.Event()

        def tell(done: int) -> None:
            self._on_progress(Progress(table, done, total, time.monotonic() - began))

        def watch() -> None:
            while not ended.wait(_POLL_S):
                tell(sum(map(_told, told.glob("*"))))

        shutil.rmtree(told, ignore_errors=True)  # what a crash has left
        make_folder(told.parent)
        told.mkdir(exist_ok=True)
        watcher = threading.Thread(target=watch, name=f"progress of {table}", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
            shutil.rmtree(told, ignore_errors=True)
        tell(total)


def is_looked_up(table: SourceTable) -> bool:
    """Whether values may be missing in its events: a piece of its log cannot be read alone."""
    return table.replica_identity != "full" and any(column.toastable for column in table.columns)


def warm_up(spark: SparkSession) -> None:
    """Have Python started on the executors, with all that a task of a bulk reading imports; it waits there a minute."""
    slots = spark.sparkContext.defaultParallelism
    spark.sparkContext.parallelize(range(slots), slots).map(do_nothing).collect()


def _together(spec: TableSpec, parts: Collection[Written]) -> Written:
    deleted = [key_schema(spec).empty_table(), *(part.deleted for part in parts)]
    return Written([add for part in parts for add in part.added], pa.concat_tables(deleted))


def _told(file: Path) -> int:
    """How many offsets a task has done; none while it is writing that."""
    with suppress(ValueError, FileNotFoundError):
        return int(file.read_text())
    return 0


def _named(error: Exception) -> Exception:
    """The error of ours that a task has died of, as it was raised there."""
    found = _ERROR.search(str(error))
    kind: type[errors.CdcViewsError] | None = getattr(errors, found[1], None) if found else None
    return kind(found[2], hint=found[3]) if found and kind else error

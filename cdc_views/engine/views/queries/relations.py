"""Table versions as temporary views of one session. Each version is read once, however many queries use it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cdc_views import metrics
from cdc_views.engine.views.view_tables import is_hidden
from cdc_views.metrics import Work
from cdc_views.store.warehouse import Warehouse

_Version = tuple[str, int]  # path below the warehouse, and Delta version


@dataclass
class _Relation:
    name: str
    work: Work
    readers: int = 0


class Relations:
    """The tables that queries read. Thread-safe, except for `forget`."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse) -> None:
        self.session = spark.newSession()
        self._warehouse = warehouse
        self._made: dict[_Version, _Relation] = {}
        self._locks: defaultdict[_Version, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        self._last_name = 0

    @contextmanager
    def reading(self, versions: Mapping[str, _Version]) -> Iterator[dict[str, str]]:
        """Yield the temporary view of each table version, by the same names, for the duration of the block.

        `versions` maps each name to the table's path and Delta version. A large table is released with its last
        reader. The work of reading a table counts for every reader as if it were the only one, so that the cost of a
        view does not depend on the other views.
        """
        begun: list[_Version] = []
        try:
            names = {}
            for source, version in versions.items():
                names[source] = self._begin(version)
                begun.append(version)
            yield names
        finally:
            for version in begun:
                self._end(version)

    def forget(self) -> None:
        """Release all tables. No query may be reading."""
        for relation in self._made.values():
            self.session.catalog.dropTempView(relation.name)
        self._made.clear()
        self._locks.clear()

    def _begin(self, version: _Version) -> str:
        with self._lock_of(version):
            if version not in self._made:
                with metrics.counting(Work()) as work:
                    frame = self._warehouse.frame(*version, self.session)
                self._made[version] = _Relation(self._named(frame, version[0]), work)
            relation = self._made[version]
            relation.readers += 1
        metrics.add(relation.work)
        return relation.name

    def _end(self, version: _Version) -> None:
        with self._lock_of(version):
            relation = self._made[version]
            relation.readers -= 1
            # A table that Spark reads itself is only a plan here: then the driver has read no rows.
            if not relation.readers and relation.work.rows_read > self._warehouse.task_rows:
                self.session.catalog.dropTempView(relation.name)
                del self._made[version]

    def _named(self, frame: DataFrame, path: str) -> str:
        with self._lock:
            self._last_name += 1
            name = f"_cv_input_{self._last_name}"
        frame = frame.drop(*(column for column in frame.columns if is_hidden(path, column)))
        frame.createOrReplaceTempView(name)
        return name

    def _lock_of(self, version: _Version) -> threading.Lock:
        with self._lock:
            return self._locks[version]

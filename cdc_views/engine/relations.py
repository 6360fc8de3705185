"""Versions of tables as temporary views of one session: each made once, however many views read it."""

from __future__ import annotations

import threading
from collections import defaultdict

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_views import metrics
from cdc_views.metrics import Work
from cdc_views.store.commit import frame_of
from cdc_views.store.warehouse import TableSpec, Warehouse


class Relations:
    """What queries read. `name_of` and `shape_of` may be called from several threads."""

    def __init__(self, spark: SparkSession, warehouse: Warehouse) -> None:
        self.session = spark.newSession()
        self._warehouse = warehouse
        self._made: dict[tuple[str, int], tuple[str, Work]] = {}
        self._locks: defaultdict[tuple[str, int], threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        self._last_name = 0

    def name_of(self, path: str, version: int) -> str:
        """The temporary view of a version of a table.

        The work of reading it counts for everyone who asks, as if nobody else had: what a view costs does
        not depend on its neighbours.
        """
        with self._lock_of(path, version):
            if (path, version) not in self._made:
                with metrics.counting(Work()) as work:
                    frame = self._warehouse.frame(path, version, self.session)
                self._made[path, version] = self._named(frame), work
            name, work = self._made[path, version]
        metrics.count(rows_read=work.rows_read, files_read=work.files_read)
        return name

    def shape_of(self, spec: TableSpec) -> str:
        """A temporary view with the columns of a table and no rows, to analyse queries with."""
        with self._lock_of(spec.path, -1):
            if (spec.path, -1) not in self._made:
                self._made[spec.path, -1] = self._named(frame_of(self.session, _empty(spec))), Work()
            return self._made[spec.path, -1][0]

    def forget(self) -> None:
        """Let go of the rows; nobody may use the names any more."""
        for name, _ in self._made.values():
            self.session.catalog.dropTempView(name)
        self._made.clear()
        self._locks.clear()

    def _named(self, frame: DataFrame) -> str:
        with self._lock:
            self._last_name += 1
            name = f"_cv_input_{self._last_name}"
        frame.createOrReplaceTempView(name)
        return name

    def _lock_of(self, path: str, version: int) -> threading.Lock:
        with self._lock:
            return self._locks[path, version]


def _empty(spec: TableSpec) -> pa.Table:
    return spec.schema.empty_table()

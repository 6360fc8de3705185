"""Runs the SQL of views over a few rows that the driver holds: each query is planned once, and run in every epoch.

To plan a query takes four times as long as to run it over some hundred rows (docs/decisions). So the rows of each leaf
are put into an Arrow file, which the planned query reads each time it runs. It runs in one Spark job without generated
code. A query that cannot be run again (repeatable.py) is planned in every epoch.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from cdc_views.config import INTERPRETED
from cdc_views.engine.views.queries.repeatable import repeatable
from cdc_views.engine.views.view_tables import identified
from cdc_views.plan.compiled import CompiledView

Name = TypeVar("Name")

_SETTINGS: Final = {
    **INTERPRETED,
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.exchange.reuse": "false",  # a reused exchange could not be removed (repeatable.py)
}


def are_possible(spark: SparkSession) -> bool:
    """Whether the tasks run on this machine, where the files with the rows are."""
    return str(spark.sparkContext.master).startswith("local")


def small_session(spark: SparkSession) -> SparkSession:
    """A session whose queries run in one task, or one for each side of a UNION."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


class SmallQueries:
    """A session for small queries; for several threads, one per view."""

    def __init__(self, spark: SparkSession) -> None:
        self._session = small_session(spark)
        self.is_possible = are_possible(spark)
        self._folder = Path(tempfile.mkdtemp(prefix="cdc-views-rows-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._leaves: dict[tuple[str, str, int, str], tuple[Path, str]] = {}
        self._planned: dict[tuple[str, str], DataFrame] = {}
        self._lock = threading.Lock()

    def run(
        self,
        query: Callable[[Callable[[Name], str]], str],
        rows: Mapping[Name, pa.Table],
        view: CompiledView,
        columns: list[str],
    ) -> pa.Table:
        """Run a view's query, which gets the relation of each table, and name its columns.

        The rows of a view without a key get the hidden columns that identify them. Raises OSError if the rows cannot be
        written to the folder for temporary files.
        """
        relations = {
            name: self._put(view, number, table.combine_chunks()) for number, (name, table) in enumerate(rows.items())
        }
        text = query(relations.__getitem__)
        planned = self._planned.get((view.definition.name, text))
        if planned is None:
            planned = identified(self._session.sql(text).toDF(*columns), view)
            if (kept := repeatable(planned)) is not None:
                planned = self._planned[view.definition.name, text] = kept
        return planned.toArrow()

    def _put(self, view: CompiledView, number: int, rows: pa.Table) -> str:
        """Write the rows where the relation of this leaf reads them; returns the relation."""
        schema = pa.schema([field.with_nullable(True).remove_metadata() for field in rows.schema])
        path, relation = self._leaf(view, number, schema)
        self._folder.mkdir(parents=True, exist_ok=True)  # clean-up of temporary files may have removed it
        with pa.ipc.new_stream(path, schema) as stream:
            stream.write_table(rows.cast(schema))
        return relation

    def _leaf(self, view: CompiledView, number: int, schema: pa.Schema) -> tuple[Path, str]:
        # Two views may have one text, and run at the same time.
        name = view.definition.name, view.fingerprint, number, str(schema)
        with self._lock:
            if name not in self._leaves:
                relation = f"_cv_rows_{len(self._leaves)}"
                path = self._folder / relation
                frame = self._session.range(0, 1, 1, 1).mapInArrow(_reader(str(path)), from_arrow_schema(schema))
                frame.createOrReplaceTempView(relation)
                self._leaves[name] = path, relation
            return self._leaves[name]


def _reader(path: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function for a task that reads the file, whatever it then holds."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow

        for _ in batches:
            pass
        with pyarrow.ipc.open_stream(path) as stream:
            yield from stream

    return read

"""Tables without rows as temporary views of one session: what Spark's analyser needs to understand a query."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views.engine.views.relations import is_hidden
from cdc_views.store.warehouse import TableSpec


class Shapes:
    """The columns of tables, each made once. For one thread."""

    def __init__(self, spark: SparkSession) -> None:
        self.session = spark.newSession()
        self._names: dict[str, str] = {}

    def of(self, spec: TableSpec) -> str:
        """A temporary view with the columns of a table and no rows."""
        if spec.path not in self._names:
            name = f"_cv_input_{len(self._names)}"
            # pyspark 4.2 cannot take a column of no chunks.
            columns = pa.schema([field for field in spec.schema if not is_hidden(spec.path, field.name)])
            empty = pa.table([pa.array([], field.type) for field in columns], schema=columns)
            self.session.createDataFrame(empty).createOrReplaceTempView(name)
            self._names[spec.path] = name
        return self._names[spec.path]

    def forget(self) -> None:
        """Drop the temporary views."""
        for name in self._names.values():
            self.session.catalog.dropTempView(name)
        self._names.clear()

"""Reads a table's rows from Postgres, as of one position.

The rows go through a Parquet file, so that a table of any size is one Delta commit.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from cdc_views.capture.printed import printed_rows
from cdc_views.capture.types import arrow_schema
from cdc_views.capture.unchanged import require_no_placeholder
from cdc_views.source.catalog import SourceTable
from cdc_views.source.reading.exported import ExportedSnapshot

_BATCH_ROWS: Final = 50_000


@contextmanager
def snapshot_rows(snapshot: ExportedSnapshot, spark: SparkSession, table: SourceTable) -> Iterator[DataFrame]:
    """The rows of a table, for the duration of the block. Raises UnsupportedType."""
    with tempfile.TemporaryDirectory(prefix="cdc-views-") as folder:
        file = Path(folder) / "rows.parquet"
        _write(snapshot, table, file)
        yield spark.read.schema(from_arrow_schema(arrow_schema(table))).parquet(str(file))


def _write(snapshot: ExportedSnapshot, table: SourceTable, file: Path) -> None:
    rows = snapshot.rows(table)
    with pq.ParquetWriter(file, arrow_schema(table)) as writer:
        while batch := list(islice(rows, _BATCH_ROWS)):
            printed = printed_rows(table, table.columns, batch)
            require_no_placeholder(table, printed)
            writer.write_table(printed)

"""Reads a table's rows from Postgres, as of one position.

The rows go through a Parquet file, so that a table of any size is one Delta commit. The file is in the folder of the
shadow table, and so on the disk of the warehouse. A killed rebuild leaves it there, where a vacuum removes it.
"""

from __future__ import annotations

import re
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
from cdc_views.store.storage import touching

_BATCH_ROWS: Final = 50_000
_IN_PATTERNS: Final = re.compile(r"([][{}*?\\])")


@contextmanager
def snapshot_rows(
    snapshot: ExportedSnapshot, spark: SparkSession, table: SourceTable, folder: Path
) -> Iterator[DataFrame]:
    """The rows of a table, for the duration of the block, from a file in the folder of a Delta table.

    Raises UnsupportedType, UnresolvedToast, DiskFull, WarehouseUnusable.
    """
    # Vacuum knows this form of a name, and readers ignore it.
    with touching(folder):
        draft = tempfile.TemporaryDirectory(dir=folder, prefix=".", suffix=".tmp")
    with draft as name:
        file = Path(name) / "rows.parquet"
        with touching(folder):
            _write(snapshot, table, file)
        path = _IN_PATTERNS.sub(r"\\\1", str(file))  # Spark takes a path as a pattern
        yield spark.read.schema(from_arrow_schema(arrow_schema(table))).parquet(path)


def _write(snapshot: ExportedSnapshot, table: SourceTable, file: Path) -> None:
    rows = snapshot.rows(table)
    with pq.ParquetWriter(file, arrow_schema(table)) as writer:
        while batch := list(islice(rows, _BATCH_ROWS)):
            printed = printed_rows(table, table.columns, batch)
            require_no_placeholder(table, printed)
            writer.write_table(printed)

"""Reading a published version without a JVM, by `scan` of delta-rs, which honours deletion vectors.

`to_pyarrow_table` and `to_pyarrow_dataset` of delta-rs refuse tables with deletion vectors.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc_views import metrics
from cdc_views.errors import TableUnavailable, WarehouseUnusable
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.storage.disk import touching, unusable_by


class TableScan:
    """A version of a table as an Arrow stream that DuckDB and others can read repeatedly."""

    def __init__(self, table: DeltaTable, columns: Sequence[str] | None) -> None:
        self._table = table
        self._columns = None if columns is None else list(columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any:
        return self._table.scan(columns=self._columns).__arrow_c_stream__(requested_schema)


def scan(root: Path, path: str, version: int, columns: Sequence[str] | None = None) -> TableScan:
    """A version of a table, to register in DuckDB. Raises TableUnavailable, WarehouseUnusable."""
    try:
        return TableScan(DeltaTable(str(root / path), version=version), columns)
    except (DeltaError, OSError) as error:
        raise unreadable(root / path, path, version, error) from error


def read_table(root: Path, path: str, version: int, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows of a version, in no particular order. Raises TableUnavailable, WarehouseUnusable."""
    try:
        table = DeltaTable(str(root / path), version=version)
        rows = pa.table(table.scan(columns=None if columns is None else list(columns)))
    except (DeltaError, OSError, pa.ArrowInvalid) as error:
        raise unreadable(root / path, path, version, error) from error
    metrics.count(rows_found=rows.num_rows, rows_read=rows.num_rows, files_read=len(table.file_uris()))
    schema = pa.schema(table.schema().to_arrow())
    return rows.cast(pa.schema([schema.field(name) for name in rows.column_names]))


def read_batches(root: Path, path: str, version: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of a version in batches of at most `rows`, read as they are taken, in no particular order.

    Raises TableUnavailable, WarehouseUnusable.
    """
    try:
        table = DeltaTable(str(root / path), version=version)
        stored = pa.schema(table.schema().to_arrow())
        schema = pa.schema([stored.field(name) for name in columns])
        for batch in pa.RecordBatchReader.from_stream(table.scan(columns=list(columns))):
            for begin in range(0, batch.num_rows, rows):
                yield batch.slice(begin, rows).select(list(columns)).cast(schema)
    except (DeltaError, OSError, pa.ArrowInvalid) as error:
        raise unreadable(root / path, path, version, error) from error


def require_readable(root: Path, path: str, version: int) -> None:
    """Check that a version can be read, by reading one column of it: upkeep may have removed its files.

    Raises TableUnavailable, WarehouseUnusable.
    """
    try:
        table = DeltaTable(str(root / path), version=version)
        for _ in pa.RecordBatchReader.from_stream(table.scan(columns=[table.schema().fields[0].name])):
            pass
    except (DeltaError, OSError, pa.ArrowInvalid) as error:
        raise unreadable(root / path, path, version, error) from error


def row_count(root: Path, path: str, version: int) -> int | None:
    """The rows of a version, from its log alone; None if the log does not say. Raises WarehouseUnusable."""
    with touching(root / path):
        state = TableState.of(root / path, version)
    if state is None or state.stored_rows is None:
        return None
    vectors = [file.get("deletionVector") for file in state.files.values()]
    return state.stored_rows - sum(int(vector["cardinality"]) for vector in vectors if vector is not None)


def unreadable(table: Path, path: str, version: int, error: Exception) -> WarehouseUnusable | TableUnavailable:
    """Our error for an error of a reader of a version."""
    return refused(error, table) or TableUnavailable(
        f'table "{path}": version {version} cannot be read',
        hint="its files were removed by a vacuum, or the warehouse is damaged; read a newer epoch",
    )


def refused(error: Exception, table: Path) -> WarehouseUnusable | None:
    """Our error for a file error of a reader of a table; None if files are missing, or no file is the cause."""
    found = unusable_by(error, table)
    return found if found is not None and found.errno != errno.ENOENT else None

"""Rows of a table by their position: of each file only the row groups that hold one of them are decoded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views import metrics
from cdc_views.store.deletion_vectors import Rows
from cdc_views.store.stored_keys import Positions, data_file


def fetch_rows(table: Path, positions: Positions, schema: pa.Schema) -> pa.Table:
    """The rows at these positions, in no particular order; the columns of `schema`, cast to its types."""
    parts = [_rows_of(data_file(table, path), rows, schema) for path, rows in positions.items()]
    return pa.concat_tables([schema.empty_table(), *parts])


def _rows_of(path: Path, rows: Rows, schema: pa.Schema) -> pa.Table:
    with pq.ParquetFile(path) as file:
        sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        wanted = np.fromiter(rows, np.int64, len(rows))
        groups, first_in_group = np.unique(np.searchsorted(ends, wanted, "right"), return_inverse=True)
        read = file.read_row_groups(groups.tolist(), columns=schema.names)
        metrics.count(rows_read=read.num_rows, files_read=1)
    # Where each group begins: in the file, and in what was read.
    begins = (ends - sizes)[groups]
    begins_read = np.cumsum([0, *(sizes[group] for group in groups[:-1])])
    places = wanted - begins[first_in_group] + begins_read[first_in_group]
    return read.select(schema.names).take(pa.array(places)).cast(schema)

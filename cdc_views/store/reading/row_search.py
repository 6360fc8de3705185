"""Finds the rows of a version with one key, for readers that have no index.

A file is skipped if its statistics in the table's log exclude the key, and a row group if Arrow can tell from the
file's footer. Of the other row groups, the key columns are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache, reduce
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from cdc_views import metrics
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import Add, data_file
from cdc_views.store.delta_log.state import TableState

_FORMAT: Final = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
_MOST_FOOTERS: Final = 1000


def find_rows(table: Path, state: TableState, columns: pa.Schema, key: Mapping[str, pa.Scalar]) -> StoredRows:
    """The live rows whose `columns` equal `key`. NULL finds NULL, NaN finds NaN, and 0.0 finds -0.0.

    Raises FileNotFoundError if a file of the version was removed.
    """
    found: StoredRows = {}
    for path, add in state.files.items():
        if not _may_hold(add, key):
            continue
        numbers = RowNumbers(number for part in _numbers(data_file(table, path), columns, key) for number in part)
        if live := numbers - state.dead_rows(table, path):
            found[path] = live
    return found


def _may_hold(add: Add, key: Mapping[str, pa.Scalar]) -> bool:
    """Whether the statistics of a file allow the key. Only those of integers are exact bounds."""
    stats = orjson.loads(add.get("stats") or "{}")
    low, high = stats.get("minValues", {}), stats.get("maxValues", {})
    numbers = {name: value.as_py() for name, value in key.items() if pa.types.is_integer(value.type) and value.is_valid}
    bounded = [(name, number) for name, number in numbers.items() if name in low and name in high]
    return all(low[name] <= number <= high[name] for name, number in bounded)


def _numbers(file: Path, columns: pa.Schema, key: Mapping[str, pa.Scalar]) -> Iterator[Any]:
    """The numbers of the matching rows of a file, an array for each row group that may hold some."""
    fragment = _fragment(file)
    # Arrow's bounds of a row group leave out NaN, so it would skip any.
    bounded = {name: value for name, value in key.items() if not _is_nan(value)}
    conditions = (_equals(ds.field(name), value) for name, value in bounded.items())
    groups = fragment.split_by_row_group(reduce(pc.Expression.__and__, conditions, pc.scalar(True)), schema=columns)
    begins = [0, *accumulate(group.num_rows for group in fragment.row_groups)]
    for group in groups:
        rows = group.to_table(columns=columns.names, schema=columns, use_threads=False)
        metrics.count(rows_read=rows.num_rows)
        [info] = group.row_groups
        matches = (_equals(rows[name], value) for name, value in key.items())
        yield begins[info.id] + np.flatnonzero(pc.fill_null(reduce(pc.and_, matches, _all(rows.num_rows)), False))
    if groups:
        metrics.count(files_read=1)


def _equals(values: Any, wanted: pa.Scalar) -> Any:
    """The comparison of an expression, or of values."""
    if not wanted.is_valid:
        return pc.is_null(values)
    return pc.is_nan(values) if _is_nan(wanted) else pc.equal(values, wanted)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and value.is_valid and math.isnan(value.as_py()))


def _all(rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([np.ones(rows, bool)])


@lru_cache(_MOST_FOOTERS)
def _fragment(file: Path) -> ds.ParquetFileFragment:
    """A data file, which never changes; it keeps its footer."""
    return _FORMAT.make_fragment(str(file), filesystem=LocalFileSystem())

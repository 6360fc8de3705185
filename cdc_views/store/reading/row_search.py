"""Finds the rows of a version with one key, for readers that have no index.

A file is skipped if its statistics in the table's log exclude the key, and a row group if those in the file's footer
do. Of the other row groups, the key columns are read. (pyarrow.dataset skips row groups, too, but it imports pandas,
which would double the time that a command takes to start.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_views import metrics
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import Add, data_file
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.files import column_places
from cdc_views.store.index.stored_keys import conformed


def find_rows(
    table: Path,
    state: TableState,
    columns: pa.Schema,
    key: Mapping[str, pa.Scalar],
    footer_of: Callable[[Path], pq.FileMetaData],
) -> StoredRows:
    """The live rows whose `columns` equal `key`. NULL finds NULL, NaN finds NaN, and 0.0 finds -0.0.

    `footer_of` returns the footer of a data file. Raises FileNotFoundError if a file of the version was removed.
    """
    found: StoredRows = {}
    for path, add in state.files.items():
        if not _may_hold(add, key):
            continue
        file = data_file(table, path)
        numbers = RowNumbers(number for part in _numbers(file, footer_of(file), columns, key) for number in part)
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


def _numbers(file: Path, footer: pq.FileMetaData, columns: pa.Schema, key: Mapping[str, pa.Scalar]) -> Iterator[Any]:
    """The numbers of the matching rows of a file, an array for each row group that may hold some."""
    groups = [footer.row_group(number) for number in range(footer.num_row_groups)]
    begins = [0, *accumulate(group.num_rows for group in groups)]
    places = {place: key[name] for name, place in column_places(footer).items() if name in key}
    chosen = [number for number, group in enumerate(groups) if _group_may_hold(group, places)]
    if not chosen:
        return
    metrics.count(files_read=1)
    with pq.ParquetFile(file, metadata=footer, pre_buffer=False) as opened:
        for number in chosen:
            count = groups[number].num_rows
            metrics.count(rows_read=count)
            read = opened.read_row_group(number, columns=columns.names, use_threads=False)
            rows = conformed(read, columns, count)
            matches = (_equals(rows[name], value) for name, value in key.items())
            yield begins[number] + np.flatnonzero(pc.fill_null(reduce(pc.and_, matches, _all(count)), False))


def _group_may_hold(group: pq.RowGroupMetaData, wanted: Mapping[int, pa.Scalar]) -> bool:
    """Whether the statistics of a row group allow these values, by the places of their columns."""
    return all(_may_equal(group.column(place).statistics, value) for place, value in wanted.items())


def _may_equal(bounds: pq.Statistics | None, value: pa.Scalar) -> bool:
    """Whether the statistics of a column in a row group allow a value. Integers and texts are compared, and NULL."""
    if bounds is None:
        return True
    if not value.is_valid:
        return not bounds.has_null_count or bounds.null_count > 0
    if not bounds.has_min_max or not (pa.types.is_integer(value.type) or pa.types.is_string(value.type)):
        return True
    wanted = value.as_py()
    return type(bounds.min) is not type(wanted) or bool(bounds.min <= wanted <= bounds.max)


def _equals(values: pa.ChunkedArray, wanted: pa.Scalar) -> Any:
    if not wanted.is_valid:
        return pc.is_null(values)
    return pc.is_nan(values) if _is_nan(wanted) else pc.equal(values, wanted)


def _is_nan(value: pa.Scalar) -> bool:
    return bool(pa.types.is_floating(value.type) and value.is_valid and math.isnan(value.as_py()))


def _all(rows: int) -> pa.ChunkedArray:
    return pa.chunked_array([np.ones(rows, bool)])

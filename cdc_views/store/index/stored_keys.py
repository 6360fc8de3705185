"""The stored rows that have one of some keys: by an index, or by reading the key columns of every file.

Both return the numbers of the live rows of each file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views import faults, metrics
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import data_file
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index.hashing import Fingerprints, fingerprints, joined
from cdc_views.store.index.key_index import KeyIndex
from cdc_views.store.index.known_file import Counts
from cdc_views.store.index.parts import Found

_BATCH_ROWS: Final = 1 << 18


def live_rows(table: Path, state: TableState, found: Iterable[tuple[str, Found]]) -> StoredRows:
    """The rows that an index has found and that are live in this state; the index may have files of other versions."""
    stored_rows: StoredRows = {}
    for path, each in found:
        if path in state.files and (live := RowNumbers(each.rows) - state.dead_rows(table, path)):
            stored_rows[path] = live
    return stored_rows


def live_counts(table: Path, state: TableState, found: Iterable[tuple[str, Found]], keys: int) -> Counts:
    """How many of the rows that an index has found for each of `keys` keys are live in this state."""
    counts: Counts = np.zeros(keys, np.int64)
    for path, each in found:
        if path in state.files:
            dead = state.dead_rows(table, path)
            gone = np.isin(each.rows, np.fromiter(dead, np.int64, len(dead)))
            counts += np.bincount(each.wanted[~gone], minlength=keys)
    return counts


def by_reading(table: Path, state: TableState, columns: pa.Schema, keys: Fingerprints) -> StoredRows:
    """Find rows by reading all files: for tables whose index has no room in memory."""
    wanted, stored_rows = KeyIndex(), StoredRows()
    wanted.add("wanted", keys)
    for path in list(state.files):
        for _, found in wanted.find(read_keys(table, path, columns)):
            if live := RowNumbers(found.wanted.astype(np.uint32)) - state.dead_rows(table, path):
                stored_rows[path] = live
    return stored_rows


def all_rows(table: Path, state: TableState) -> StoredRows:
    """Every live row of the version."""
    live = {path: RowNumbers(range(state.rows_in(path))) - state.dead_rows(table, path) for path in state.files}
    return {path: rows for path, rows in live.items() if rows}


def add_files(index: KeyIndex, table: Path, paths: Iterable[str], columns: pa.Schema) -> None:
    """Read the keys of files that the index does not have."""
    for path in paths:
        index.add(path, read_keys(table, path, columns))
        faults.point("index.after_first_file")


def read_keys(table: Path, path: str, columns: pa.Schema) -> Fingerprints:
    """The fingerprints of all rows of a file, deleted ones included."""
    with pq.ParquetFile(data_file(table, path)) as file:
        metrics.count(rows_read=file.metadata.num_rows, files_read=1)
        is_long = file.metadata.num_rows > _BATCH_ROWS  # on busy cores, a thread for a few rows waits for its turn
        batches = file.iter_batches(_BATCH_ROWS, columns=columns.names, use_threads=is_long)
        return joined([fingerprints(conformed(pa.table(batch), columns, batch.num_rows)) for batch in batches])


def conformed(rows: pa.Table, schema: pa.Schema, count: int) -> pa.Table:
    """The `count` rows of a file with these columns and types. A column that the file lacks was added later: NULL."""
    columns = [
        rows.column(field.name).cast(field.type) if field.name in rows.column_names else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)

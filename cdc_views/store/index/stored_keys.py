"""Which stored rows have one of some keys: by an index, or by reading the key columns of every file.

Both answer with the live rows of each file, by number.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views import faults, metrics
from cdc_views.store.delta_log.deletion_vectors import Rows
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index.fingerprints import Fingerprints, fingerprints, joined
from cdc_views.store.index.key_index import Found, KeyIndex

Positions: TypeAlias = dict[str, Rows]
"""Live rows of a version, by the path of their file as the log has it."""

WordsOf: TypeAlias = Callable[[pa.Table], Fingerprints]
"""What an index keeps of some columns: fingerprints, or words that have the order of the values."""

_BATCH_ROWS: Final = 1 << 18


def live_rows(table: Path, state: TableState, stored: Iterable[tuple[str, Found]]) -> Positions:
    """Those rows that are live in this state, of what an index of it has found."""
    positions: Positions = {}
    for path, found in stored:
        if live := Rows(found.rows) - state.dead_rows(table, path):
            positions[path] = live
    return positions


def by_reading(table: Path, state: TableState, columns: pa.Schema, keys: Fingerprints) -> Positions:
    """Read all files: for tables whose index would take more memory than it may."""
    wanted, positions = KeyIndex(), Positions()
    wanted.add("wanted", keys)
    for path in list(state.files):
        for _, found in wanted.find(read_keys(table, path, columns)):
            if live := Rows(found.wanted.astype(np.uint32)) - state.dead_rows(table, path):
                positions[path] = live
    return positions


def all_rows(table: Path, state: TableState) -> Positions:
    """Every live row of the version."""
    live = {path: Rows(range(state.rows_in(path))) - state.dead_rows(table, path) for path in state.files}
    return {path: rows for path, rows in live.items() if rows}


def bring_to(index: KeyIndex, table: Path, state: TableState, columns: pa.Schema, words_of: WordsOf) -> None:
    """Make the index one of the files of this state, reading those that it does not know."""
    index.drop_others(state.files)
    for path in index.missing(state.files):
        index.add(path, read_keys(table, path, columns, words_of))
        faults.point("index.after_first_file")


def read_keys(table: Path, path: str, columns: pa.Schema, words_of: WordsOf = fingerprints) -> Fingerprints:
    """The fingerprints, or words, of all rows of a file, those deleted included."""
    with pq.ParquetFile(data_file(table, path)) as file:
        metrics.count(rows_read=file.metadata.num_rows, files_read=1)
        batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=columns.names)
        return joined([words_of(conformed(pa.table(batch), columns, batch.num_rows)) for batch in batches])


def data_file(table: Path, path: str) -> Path:
    """The file that a path of the log means."""
    return table / urllib.parse.unquote(path)


def conformed(rows: pa.Table, schema: pa.Schema, count: int) -> pa.Table:
    """So many rows of a file with these columns and types; a column that it does not have was added later: NULL."""
    columns = [
        rows.column(field.name).cast(field.type) if field.name in rows.column_names else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)

"""Data files made of others, piece by piece: of files of any size only a few row groups are held in memory."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_views.store.delta_log.deletion_vectors import Rows, read_rows
from cdc_views.store.delta_log.schema import TableSpec, statistics_columns
from cdc_views.store.delta_log.state import Add
from cdc_views.store.files.data_files import ROW_GROUP, repetitive
from cdc_views.store.index.stored_keys import data_file
from cdc_views.store.storage import durable

_BATCH_ROWS: Final = 5 * ROW_GROUP


def rows_of(table: Path, spec: TableSpec, files: Iterable[Add]) -> Iterator[pa.Table]:
    """The rows of several files that no deletion vector hides, one file after the other."""
    for add in files:
        yield from rows_without(table, spec, add["path"], read_rows(table, add.get("deletionVector")))


def rows_without(table: Path, spec: TableSpec, path: str, gone: Rows) -> Iterator[pa.Table]:
    """The rows of a file but for those of these numbers, in their order, some 100,000 at a time."""
    dead = np.fromiter(gone, np.int64, len(gone))  # in order
    first = 0
    # Threads and read-ahead double what a file of a few rows costs.
    with pq.ParquetFile(data_file(table, path), pre_buffer=False) as file:
        for batch in file.iter_batches(_BATCH_ROWS, use_threads=file.metadata.num_rows > ROW_GROUP):
            rows = pa.Table.from_batches([batch])
            if not rows.schema.equals(spec.schema):
                rows = rows.select(spec.schema.names).cast(spec.schema)
            if len(dead):
                is_live, end = np.ones(rows.num_rows, bool), first + rows.num_rows
                is_live[dead[slice(*np.searchsorted(dead, (first, end)))] - first] = False
                first, rows = end, rows.filter(pa.array(is_live))
            yield rows


def write_evenly(table: Path, spec: TableSpec, pieces: Iterable[pa.Table], rows: int, count: int) -> list[Add]:
    """Write so many `rows` of other files to `count` new ones of about equal size; see `write_merged`."""
    each = max(1, -(-rows // count))
    each += -each % ROW_GROUP
    files = groupby(_numbered(pieces, each), key=itemgetter(0))
    written = (write_merged(table, spec, (part for _, part in parts)) for _, parts in files)
    return [add for add in written if add is not None]


def _numbered(pieces: Iterable[pa.Table], each: int) -> Iterator[tuple[int, pa.Table]]:
    """The same rows in parts of one file each, which has the number before it."""
    before = 0
    for piece in pieces:
        end = before + piece.num_rows
        while before < end:
            part = piece.slice(piece.num_rows - (end - before), each - before % each)
            yield before // each, part
            before += part.num_rows


def write_merged(table: Path, spec: TableSpec, pieces: Iterable[pa.Table]) -> Add | None:
    """Write rows of other files to a new one, and return its `add`; None, and no file, if there are none.

    Its content is on the disk then, its name is not yet.
    """
    groups = _in_row_groups(pieces)
    if (first := next(groups, None)) is None:
        return None
    name = f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
    statistics = _Statistics(spec)
    file = table / name
    try:
        with pq.ParquetWriter(file, spec.schema, compression="zstd", use_dictionary=repetitive(first)) as writer:
            for rows in chain([first], groups):
                writer.write_table(rows, row_group_size=ROW_GROUP)
                statistics.take_in(rows)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    durable.sync(file)
    return {
        "path": name,
        "partitionValues": {},
        "size": file.stat().st_size,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": False,
        "stats": statistics.text(),
    }


class _Statistics:
    """What the log says of a file's rows.

    Minimum and maximum of whole numbers only: texts are cut and times are rounded in statistics, each by rules of
    its own.
    """

    def __init__(self, spec: TableSpec) -> None:
        self._columns = [name for name in statistics_columns(spec) if pa.types.is_integer(spec.schema.field(name).type)]
        self._bounds: dict[str, tuple[int, int]] = {}
        self._nulls = dict.fromkeys(self._columns, 0)
        self.rows = 0

    def take_in(self, rows: pa.Table) -> None:
        """Count further rows."""
        self.rows += rows.num_rows
        for name in self._columns:
            found = pc.min_max(rows[name]).as_py()
            self._nulls[name] += rows[name].null_count
            if found["min"] is not None:
                low, high = self._bounds.get(name, (found["min"], found["max"]))
                self._bounds[name] = min(low, found["min"]), max(high, found["max"])

    def text(self) -> str:
        """The `stats` of the file."""
        stats: dict[str, Any] = {
            "numRecords": self.rows,
            "minValues": {name: low for name, (low, _) in self._bounds.items()},
            "maxValues": {name: high for name, (_, high) in self._bounds.items()},
            "nullCount": self._nulls,
            "tightBounds": True,
        }
        return orjson.dumps(stats).decode()


def _in_row_groups(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in pieces that are whole row groups, but for the last one."""
    waiting: list[pa.Table] = []
    count = 0
    for piece in pieces:
        waiting.append(piece)
        count += piece.num_rows
        if count >= ROW_GROUP:
            rows, full = pa.concat_tables(waiting), count - count % ROW_GROUP
            yield rows.slice(0, full)
            waiting, count = [rows.slice(full)], count - full
    if count:
        yield pa.concat_tables(waiting)

"""Rows of a table by their position: of each file only the row groups that hold one of them are decoded.

What was decoded is kept for the next lookup, within a budget of memory, the longest unused going first. Files never
change, so what is kept is never wrong.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views import metrics
from cdc_views.store.deletion_vectors import Rows
from cdc_views.store.stored_keys import Positions, data_file

Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

# More than this Spark decodes sooner, on all its cores.
_MOST_DECODED_ROWS: Final = 1_000_000
_MOST_FOOTERS: Final = 1000


@dataclass(frozen=True)
class _Groups:
    """The row groups of a file: what its footer says, and before which row each ends."""

    footer: pq.FileMetaData
    ends: Counts


@dataclass(frozen=True)
class _Wanted:
    """Rows of one row group, numbered within it."""

    file: Path
    group: int
    rows: Counts


class RowGroups:
    """Decoded row groups, within `memory_bytes`; for several threads."""

    def __init__(self, memory_bytes: int) -> None:
        self._memory_bytes = memory_bytes
        self._footers: OrderedDict[Path, _Groups] = OrderedDict()
        self._decoded: OrderedDict[tuple[Path, int], pa.Table] = OrderedDict()
        self._used_bytes = 0
        self._lock = threading.Lock()

    def fetch(self, table: Path, positions: Positions, schema: pa.Schema) -> pa.Table | None:
        """The rows at these positions, in no particular order, with the columns and types of `schema`.

        None if more rows would have to be decoded than is sensible.
        """
        wanted = [each for path, rows in positions.items() for each in self._by_group(data_file(table, path), rows)]
        if sum(self._size(each) for each in wanted if self._missing(self._kept(each), schema)) > _MOST_DECODED_ROWS:
            return None
        parts = [self._group(each, schema).take(pa.array(each.rows)) for each in wanted]
        return pa.concat_tables([schema.empty_table(), *parts])

    def _by_group(self, file: Path, rows: Rows) -> Iterator[_Wanted]:
        ends = self._groups(file).ends
        numbers = np.fromiter(rows, np.int64, len(rows))
        groups = np.searchsorted(ends, numbers, "right")
        bounds = np.flatnonzero(np.diff(groups)) + 1
        for of_group in np.split(np.arange(len(numbers)), bounds):
            group = int(groups[of_group[0]])
            begin = 0 if group == 0 else ends[group - 1]
            yield _Wanted(file, group, numbers[of_group] - begin)

    def _groups(self, file: Path) -> _Groups:
        with self._lock:
            if (known := self._footers.get(file)) is not None:
                self._footers.move_to_end(file)
                return known
        footer = pq.read_metadata(file)
        sizes = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
        known = _Groups(footer, np.cumsum(sizes, dtype=np.int64))
        with self._lock:
            self._footers[file] = known
            while len(self._footers) > _MOST_FOOTERS:
                self._footers.popitem(last=False)
        return known

    def _size(self, wanted: _Wanted) -> int:
        return int(self._groups(wanted.file).footer.row_group(wanted.group).num_rows)

    def _kept(self, wanted: _Wanted) -> pa.Table:
        """The columns of a row group that are kept; none are a table without columns."""
        name = wanted.file, wanted.group
        with self._lock:
            if name not in self._decoded:
                return pa.table({})
            self._decoded.move_to_end(name)
            return self._decoded[name]

    def _missing(self, kept: pa.Table, schema: pa.Schema) -> list[str]:
        return [name for name in schema.names if name not in kept.column_names]

    def _group(self, wanted: _Wanted, schema: pa.Schema) -> pa.Table:
        """The columns of a row group, decoding those that are not kept."""
        kept = self._kept(wanted)
        missing = self._missing(kept, schema)
        if missing:
            with pq.ParquetFile(wanted.file, metadata=self._groups(wanted.file).footer) as file:
                read = file.read_row_group(wanted.group, columns=missing)
            metrics.count(rows_read=read.num_rows, files_read=1)
            read = read.select(missing).cast(pa.schema([schema.field(name) for name in missing])).combine_chunks()
            for field, column in zip(kept.schema, kept.columns, strict=True):
                read = read.append_column(field, column)
            kept = read
            self._keep(wanted, kept)
        return kept.select(schema.names)

    def _keep(self, wanted: _Wanted, rows: pa.Table) -> None:
        name = wanted.file, wanted.group
        with self._lock:
            before = self._decoded.pop(name, None)
            self._used_bytes += rows.nbytes - (0 if before is None else before.nbytes)
            self._decoded[name] = rows
            while self._used_bytes > self._memory_bytes and self._decoded:
                _, gone = self._decoded.popitem(last=False)
                self._used_bytes -= gone.nbytes

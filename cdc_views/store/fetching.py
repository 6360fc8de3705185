"""Rows of a table by their position: of each file only the row groups that hold one of them are decoded.

What was decoded is kept for the next lookup, within a budget of memory, the longest unused going first. Files never
change, so what is kept is never wrong.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views import metrics
from cdc_views.store.deletion_vectors import Rows
from cdc_views.store.stored_keys import Positions, conformed, data_file

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
        wanted = {data_file(table, path): list(self._by_group(table, path, rows)) for path, rows in positions.items()}
        if sum(self._rows_to_decode(file, groups, schema) for file, groups in wanted.items()) > _MOST_DECODED_ROWS:
            return None
        parts = [rows for file, groups in wanted.items() for rows in self._rows_of(file, groups, schema)]
        return pa.concat_tables([schema.empty_table(), *parts])

    def _by_group(self, table: Path, path: str, rows: Rows) -> Iterator[_Wanted]:
        ends = self._groups(data_file(table, path)).ends
        numbers = np.fromiter(rows, np.int64, len(rows))
        groups = np.searchsorted(ends, numbers, "right")
        for of_group in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(groups)) + 1):
            group = int(groups[of_group[0]])
            begin = 0 if group == 0 else ends[group - 1]
            yield _Wanted(group, numbers[of_group] - begin)

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

    def _rows_to_decode(self, file: Path, wanted: Sequence[_Wanted], schema: pa.Schema) -> int:
        footer = self._groups(file).footer
        missing = [each for each in wanted if _missing(self._kept(file, each.group), schema)]
        return sum(footer.row_group(each.group).num_rows for each in missing)

    def _rows_of(self, file: Path, wanted: Sequence[_Wanted], schema: pa.Schema) -> Iterator[pa.Table]:
        """The wanted rows of a file; it is opened only if something is to be decoded."""
        with ExitStack() as opened:
            reader: pq.ParquetFile | None = None
            for each in wanted:
                rows = self._kept(file, each.group)
                if missing := _missing(rows, schema):
                    if reader is None:
                        reader = opened.enter_context(pq.ParquetFile(file, metadata=self._groups(file).footer))
                    rows = _decoded(reader, each.group, [schema.field(name) for name in missing], rows)
                    self._keep(file, each.group, rows)
                yield rows.select(schema.names).take(pa.array(each.rows)).cast(schema)

    def _kept(self, file: Path, group: int) -> pa.Table:
        """The columns of a row group that are kept; none are a table without columns."""
        with self._lock:
            if (file, group) not in self._decoded:
                return pa.table({})
            self._decoded.move_to_end((file, group))
            return self._decoded[file, group]

    def _keep(self, file: Path, group: int, rows: pa.Table) -> None:
        with self._lock:
            before = self._decoded.pop((file, group), None)
            self._used_bytes += rows.nbytes - (0 if before is None else before.nbytes)
            self._decoded[file, group] = rows
            while self._used_bytes > self._memory_bytes and self._decoded:
                _, gone = self._decoded.popitem(last=False)
                self._used_bytes -= gone.nbytes


def _missing(kept: pa.Table, schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name not in kept.column_names]


def _decoded(file: pq.ParquetFile, group: int, fields: Sequence[pa.Field], kept: pa.Table) -> pa.Table:
    """A row group with these columns, and those that are kept of it."""
    read = file.read_row_group(group, columns=[field.name for field in fields])
    metrics.count(rows_read=file.metadata.row_group(group).num_rows, files_read=1)
    rows = conformed(read, pa.schema(fields), file.metadata.row_group(group).num_rows).combine_chunks()
    for field, column in zip(kept.schema, kept.columns, strict=True):
        rows = rows.append_column(field, column)
    return rows

"""Fetching rows of a table by file and row number: only the row groups that hold one of them are decoded.

Decoded row groups are cached for later lookups as Arrow in memory-mapped files, within a disk budget; the least
recently used goes first. The cache takes only memory that nobody else needs, and reading a row touches a few pages.
The files have no name, so they vanish with the process however it ends. Data files never change, so the cache is never
stale.
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
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import data_file
from cdc_views.store.files.mapped import mapped
from cdc_views.store.index.stored_keys import conformed

Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

# Above this Spark is faster, since it decodes on all cores.
_MOST_DECODED_ROWS: Final = 2_000_000
_MOST_FOOTERS: Final = 1000
# Each may be a memory mapping. A process has at most 65,530 (vm.max_map_count); beyond that it gets no memory at all.
_MOST_GROUPS: Final = 10_000
# A mapping takes whole pages, so smaller groups stay in memory: at most 40 MiB for the most groups there may be.
_PAGE_BYTES: Final = 4096


@dataclass(frozen=True)
class _Groups:
    """The row groups of a file: its footer, and the row number before which each group ends."""

    footer: pq.FileMetaData
    ends: Counts


@dataclass(frozen=True)
class _Wanted:
    """Rows of one row group, numbered within it, and the columns of the group that are cached."""

    group: int
    rows: Counts
    kept: pa.RecordBatch


class RowGroups:
    """Decoded row groups, cached within `disk_bytes` below `folder`; for several threads."""

    def __init__(self, folder: Path, disk_bytes: int, *, most_decoded_rows: float = _MOST_DECODED_ROWS) -> None:
        self._folder = folder
        self._disk_bytes = disk_bytes
        self._most_decoded_rows = most_decoded_rows
        self._footers: OrderedDict[Path, _Groups] = OrderedDict()
        self._decoded: OrderedDict[tuple[Path, int], pa.RecordBatch] = OrderedDict()
        self._used_bytes = 0
        self._lock = threading.Lock()

    def fetch(self, table: Path, stored: StoredRows, schema: pa.Schema) -> pa.Table | None:
        """These rows, in no particular order, with the columns and types of `schema`.

        None if so many rows would have to be decoded that Spark is faster.
        """
        by_file = {data_file(table, path): rows for path, rows in stored.items()}
        wanted = {file: list(self._by_group(file, rows)) for file, rows in by_file.items()}
        if sum(self._rows_to_decode(file, groups, schema) for file, groups in wanted.items()) > self._most_decoded_rows:
            return None
        parts = [rows for file, groups in wanted.items() for rows in self._rows_of(file, groups, schema)]
        # Each row group gives a few rows: callers would pay for every batch.
        return pa.Table.from_batches(parts, schema=schema).combine_chunks()

    def footer(self, file: Path) -> pq.FileMetaData:
        """The footer of a data file, which never changes."""
        return self._groups(file).footer

    def rows_in_groups(self, file: Path) -> list[int]:
        """The number of rows in each row group of a data file."""
        footer = self.footer(file)
        return [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]

    def group(self, file: Path, number: int, schema: pa.Schema) -> pa.RecordBatch:
        """All rows of a row group, with the columns and types of `schema`. The caller bounds how many it asks for."""
        kept = self._kept(file, number)
        if missing := _missing(kept, schema):
            with pq.ParquetFile(file, metadata=self.footer(file), pre_buffer=False) as reader:
                metrics.count(files_read=1)
                kept = _decoded(reader, number, [schema.field(name) for name in missing], kept)
            self._keep(file, number, kept)
        found = kept.select(schema.names)
        return found if found.schema == schema else found.cast(schema)

    def _by_group(self, file: Path, rows: RowNumbers) -> Iterator[_Wanted]:
        ends = self._groups(file).ends
        numbers = np.fromiter(rows, np.int64, len(rows))
        groups = np.searchsorted(ends, numbers, "right")
        for of_group in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(groups)) + 1):
            group = int(groups[of_group[0]])
            begin = 0 if group == 0 else ends[group - 1]
            yield _Wanted(group, numbers[of_group] - begin, self._kept(file, group))

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
        footer = self.footer(file)
        missing = [each for each in wanted if _missing(each.kept, schema)]
        return sum(footer.row_group(each.group).num_rows for each in missing)

    def _rows_of(self, file: Path, wanted: Sequence[_Wanted], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The wanted rows of a file, which is opened only if a row group must be decoded."""
        with ExitStack() as opened:
            reader: pq.ParquetFile | None = None
            for each in wanted:
                rows = each.kept
                if missing := _missing(rows, schema):
                    if reader is None:
                        # Threads and read-ahead cost more than they save for one row group.
                        footer = self.footer(file)
                        reader = opened.enter_context(pq.ParquetFile(file, metadata=footer, pre_buffer=False))
                        metrics.count(files_read=1)
                    rows = _decoded(reader, each.group, [schema.field(name) for name in missing], rows)
                    self._keep(file, each.group, rows)
                found = rows.select(schema.names).take(pa.array(each.rows))
                # The type differs only if a column was altered since it was decoded.
                yield found if found.schema == schema else found.cast(schema)

    def _kept(self, file: Path, group: int) -> pa.RecordBatch:
        """The cached columns of a row group: a batch without columns if there are none."""
        with self._lock:
            if (file, group) not in self._decoded:
                return _NOTHING
            self._decoded.move_to_end((file, group))
            return self._decoded[file, group]

    def _keep(self, file: Path, group: int, rows: pa.RecordBatch) -> None:
        if rows.nbytes > self._disk_bytes:
            return
        try:
            kept = rows if rows.nbytes < _PAGE_BYTES else mapped(rows, self._folder)
        except OSError:
            return  # the cache is only for speed; a full disk shows at the next commit
        with self._lock:
            before = self._decoded.pop((file, group), _NOTHING)
            self._used_bytes += kept.nbytes - before.nbytes
            self._decoded[file, group] = kept
            while self._used_bytes > self._disk_bytes or len(self._decoded) > _MOST_GROUPS:
                _, gone = self._decoded.popitem(last=False)
                self._used_bytes -= gone.nbytes


_NOTHING: Final = pa.record_batch([], schema=pa.schema([]))


def _missing(kept: pa.RecordBatch, schema: pa.Schema) -> list[str]:
    known = kept.schema.names
    return [name for name in schema.names if name not in known]


def _decoded(file: pq.ParquetFile, group: int, fields: Sequence[pa.Field], kept: pa.RecordBatch) -> pa.RecordBatch:
    """A row group with these columns, newly decoded, and its cached ones."""
    count = file.metadata.row_group(group).num_rows
    read = file.read_row_group(group, columns=[field.name for field in fields], use_threads=False)
    metrics.count(rows_read=count)
    rows = conformed(read, pa.schema(fields), count).combine_chunks()
    columns = [column.chunk(0) for column in rows.columns]
    return pa.record_batch([*columns, *kept.columns], schema=pa.schema([*fields, *kept.schema]))

"""Fetching rows of a table by file and row number.

Of a row group that is rarely asked for, only the pages with the wanted rows are decoded. Once they have cost as much as
the whole row group, it is decoded and cached, so no order of lookups costs more than twice the best choice (ski rental;
Karlin et al., "Competitive snoopy caching", 1988). The same holds for each time that it leaves the cache. One lookup
decodes at most so many rows that only later ones need; other row groups wait for a later lookup.

However many rows are wanted, they are decoded here, and a piece at a time. At worst all of a table is: still less than
a view computed in full, which reads all of its tables and all of its stored rows.

The cache keeps Arrow in memory-mapped files within a disk budget; the least recently used row group goes first. It
takes only memory that nobody else needs, and reading a row touches a few pages of it. The mapped files have no name, so
they vanish with the process however it ends. Data files never change, so the cache is never stale.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views import metrics
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import data_file
from cdc_views.store.files.mapped import mapped
from cdc_views.store.files.pages import WantedRows, read_rows
from cdc_views.store.index.known_file import Counts, KnownFile
from cdc_views.store.index.stored_keys import conformed

Known = TypeVar("Known", pq.FileMetaData, KnownFile)

# By page: most of the decoded rows are not wanted, and take memory until these are taken out.
_MOST_ROWS_AT_ONCE: Final = 500_000
# What one lookup decodes beyond the pages that it wants: it should not wait for all that have paid off at once.
_MOST_ROWS_AHEAD: Final = 500_000
# For a million rows a footer takes 700 KB, and 0.6 ms to read again; what else is known of a file 300 KB, and 25 ms.
_MOST_FOOTERS: Final = 1000
_MOST_FILES: Final = 4000
# Each may be a memory mapping. A process has at most 65,530 (vm.max_map_count); beyond that it gets no memory at all.
_MOST_GROUPS: Final = 10_000
# A mapping takes whole pages, so smaller groups stay in memory: at most 40 MiB for the most groups there may be.
_PAGE_BYTES: Final = 4096


@dataclass(frozen=True)
class _Wanted:
    """Rows of one row group, numbered within it, and the columns of the group that are cached.

    `by_page` has the same rows if they are not cached, and can be read by page.
    """

    path: Path
    group: int
    rows: Counts
    kept: pa.RecordBatch
    by_page: WantedRows | None


class RowGroups:
    """Decoded row groups, cached within `disk_bytes` below `folder`; for several threads."""

    def __init__(self, folder: Path, disk_bytes: int) -> None:
        self._folder = folder
        self._disk_bytes = disk_bytes
        self._footers: OrderedDict[Path, pq.FileMetaData] = OrderedDict()
        self._files: OrderedDict[Path, KnownFile] = OrderedDict()
        self._decoded: OrderedDict[tuple[Path, int], pa.RecordBatch] = OrderedDict()
        self._used_bytes = 0
        self._lock = threading.Lock()

    def fetch(self, table: Path, stored: StoredRows, schema: pa.Schema) -> pa.Table:
        """These rows, in no particular order, with the columns and types of `schema`."""
        wanted = [
            each for path, rows in stored.items() for each in self._by_group(data_file(table, path), rows, schema)
        ]
        by_page, by_group = self._divided(wanted)
        parts = [
            rows
            for path, of_file in groupby(by_group, key=lambda each: each.path)
            for rows in self._rows_of(path, of_file, schema)
        ]
        parts += _rows_by_page(by_page, schema)
        # Each row group gives a few rows: callers would pay for every batch.
        return pa.Table.from_batches(parts, schema=schema).combine_chunks()

    def footer(self, file: Path) -> pq.FileMetaData:
        """The footer of a data file, which never changes."""
        return _cached(self._footers, file, pq.read_metadata, _MOST_FOOTERS, self._lock)

    def begins(self, file: Path) -> list[int]:
        """The number of the first row of each row group of a data file."""
        return self._file(file).begins

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

    def _by_group(self, path: Path, rows: RowNumbers, schema: pa.Schema) -> Iterator[_Wanted]:
        file = self._file(path)
        numbers = np.fromiter(rows, np.int64, len(rows))
        groups = np.searchsorted(file.ends, numbers, "right")
        for of_group in np.split(np.arange(len(numbers)), np.flatnonzero(np.diff(groups)) + 1):
            group, found = int(groups[of_group[0]]), numbers[of_group]
            kept = self._kept(path, group)
            by_page = file.by_page(found, schema.names) if _missing(kept, schema) else None
            yield _Wanted(path, group, found - file.begins[group], kept, by_page)

    def _file(self, path: Path) -> KnownFile:
        return _cached(self._files, path, lambda path: KnownFile(path, self.footer(path)), _MOST_FILES, self._lock)

    def _divided(self, wanted: Iterable[_Wanted]) -> tuple[list[WantedRows], list[_Wanted]]:
        """The rows to be read by page, and those of cached row groups, or of such as are decoded as a whole now."""
        by_page, by_group, spare = list[WantedRows](), list[_Wanted](), _MOST_ROWS_AHEAD
        for each in wanted:
            file = self._file(each.path)
            if each.by_page is None:
                by_group.append(each)
            elif (
                file.should_decode(each.group, each.by_page)
                and (ahead := file.sizes[each.group] - each.by_page.pages.rows_count) <= spare
            ):
                by_group.append(each)
                spare -= ahead
            else:
                by_page.append(each.by_page)
        return by_page, by_group

    def _rows_of(self, path: Path, wanted: Iterable[_Wanted], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The wanted rows of a file, which is opened only if a row group must be decoded."""
        with ExitStack() as opened:
            reader: pq.ParquetFile | None = None
            for each in wanted:
                rows = each.kept
                if missing := _missing(rows, schema):
                    if reader is None:
                        # Threads and read-ahead cost more than they save for one row group.
                        footer = self.footer(path)
                        reader = opened.enter_context(pq.ParquetFile(path, metadata=footer, pre_buffer=False))
                        metrics.count(files_read=1)
                    rows = _decoded(reader, each.group, [schema.field(name) for name in missing], rows)
                    self._keep(path, each.group, rows)
                    self._file(path).was_decoded(each.group)
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


def _cached(
    known: OrderedDict[Path, Known], path: Path, read: Callable[[Path], Known], most: int, lock: threading.Lock
) -> Known:
    """What is known of a file, read if it is not; the least recently used goes first."""
    with lock:
        if (found := known.get(path)) is not None:
            known.move_to_end(path)
            return found
    found = read(path)
    with lock:
        known[path] = found
        while len(known) > most:
            known.popitem(last=False)
    return found


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


def _rows_by_page(wanted: Sequence[WantedRows], schema: pa.Schema) -> list[pa.RecordBatch]:
    return [batch for some in _pieces(wanted) for batch in _read(some, schema)]


def _pieces(wanted: Iterable[WantedRows]) -> Iterator[list[WantedRows]]:
    """The same, as many at once as may be decoded at once."""
    piece, rows = list[WantedRows](), 0
    for each in wanted:
        if piece and rows + each.pages.rows_count > _MOST_ROWS_AT_ONCE:
            yield piece
            piece, rows = [], 0
        piece.append(each)
        rows += each.pages.rows_count
    if piece:
        yield piece


def _read(wanted: Iterable[WantedRows], schema: pa.Schema) -> list[pa.RecordBatch]:
    by_file = [list(of_file) for _, of_file in groupby(wanted, key=lambda each: each.file)]
    files = [replace(each[0], rows=np.concatenate([of_group.rows for of_group in each])) for each in by_file]
    read = read_rows(files, schema.names)
    batches: list[pa.RecordBatch] = conformed(read, schema, read.num_rows).to_batches()
    return batches

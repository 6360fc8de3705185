"""Rows of a table by their position: of each file only the row groups that hold one of them are decoded.

What was decoded is kept for the next lookup as Arrow in files that are mapped into memory, within a budget of disk, the
longest unused going first; so it takes what memory nobody else needs, and a row is a few pages. The files have no name:
they end with the process, however it ends, and nothing is left to be trusted later. Data files never change, so what is
kept is never wrong.
"""

from __future__ import annotations

import tempfile
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
from cdc_views.store.delta_log.deletion_vectors import Rows
from cdc_views.store.index.stored_keys import Positions, conformed, data_file

Counts: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

# More than this Spark decodes sooner, on all its cores.
_MOST_DECODED_ROWS: Final = 2_000_000
_MOST_FOOTERS: Final = 1000
# Each may be a mapping, of which a process has 65,530 at most (vm.max_map_count): beyond that nothing gets memory.
_MOST_GROUPS: Final = 10_000
# A mapping takes pages, so for less than one memory is cheaper; of as many groups as there may be it is 40 MiB.
_PAGE_BYTES: Final = 4096


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
    """Decoded row groups, within `disk_bytes` below `folder`; for several threads."""

    def __init__(self, folder: Path, disk_bytes: int) -> None:
        self._folder = folder
        self._disk_bytes = disk_bytes
        self._footers: OrderedDict[Path, _Groups] = OrderedDict()
        self._decoded: OrderedDict[tuple[Path, int], pa.RecordBatch] = OrderedDict()
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
        return pa.Table.from_batches(parts, schema=schema)

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

    def _rows_of(self, file: Path, wanted: Sequence[_Wanted], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
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
                found = rows.select(schema.names).take(pa.array(each.rows))
                # Of another type only if a column was altered since it was decoded.
                yield found if found.schema == schema else found.cast(schema)

    def _kept(self, file: Path, group: int) -> pa.RecordBatch:
        """The columns of a row group that are kept; none are a batch without columns."""
        with self._lock:
            if (file, group) not in self._decoded:
                return _NOTHING
            self._decoded.move_to_end((file, group))
            return self._decoded[file, group]

    def _keep(self, file: Path, group: int, rows: pa.RecordBatch) -> None:
        if rows.nbytes > self._disk_bytes:
            return
        try:
            kept = rows if rows.nbytes < _PAGE_BYTES else self._mapped(rows)
        except OSError:
            return  # only for speed; a disk without space shows itself at the next commit
        with self._lock:
            before = self._decoded.pop((file, group), _NOTHING)
            self._used_bytes += kept.nbytes - before.nbytes
            self._decoded[file, group] = kept
            while self._used_bytes > self._disk_bytes or len(self._decoded) > _MOST_GROUPS:
                _, gone = self._decoded.popitem(last=False)
                self._used_bytes -= gone.nbytes

    def _mapped(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The same rows in a file that is mapped into memory and has no name."""
        self._folder.mkdir(exist_ok=True)
        # Of Linux, where the file system can, it never had one (O_TMPFILE).
        with tempfile.TemporaryFile(dir=self._folder) as file:
            with pa.ipc.new_file(file, rows.schema) as writer:
                writer.write_batch(rows)
            file.flush()
            return pa.ipc.open_file(pa.memory_map(f"/dev/fd/{file.fileno()}")).get_batch(0)


_NOTHING: Final = pa.record_batch([], schema=pa.schema([]))


def _missing(kept: pa.RecordBatch, schema: pa.Schema) -> list[str]:
    return [name for name in schema.names if name not in kept.schema.names]


def _decoded(file: pq.ParquetFile, group: int, fields: Sequence[pa.Field], kept: pa.RecordBatch) -> pa.RecordBatch:
    """A row group with these columns, and those that are kept of it."""
    count = file.metadata.row_group(group).num_rows
    read = file.read_row_group(group, columns=[field.name for field in fields])
    metrics.count(rows_read=count, files_read=1)
    rows = conformed(read, pa.schema(fields), count).combine_chunks()
    columns = [column.chunk(0) for column in rows.columns]
    return pa.record_batch([*columns, *kept.columns], schema=pa.schema([*fields, *kept.schema]))

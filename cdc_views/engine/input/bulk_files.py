"""The Spark task of a bulk read: it writes data files with the rows that remain after one range of a partition.

All events of a key are in one partition, so the last event of a key in the range decides. A range is read in pieces,
the newest piece first: a key that was seen before then has a later event. The task holds one piece, the file that it
is writing, up to 28 bytes for each key, and the deleted keys.

An earlier task may already have written files for offsets before this range. They are treated as older pieces: a file
is kept if none of its keys was seen, and rewritten without the seen keys otherwise.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views.base.lsn import Lsn
from cdc_views.capture.fold import Folded
from cdc_views.capture.latest import Latest
from cdc_views.config import LogSettings
from cdc_views.log.cuts.ranges import read_piece
from cdc_views.log.kafka.record import TopicPartition
from cdc_views.source.catalog import SourceTable
from cdc_views.store.commits import Written
from cdc_views.store.delta_log import Add, TableSpec, data_file, key_schema
from cdc_views.store.files import bounded_columns, write_rows
from cdc_views.store.index import Fingerprints, KeyIndex, fingerprints, read_keys
from cdc_views.store.storage import touching
from cdc_views.store.upkeep import FULL_ROWS

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]

PIECE_OFFSETS: Final = 100_000
# A larger piece is split into two halves, so that wide rows do not exhaust the memory.
PIECE_BYTES: Final = 64_000_000
# On disk: above the size from which upkeep no longer merges a file.
FILE_BYTES: Final = 20_000_000
# In memory.
_FIRST_FILE_BYTES: Final = 64_000_000
_MOST_HELD_BYTES: Final = 200_000_000


@dataclass(frozen=True)
class Range:
    """Offsets of one partition: from `start` to before `end`.

    `ahead` has what earlier tasks have written for the offsets before `start`, in the order of the offsets.
    """

    partition: TopicPartition
    start: int
    end: int
    ahead: tuple[Written, ...] = ()

    @property
    def offsets(self) -> int:
        """The number of offsets."""
        return self.end - self.start


@dataclass(frozen=True)
class FilesOfRange:
    """The task of one table: call it with a range. It writes the number of offsets done to a file in `progress`.

    `all_new`: no row of the table is stored yet. Under exactly-once, no event may be earlier than `floor`.
    """

    log: LogSettings
    table: SourceTable
    spec: TableSpec
    folder: Path
    progress: Path
    all_new: bool
    floor: Lsn | None = None
    piece_offsets: int = PIECE_OFFSETS
    piece_bytes: int = PIECE_BYTES
    file_bytes: int = FILE_BYTES
    file_rows: int = FULL_ROWS

    def __call__(self, wanted: Range) -> Written:
        """Write the files. Their content is fsynced; their names may not be.

        Raises BadEvent, UnsupportedType, UnresolvedToast, LogDiscontinuity, LogGap, OffsetCompacted,
        WarehouseUnusable, DiskFull.
        """
        with _without_garbage_collector(), touching(self.folder):
            return self._written(wanted, _Seen())

    def _written(self, wanted: Range, seen: _Seen) -> Written:
        written: list[Add] = []
        waiting: list[pa.Table] = []
        deleted: list[pa.Table] = []
        enough = _FIRST_FILE_BYTES
        for rows, gone in self._left(wanted, seen):
            waiting.append(rows)
            deleted.append(gone)
            held = sum(each.nbytes for each in waiting)
            if held >= enough or sum(each.num_rows for each in waiting) >= self.file_rows:
                written += self._write(waiting)
                waiting = []
                enough = min(held * self.file_bytes // written[-1]["size"], _MOST_HELD_BYTES)
        written += self._write(waiting)
        for ahead in reversed(wanted.ahead):
            written += [add for file in ahead.added for add in self._still(file, seen)]
            deleted.append(self._gone(ahead.deleted, seen))
        return Written(written, pa.concat_tables(deleted) if deleted else key_schema(self.spec).empty_table())

    def _left(self, wanted: Range, seen: _Seen) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield the rows and the deleted keys of a range, each key once."""
        end = wanted.end
        while end > wanted.start:
            start = max(wanted.start, end - self.piece_offsets)
            for folded in self._folded(Range(wanted.partition, start, end)):
                yield self._unseen(seen, folded)
            end = start
            with suppress(OSError):  # nothing depends on it
                (self.progress / str(wanted.partition.partition)).write_text(str(wanted.end - end))

    def _folded(self, piece: Range) -> Iterator[Folded]:
        """Fold a piece, in halves if it is too large; the newest first."""
        latest = self._read(piece)
        if latest is None:
            middle = (piece.start + piece.end) // 2
            yield from self._folded(Range(piece.partition, middle, piece.end))
            yield from self._folded(Range(piece.partition, piece.start, middle))
        else:
            yield latest.finish()

    def _read(self, piece: Range) -> Latest | None:
        """Read the last events of a piece; None if they are too large to be held at once."""
        # An event that is delivered again may be earlier than `floor`. It changes nothing, because the later events of
        # its key are delivered again too.
        latest = Latest(self.table, self.floor if self.log.exactly_once else None)
        for records in read_piece(self.log, piece.partition, piece.start, piece.end):
            latest.add(records)
            if latest.is_larger_than(self.piece_bytes) and piece.offsets > 1:
                return None
        return latest

    def _unseen(self, seen: _Seen, folded: Folded) -> tuple[pa.Table, pa.Table]:
        """The rows and deleted keys that have no later event. Marks them as seen."""
        rows = folded.upserts.select(self.spec.schema.names).cast(self.spec.schema)
        is_new = seen.add(fingerprints(rows.select(self.spec.key)))
        return rows.filter(pa.array(is_new)), self._gone(folded.deletes, seen)

    def _gone(self, deleted: pa.Table, seen: _Seen) -> pa.Table:
        """The deleted keys that have no later event. Marks them as seen."""
        keys = deleted.select(self.spec.key).cast(key_schema(self.spec))
        is_new = seen.add(fingerprints(keys))
        # What was never stored need not be deleted.
        return keys.slice(0, 0) if self.all_new else keys.filter(pa.array(is_new))

    def _still(self, file: Add, seen: _Seen) -> list[Add]:
        """A file with the rows of a file that have no later event. Marks them as seen."""
        is_new = seen.add(read_keys(self.folder, file["path"], key_schema(self.spec)))
        if is_new.all():
            return [file]
        with pq.ParquetFile(data_file(self.folder, file["path"])) as opened:
            rows = opened.read().select(self.spec.schema.names).cast(self.spec.schema)
        return self._write([rows.filter(pa.array(is_new))])

    def _write(self, parts: list[pa.Table]) -> list[Add]:
        rows = pa.concat_tables(parts) if parts else self.spec.schema.empty_table()
        if not rows.num_rows:
            return []
        if not any(pa.types.is_nested(rows.schema.field(name).type) for name in self.spec.key):
            rows = rows.sort_by([(name, "ascending") for name in self.spec.key])
        return [write_rows(self.folder, rows, bounded_columns(self.spec))]


@contextmanager
def _without_garbage_collector() -> Iterator[None]:
    """Turn the garbage collector off: nothing here is in a cycle, and it would traverse many events again and again."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Seen:
    """The keys that were seen in newer pieces, which are read first."""

    def __init__(self) -> None:
        self._keys, self._numbers = KeyIndex(), count()

    def add(self, keys: Fingerprints) -> Mask:
        """Mark keys as seen, none of them twice; returns which of them are new."""
        is_new = np.ones(len(keys.high), bool)
        for _, found in self._keys.find(keys):
            is_new[found.wanted] = False
        if is_new.any():
            self._keys.add(str(next(self._numbers)), keys.take(is_new))
        return is_new


def do_nothing(number: int) -> None:
    """A task that imports what the others import: this module."""

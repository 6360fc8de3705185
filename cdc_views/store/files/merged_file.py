"""Data files made from the rows of others, piece by piece: only a few row groups are in memory at a time."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views.store.delta_log.deletion_vectors import RowNumbers, read_rows
from cdc_views.store.delta_log.entries import Add, data_file
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.files.data_files import ROW_GROUP, ROW_GROUP_BYTES, pages, repetitive, rows_in_group
from cdc_views.store.files.statistics import Statistics, add_action, bounded_columns
from cdc_views.store.storage import durable

_BATCH_ROWS: Final = 5 * ROW_GROUP
# The same for wide rows. In memory: a file of compressible rows takes many times its size there.
_BATCH_BYTES: Final = 5 * ROW_GROUP_BYTES
_SAMPLE_ROWS: Final = 100
# Upkeep soon rewrites the rows of a file of so few row groups: the time that zstd takes would be lost.
_FEW_GROUPS: Final = 2


def rows_of(table: Path, spec: TableSpec, files: Iterable[Add]) -> Iterator[pa.Table]:
    """The live rows of several files, one file after the other; all of them together in the order of the table."""
    vectors = ((add["path"], read_rows(table, add.get("deletionVector"))) for add in files)
    rows = chain.from_iterable(rows_without(table, spec, path, gone) for path, gone in vectors)
    return _sorted(rows, spec) if spec.sorted_by else rows


def _sorted(rows: Iterator[pa.Table], spec: TableSpec) -> Iterator[pa.Table]:
    # In memory: files that are merged have about half a million rows together.
    yield pa.concat_tables([spec.schema.empty_table(), *rows]).sort_by(
        [(column, "ascending") for column in spec.sorted_by]
    )


def rows_without(table: Path, spec: TableSpec, path: str, gone: RowNumbers) -> Iterator[pa.Table]:
    """The rows of a file in their order, without those of these numbers, at most 100,000 or about 10 MiB at a time."""
    dead = np.fromiter(gone, np.int64, len(gone))  # in order
    first = 0
    # Threads and read-ahead double the cost of a file of few rows.
    with pq.ParquetFile(data_file(table, path), pre_buffer=False) as file:
        for batch in file.iter_batches(_batch_rows(file), use_threads=file.metadata.num_rows > ROW_GROUP):
            rows = pa.Table.from_batches([batch])
            if not rows.schema.equals(spec.schema):
                rows = rows.select(spec.schema.names).cast(spec.schema)
            if len(dead):
                is_live, end = np.ones(rows.num_rows, bool), first + rows.num_rows
                is_live[dead[slice(*np.searchsorted(dead, (first, end)))] - first] = False
                first, rows = end, rows.filter(pa.array(is_live))
            yield rows


def _batch_rows(file: pq.ParquetFile) -> int:
    """The rows to decode together, by the bytes of all rows, and of the first ones: a dictionary hides their size."""
    rows = file.metadata.num_rows
    if rows <= _SAMPLE_ROWS:
        return _SAMPLE_ROWS
    groups = map(file.metadata.row_group, range(file.metadata.num_row_groups))
    first = next(file.iter_batches(_SAMPLE_ROWS, use_threads=False))
    bytes_per_row = max(sum(group.total_byte_size for group in groups) / rows, first.nbytes / first.num_rows)
    return max(1, min(_BATCH_ROWS, int(_BATCH_BYTES / bytes_per_row)))


def write_evenly(table: Path, spec: TableSpec, pieces: Iterable[pa.Table], rows: int, count: int) -> list[Add]:
    """Write the pieces, which have `rows` rows, to `count` new files of about equal size, as `write_merged` does."""
    each = max(1, -(-rows // count))
    each += -each % ROW_GROUP
    files = groupby(_numbered(pieces, each), key=itemgetter(0))
    written = (write_merged(table, spec, (part for _, part in parts)) for _, parts in files)
    return [add for add in written if add is not None]


def _numbered(pieces: Iterable[pa.Table], each: int) -> Iterator[tuple[int, pa.Table]]:
    """The same rows in parts, each with the number of the new file that it belongs to."""
    before = 0
    for piece in pieces:
        end = before + piece.num_rows
        while before < end:
            part = piece.slice(piece.num_rows - (end - before), each - before % each)
            yield before // each, part
            before += part.num_rows


def write_merged(table: Path, spec: TableSpec, pieces: Iterable[pa.Table]) -> Add | None:
    """Write rows of other files to a new one, and return its `add`; None, and no file, if there are no rows.

    The content of the file is fsynced, its name is not.
    """
    groups = _in_row_groups(pieces)
    first = list(islice(groups, _FEW_GROUPS + 1))
    if not first:
        return None
    is_soon_rewritten = len(first) <= _FEW_GROUPS and sum(map(len, first)) <= _FEW_GROUPS * ROW_GROUP
    codec = "snappy" if is_soon_rewritten else "zstd"
    name = f"part-00000-{uuid.uuid4()}-c000.{codec}.parquet"
    statistics = Statistics(bounded_columns(spec))
    file = table / name
    try:
        options = {"use_dictionary": repetitive(first[0]), **pages(rows_in_group(first[0]))}
        with pq.ParquetWriter(file, spec.schema, compression=codec, **options) as writer:
            for rows in chain(first, groups):
                writer.write_table(rows, row_group_size=rows_in_group(rows))
                statistics.add(rows)
    except BaseException:
        file.unlink(missing_ok=True)
        raise
    durable.sync(file)
    return add_action(name, file.stat().st_size, statistics, data_change=False)


def _in_row_groups(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in pieces of whole row groups, except the last piece."""
    waiting: list[pa.Table] = []
    count = held_bytes = 0
    for piece in pieces:
        waiting.append(piece)
        count, held_bytes = count + piece.num_rows, held_bytes + piece.nbytes
        if count >= ROW_GROUP or held_bytes >= _BATCH_BYTES:
            rows = pa.concat_tables(waiting)
            full = count - count % min(count, rows_in_group(rows))
            yield rows.slice(0, full)
            rest = rows.slice(full)
            waiting, count, held_bytes = [rest], rest.num_rows, rest.nbytes
    if count:
        yield pa.concat_tables(waiting)

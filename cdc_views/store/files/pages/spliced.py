"""Wanted pages of several Parquet files, put together to one in memory, and decoded.

A row group that is put together has a chunk for each column, and each chunk has a fixed cost. So the pages of all files
become one row group; only a column with dictionaries needs one for each row group of a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views import metrics
from cdc_views.store.files.pages.page_map import Numbers, PageMap
from cdc_views.store.files.pages.parquet_format import (
    MAGIC,
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    RowGroup,
    SchemaElement,
)
from cdc_views.store.files.pages.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, ThriftList, ThriftValue, written

_FORMAT_VERSION: Final = 2
# Fewer are decoded before threads have begun.
_LEAST_FOR_THREADS: Final = 20_000
# Plain values, runs of levels, and numbers of a dictionary. Readers take the encoding of a page from the page.
_ENCODINGS: Final = ThriftValue(LIST, ThriftList(I32, [0, 3, 8]))


@dataclass(frozen=True)
class WantedRows:
    """Some rows of a file, in order."""

    file: Path
    map: PageMap
    rows: Numbers

    @cached_property
    def pages(self) -> _SomePages:
        """The pages that have these rows."""
        return _SomePages(self.file, self.map, np.unique(self.map.page_of(self.rows)))


class _SomePages(NamedTuple):
    """Some pages of a file, in order."""

    file: Path
    map: PageMap
    numbers: Numbers

    @property
    def rows_count(self) -> int:
        return self.map.rows_count(self.numbers)

    def places_of(self, rows: Numbers) -> Numbers:
        """Where these rows of the file are among the rows of the pages."""
        begins, ends = self.map.begins[self.numbers], self.map.ends[self.numbers]
        page = np.searchsorted(begins, rows, "right") - 1
        return (np.cumsum(ends - begins) - ends)[page] + rows


def read_rows(wanted: Sequence[WantedRows], names: Sequence[str]) -> pa.Table:
    """These columns of some rows, with the types that Parquet has. The maps of all files have these columns."""
    pages = [each.pages for each in wanted]
    firsts = np.cumsum([0, *(each.rows_count for each in pages)])
    places = [first + of_file.places_of(each.rows) for first, of_file, each in zip(firsts, pages, wanted, strict=False)]
    metrics.count(rows_read=int(firsts[-1]), files_read=len(pages))
    rows = pa.concat_tables([_decoded(like, names) for like in _alike(pages, names)])
    return rows.take(pa.array(np.concatenate(places)))


def _alike(pages: Sequence[_SomePages], names: Sequence[str]) -> list[list[_SomePages]]:
    """The same pages in parts that can be in one file."""
    parts: list[list[_SomePages]] = []
    for each in pages:
        if parts and all(parts[-1][0].map.columns[name].is_like(each.map.columns[name]) for name in names):
            parts[-1].append(each)
        else:
            parts.append([each])
    return parts


def _decoded(wanted: Sequence[_SomePages], names: Sequence[str]) -> pa.Table:
    encoded = [name for name in names if any(part.map.columns[name].has_dictionaries for part in wanted)]
    plain = [name for name in names if name not in encoded]
    columns: dict[str, pa.ChunkedArray] = {}
    for of_kind, groups in ((plain, [list(wanted)]), (encoded, [[part] for part in _by_group(wanted)])):
        if of_kind:
            with pq.ParquetFile(pa.py_buffer(_spliced(groups, of_kind)), pre_buffer=False) as spliced:
                read = spliced.read(use_threads=spliced.metadata.num_rows > _LEAST_FOR_THREADS)
            columns.update(zip(of_kind, read.columns, strict=True))
    return pa.table({name: columns[name] for name in names})


def _by_group(wanted: Sequence[_SomePages]) -> Iterator[_SomePages]:
    for file, pages, numbers in wanted:
        for of_group in np.split(numbers, np.flatnonzero(np.diff(pages.groups[numbers])) + 1):
            yield _SomePages(file, pages, of_group)


def _spliced(groups: Sequence[Sequence[_SomePages]], names: Sequence[str]) -> bytes:
    """The pages as a file with these row groups."""
    columns = groups[0][0].map.columns
    content = [MAGIC]
    described = []
    place = len(MAGIC)
    for parts in groups:
        rows = sum(part.rows_count for part in parts)
        read = [_read(part, names) for part in parts]
        chunks = []
        for name in names:
            dictionary = read[0][name].dictionary
            pages = [page for of_file in read for page in of_file[name].pages]
            size = len(dictionary) + sum(map(len, pages))
            chunks.append(_chunk(columns[name].kind, rows, place, len(dictionary), size))
            content += [dictionary, *pages]
            place += size
        described.append(
            {
                RowGroup.CHUNKS: _structs(chunks),
                RowGroup.BYTES: ThriftValue(I64, 0),
                RowGroup.ROWS: ThriftValue(I64, rows),
            }
        )
    footer = _footer([columns[name].element for name in names], described)
    return b"".join([*content, footer, len(footer).to_bytes(4, "little"), MAGIC])


class _Read(NamedTuple):
    """Pages of a column as they are in its file, and the dictionary of their row group, which may have no bytes."""

    dictionary: bytes
    pages: list[bytes]


def _read(wanted: _SomePages, names: Sequence[str]) -> Mapping[str, _Read]:
    found = {}
    with wanted.file.open("rb", buffering=0) as opened:
        file = opened.fileno()
        for name in names:
            column = wanted.map.columns[name]
            begin, size = column.dictionaries[wanted.map.groups[wanted.numbers[0]]]
            places = zip(column.begins[wanted.numbers].tolist(), column.sizes[wanted.numbers].tolist(), strict=True)
            found[name] = _Read(os.pread(file, size, begin), [os.pread(file, size, begin) for begin, size in places])
    return found


def _chunk(kind: Struct, rows: int, begin: int, dictionary_bytes: int, size: int) -> Struct:
    described = {
        **kind,
        ColumnMetaData.ENCODINGS: _ENCODINGS,
        ColumnMetaData.VALUES: ThriftValue(I64, rows),
        ColumnMetaData.DECODED_BYTES: ThriftValue(I64, size),
        ColumnMetaData.BYTES: ThriftValue(I64, size),
        ColumnMetaData.FIRST_PAGE: ThriftValue(I64, begin + dictionary_bytes),
    }
    if dictionary_bytes:
        described[ColumnMetaData.DICTIONARY] = ThriftValue(I64, begin)
    return {ColumnChunk.FILE_OFFSET: ThriftValue(I64, 0), ColumnChunk.METADATA: ThriftValue(STRUCT, described)}


def _footer(elements: Sequence[Struct], groups: Sequence[Struct]) -> bytes:
    root = {SchemaElement.NAME: ThriftValue(BINARY, b"schema"), SchemaElement.CHILDREN: ThriftValue(I32, len(elements))}
    return written(
        {
            FileMetaData.VERSION: ThriftValue(I32, _FORMAT_VERSION),
            FileMetaData.SCHEMA: _structs([root, *elements]),
            FileMetaData.ROWS: ThriftValue(I64, sum(group[RowGroup.ROWS].value for group in groups)),
            FileMetaData.ROW_GROUPS: _structs(groups),
        }
    )


def _structs(structs: Sequence[Struct]) -> ThriftValue:
    return ThriftValue(LIST, ThriftList(STRUCT, list(structs)))

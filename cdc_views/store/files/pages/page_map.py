"""Where the pages of a Parquet file are, by its page index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from cdc_views.store.files.pages.parquet_format import (
    MAGIC,
    ColumnChunk,
    ColumnMetaData,
    FileMetaData,
    RowGroup,
    SchemaElement,
)
from cdc_views.store.files.pages.thrift import I32, I64, Struct, all_numbers, first_list, read_struct

Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

# What is around the three numbers of a page location: the type of each, as the next field, and the end.
_BETWEEN: Final = (16 + I64, 16 + I32, 16 + I64, 0)


@dataclass(frozen=True)
class PagedColumn:
    """A column and the place of each of its pages, and of the dictionary of each row group.

    `element` describes it in the schema, `kind` in every row group. A row group without a dictionary has one of no
    bytes.
    """

    element: Struct
    kind: Struct
    begins: Numbers
    sizes: Numbers
    dictionaries: Sequence[tuple[int, int]]

    @property
    def has_dictionaries(self) -> bool:
        """Whether any row group has one."""
        return any(size for _, size in self.dictionaries)

    def is_like(self, other: PagedColumn) -> bool:
        """Whether pages of both can be in one file: they have the same name, type and codec."""
        return (self.element, self.kind) == (other.element, other.kind)


@dataclass(frozen=True)
class PageMap:
    """The pages of a file, numbered over all its row groups: first row, row after the last one, and row group.

    `columns` has those without parts of their own whose pages begin at these rows.
    """

    begins: Numbers
    ends: Numbers
    groups: Numbers
    columns: Mapping[str, PagedColumn]

    def page_of(self, rows: Numbers) -> Numbers:
        """The page of each of these rows of the file."""
        return np.searchsorted(self.begins, rows, "right") - 1

    def rows_count(self, pages: Numbers) -> int:
        """How many rows these pages have."""
        return int((self.ends[pages] - self.begins[pages]).sum())


def page_map(path: Path) -> PageMap | None:
    """Where the pages of a file are; None if it has no page index, or no rows."""
    with path.open("rb") as opened:
        footer = _footer(opened.fileno())
        groups: list[Struct] = footer[FileMetaData.ROW_GROUPS].value.values
        chunks: list[list[Struct]] = [group[RowGroup.CHUNKS].value.values for group in groups]
        if not groups or any(ColumnChunk.INDEX_BEGIN not in chunk for of_group in chunks for chunk in of_group):
            return None
        indexes = iter(_indexes(opened.fileno(), [chunk for of_group in chunks for chunk in of_group]))
    pages = [[next(indexes) for _ in of_group] for of_group in chunks]
    firsts = np.cumsum([0, *(group[RowGroup.ROWS].value for group in groups)])
    begins = np.concatenate([first + of_group[0].rows for first, of_group in zip(firsts, pages, strict=False)])
    columns = {}
    for leaf, element in _plain_columns(footer[FileMetaData.SCHEMA].value.values):
        of_leaf = [of_group[leaf] for of_group in pages]
        if all(np.array_equal(each.rows, of_group[0].rows) for each, of_group in zip(of_leaf, pages, strict=True)):
            name = element[SchemaElement.NAME].value.decode()
            columns[name] = _column(element, [of_group[leaf] for of_group in chunks], of_leaf)
    counts = [len(of_group[0].rows) for of_group in pages]
    return PageMap(begins, np.append(begins[1:], firsts[-1]), np.repeat(np.arange(len(groups)), counts), columns)


def _footer(file: int) -> Struct:
    end = os.fstat(file).st_size - len(MAGIC) - 4
    size = int.from_bytes(os.pread(file, 4, end), "little")
    return read_struct(os.pread(file, size, end - size))


class _Pages(NamedTuple):
    """The pages of a column of a row group: place, bytes, and first row within the row group."""

    begins: Numbers
    sizes: Numbers
    rows: Numbers


def _indexes(file: int, chunks: Sequence[Struct]) -> list[_Pages]:
    """The page index of each of these columns of row groups."""
    places = [(chunk[ColumnChunk.INDEX_BEGIN].value, chunk[ColumnChunk.INDEX_BYTES].value) for chunk in chunks]
    first = min(begin for begin, _ in places)
    content = os.pread(file, max(begin + size for begin, size in places) - first, first)
    return _read_indexes([content[begin - first : begin - first + size] for begin, size in places])


def _read_indexes(indexes: Sequence[bytes]) -> list[_Pages]:
    """The pages that each index has, all at once: a file has thousands of pages.

    An index is a list of structures, each of three numbers in this order. With the bytes between them these are seven
    numbers of variable length.
    """
    lists = [first_list(index) for index in indexes]
    begins, numbers = all_numbers(b"".join(content for _, content in lists))
    firsts = np.searchsorted(begins, np.cumsum([0, *(len(content) for _, content in lists)]))
    found = []
    for first, (count, _) in zip(firsts, lists, strict=False):
        locations = numbers[first : first + 7 * count].reshape(count, 7)
        if not (locations[:, ::2] == _BETWEEN).all():
            raise ValueError("a page index of Parquet in an order of its own")
        found.append(_Pages(*(locations[:, 1::2] >> 1).T))
    return found


def _plain_columns(elements: Sequence[Struct]) -> Iterator[tuple[int, Struct]]:
    """The columns without parts of their own, each with its number among all leaves of the schema."""
    leaf, place = 0, 1
    while place < len(elements):
        if SchemaElement.CHILDREN not in elements[place]:
            yield leaf, elements[place]
        leaves, place = _behind(elements, place)
        leaf += leaves


def _behind(elements: Sequence[Struct], place: int) -> tuple[int, int]:
    """The number of leaves of an element of the schema, and the place behind it and its parts."""
    if SchemaElement.CHILDREN not in elements[place]:
        return 1, place + 1
    leaves, end = 0, place + 1
    for _ in range(elements[place][SchemaElement.CHILDREN].value):
        of_child, end = _behind(elements, end)
        leaves += of_child
    return leaves, end


def _column(element: Struct, chunks: Sequence[Struct], pages: Sequence[_Pages]) -> PagedColumn:
    described: list[Struct] = [chunk[ColumnChunk.METADATA].value for chunk in chunks]
    dictionaries = [(0, 0)] * len(chunks)
    for group, (each, of_group) in enumerate(zip(described, pages, strict=True)):
        if (found := each.get(ColumnMetaData.DICTIONARY)) is not None:
            dictionaries[group] = found.value, int(of_group.begins[0]) - found.value
    return PagedColumn(
        element,
        {number: described[0][number] for number in (ColumnMetaData.TYPE, ColumnMetaData.PATH, ColumnMetaData.CODEC)},
        np.concatenate([each.begins for each in pages]),
        np.concatenate([each.sizes for each in pages]),
        dictionaries,
    )

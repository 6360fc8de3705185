"""Finds the rows with the largest, or the smallest, values of a column, without an index.

The footer of a data file has bounds of the values in each of its row groups. Row groups are decoded in the order of
these bounds, first the one that may have the largest value, until no other one can have a larger value than those
found. Rows that deletion vectors hide may have set a bound: then a row group is decoded in vain, and none is skipped
wrongly. Its first live value is remembered, and is its bound as long as no row comes back. A row group without bounds
is always decoded. Decoded values are kept (RowGroups), so the next search reads few or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache
from operator import gt, lt
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_views.base.python_values import plain_values
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import data_file
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.files import column_places
from cdc_views.store.index.fetching import RowGroups

# Above this Spark is faster, since it decodes on all cores.
_MOST_ROWS: Final = 2_000_000
_MOST_FILES: Final = 10_000


class _Bounds(NamedTuple):
    """The smallest and the largest value of a row group. It has no values if `has_values` is false; None: not known."""

    low: Any
    high: Any
    has_values: bool = True


@dataclass(frozen=True)
class _Live:
    """The bound of the live rows of a row group, while the rows of the file in `dead` are hidden.

    The live rows have no values if `has_values` is false.
    """

    dead: RowNumbers
    bound: Any
    has_values: bool


@dataclass(frozen=True)
class _FileBounds:
    """The bounds of a column in the row groups of a file, and those found since, for largest and smallest values."""

    groups: Sequence[_Bounds]
    live: dict[tuple[int, bool], _Live] = field(default_factory=dict)

    @classmethod
    def of(cls, footer: pq.FileMetaData, column: pa.Field) -> _FileBounds:
        """Those in a file."""
        place = column_places(footer).get(column.name)
        groups = map(footer.row_group, range(footer.num_row_groups))
        return cls([_bounds(group, place, column.type) for group in groups])


@dataclass(frozen=True)
class _Group:
    """A row group of a data file: its place, the number of its first row, and its extreme bound; None: not known."""

    path: str
    number: int
    begin: int
    bound: Any
    of_file: _FileBounds


class _Found(NamedTuple):
    """A live row, by its file and number, and its value."""

    value: Any
    path: str
    row: int


class FirstValues:
    """Searches tables; for several threads, one per table."""

    def __init__(self, row_groups: RowGroups, *, most_rows: int = _MOST_ROWS) -> None:
        """A search gives up when it would decode more than `most_rows`."""
        self._row_groups = row_groups
        self._most_rows = most_rows
        self._bounds_of = lru_cache(_MOST_FILES)(lambda file, column: _FileBounds.of(row_groups.footer(file), column))

    def rows(
        self, table: Path, state: TableState, column: pa.Field, most: int, *, is_largest: bool
    ) -> StoredRows | None:
        """The `most` live rows with the largest values of a column of numbers, dates or timestamps, or the smallest.

        No other row has a larger one; rows with NULL are not among them. They are fewer only if there are no others.
        None if too many rows would have to be decoded.
        """
        is_beyond = gt if is_largest else lt
        found: list[_Found] = []
        decoded = 0
        for group in self._in_order(table, state, column, is_largest=is_largest):
            if len(found) == most and group.bound is not None and not is_beyond(group.bound, found[-1].value):
                break
            values = self._row_groups.group(data_file(table, group.path), group.number, pa.schema([column])).column(0)
            decoded += len(values)
            if decoded > self._most_rows:
                return None
            dead = state.dead_rows(table, group.path)
            first = list(_first(group, values, dead, most, is_largest=is_largest))
            bound = first[0].value if first else None
            group.of_file.live[group.number, is_largest] = _Live(dead, bound, has_values=bool(first))
            found += first
            found = sorted(found, key=lambda each: each.value, reverse=is_largest)[:most]
        stored = StoredRows()
        for each in found:
            stored.setdefault(each.path, RowNumbers()).add(each.row)
        return stored

    def _in_order(self, table: Path, state: TableState, column: pa.Field, *, is_largest: bool) -> Iterator[_Group]:
        """The row groups that have values: those without bounds, then the others by their bounds."""
        groups = [
            group for path in state.files for group in self._groups(table, state, path, column, is_largest=is_largest)
        ]
        yield from (group for group in groups if group.bound is None)
        bounded = (group for group in groups if group.bound is not None)
        yield from sorted(bounded, key=lambda group: group.bound, reverse=is_largest)

    def _groups(
        self, table: Path, state: TableState, path: str, column: pa.Field, *, is_largest: bool
    ) -> Iterator[_Group]:
        file = data_file(table, path)
        begins = self._row_groups.begins(file)
        of_file = self._bounds_of(file, column)
        for number, bounds in enumerate(of_file.groups):
            bound, has_values = bounds.high if is_largest else bounds.low, bounds.has_values
            live = of_file.live.get((number, is_largest))
            if live is not None and live.dead <= state.dead_rows(table, path):
                bound, has_values = live.bound, live.has_values
            if has_values:
                yield _Group(path, number, begins[number], bound, of_file)


_NO_VALUES: Final = _Bounds(None, None, has_values=False)
_NOT_KNOWN: Final = _Bounds(None, None)


def _bounds(group: pq.RowGroupMetaData, place: int | None, kind: pa.DataType) -> _Bounds:
    if place is None:  # the column was added later
        return _NO_VALUES
    statistics = group.column(place).statistics
    if statistics is None:
        return _NOT_KNOWN
    if statistics.has_null_count and statistics.null_count == group.num_rows:
        return _NO_VALUES
    if not statistics.has_min_max:
        return _NOT_KNOWN
    try:
        both = [statistics.min, statistics.max]
        if not all(isinstance(each, int | Decimal | date) for each in both):
            return _NOT_KNOWN
        low, high = plain_values(pa.chunked_array([pa.array(both, kind)]))
    except (pa.ArrowException, OverflowError, ValueError):  # a time for which Python has no value
        return _NOT_KNOWN
    return _Bounds(low, high)


def _first(group: _Group, values: pa.Array, dead: RowNumbers, most: int, *, is_largest: bool) -> Iterator[_Found]:
    """The first live values of a row group."""
    numbers = np.flatnonzero(values.is_valid())
    if dead:
        numbers = numbers[~np.isin(numbers + group.begin, np.fromiter(dead, np.int64, len(dead)))]
    live = values.take(pa.array(numbers))
    order = pc.array_sort_indices(live, order="descending" if is_largest else "ascending")[:most]
    chosen = plain_values(pa.chunked_array([live.take(order)]))
    for value, number in zip(chosen, numbers[order.to_numpy()], strict=True):
        yield _Found(value, group.path, int(number) + group.begin)

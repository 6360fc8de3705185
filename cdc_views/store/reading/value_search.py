"""Finds the rows of a version by the values of one column, for readers that have no index.

Row groups are skipped by the bounds in the footers of their files. The others are decoded once and kept (RowGroups), so
that a reader that asks again reads no file. Of the rows with few values, most of a row group is not wanted: `places`
finds them in that column alone, so that they can be fetched by page.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import data_file
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.files import column_places
from cdc_views.store.index.fetching import RowGroups

_MOST_FILES: Final = 10_000
FEW_VALUES: Final = 1000
"""As many as the documents of the largest page of a search."""

Bound = tuple[Any, Any] | None
"""The smallest and the largest value of a column; None where they are not known."""


class _Group(NamedTuple):
    """A row group whose bounds allow a match: its file by the path in the log, its number, and its first row."""

    path: str
    file: Path
    number: int
    begin: int


@dataclass(frozen=True)
class _Bounds:
    """The bounds of a column in a whole file, and in each of its row groups."""

    of_file: Bound
    of_groups: Sequence[Bound]

    @classmethod
    def of(cls, footer: pq.FileMetaData, column: str) -> _Bounds:
        """Those in a file."""
        place = column_places(footer)[column]
        of_groups = [_bounds(footer.row_group(number).column(place)) for number in range(footer.num_row_groups)]
        known = [each for each in of_groups if each is not None]
        if not known or len(known) < len(of_groups):
            return cls(None, of_groups)
        return cls((min(low for low, _ in known), max(high for _, high in known)), of_groups)


class ValueSearch:
    """Finds rows in tables; for several threads."""

    def __init__(self, row_groups: RowGroups) -> None:
        self._row_groups = row_groups
        self._bounds_of = lru_cache(_MOST_FILES)(lambda file, column: _Bounds.of(row_groups.footer(file), column))

    def with_text(self, table: Path, state: TableState, column: pa.Field, text: str, schema: pa.Schema) -> pa.Table:
        """The live rows whose column is `text`, with the columns of `schema`."""
        found = self._matching(
            table, state, column, schema, lambda low, high: low <= text <= high, lambda values: pc.equal(values, text)
        )
        return pa.Table.from_batches(list(found), schema)

    def with_prefix(
        self, table: Path, state: TableState, column: pa.Field, prefix: str, schema: pa.Schema, most: int
    ) -> pa.Table | None:
        """The live rows whose column begins with `prefix`; None if there are more than `most`."""
        parts, count = [], 0
        for part in self._matching(
            table,
            state,
            column,
            schema,
            lambda low, high: high >= prefix and (low <= prefix or low.startswith(prefix)),
            lambda values: pc.starts_with(values, prefix),
        ):
            parts.append(part)
            count += part.num_rows
            if count > most:
                return None
        return pa.Table.from_batches(parts, schema)

    def with_values(
        self, table: Path, state: TableState, column: pa.Field, values: pa.Array, schema: pa.Schema
    ) -> pa.Table:
        """The live rows whose column is one of `values`. NULL finds NULL."""
        found = self._matching(table, state, column, schema, _allows(values), _is_among(values))
        return pa.Table.from_batches(list(found), schema)

    def places(self, table: Path, state: TableState, column: pa.Field, values: pa.Array) -> StoredRows:
        """Where the live rows whose column is one of `values` are, by reading the column alone. NULL finds NULL."""
        stored: StoredRows = {}
        alone, matches = pa.schema([column]), _is_among(values)
        for group in self._allowed(table, state, column, _allows(values)):
            rows = self._row_groups.group(group.file, group.number, alone)
            found = _live(_numbers(matches(rows.column(0))), group.begin, state.dead_rows(table, group.path))
            if len(found):
                stored.setdefault(group.path, RowNumbers()).update((found + group.begin).tolist())
        return stored

    def _matching(
        self,
        table: Path,
        state: TableState,
        column: pa.Field,
        schema: pa.Schema,
        allows: Callable[[Any, Any], bool],
        matches: Callable[[pa.Array], pa.Array],
    ) -> Iterator[pa.RecordBatch]:
        """The live rows that match, of each row group whose bounds allow a match.

        Most of these have one, so all columns are decoded together: to open a file and to keep what was decoded takes
        about as long as to decode it.
        """
        both = pa.schema([column, *(field for field in schema if field.name != column.name)])
        for group in self._allowed(table, state, column, allows):
            rows = self._row_groups.group(group.file, group.number, both)
            found = _live(_numbers(matches(rows.column(0))), group.begin, state.dead_rows(table, group.path))
            if len(found):
                yield rows.select(schema.names).take(pa.array(found))

    def _allowed(
        self, table: Path, state: TableState, column: pa.Field, allows: Callable[[Any, Any], bool]
    ) -> Iterator[_Group]:
        """The row groups whose bounds allow a match."""
        for path in state.files:
            file = data_file(table, path)
            bounds = self._bounds_of(file, column.name)
            if bounds.of_file is not None and not allows(*bounds.of_file):
                continue
            begins = self._row_groups.begins(file)
            for number, of_group in enumerate(bounds.of_groups):
                if of_group is None or allows(*of_group):
                    yield _Group(path, file, number, begins[number])


def _bounds(column: pq.ColumnChunkMetaData) -> Bound:
    statistics = column.statistics
    if statistics is None or not statistics.has_min_max or statistics.null_count:
        return None
    return (statistics.min, statistics.max) if isinstance(statistics.min, int | str) else None


def _numbers(is_match: pa.Array) -> Any:
    """The numbers of the rows that match."""
    return np.asarray(pc.indices_nonzero(is_match)).astype(np.int64)


def _allows(values: pa.Array) -> Callable[[Any, Any], bool]:
    """Whether one of the values lies within bounds."""
    ordered = sorted(value for value in values.to_pylist() if value is not None) if len(values) <= FEW_VALUES else None
    if ordered is None:
        found = pc.min_max(values).as_py()
        return lambda low, high: bool(found["min"] is not None and low <= found["max"] and found["min"] <= high)
    return lambda low, high: (place := bisect_left(ordered, low)) < len(ordered) and bool(ordered[place] <= high)


def _is_among(values: pa.Array) -> Callable[[pa.Array], pa.Array]:
    """Which of some values are among these."""
    among = pc.SetLookupOptions(value_set=values)
    return lambda found: pc.call_function("is_in", [found], among)


def _live(numbers: Any, begin: int, dead: RowNumbers) -> Any:
    """The rows of a row group that no deletion vector hides; they are numbered within it."""
    if not dead or not len(numbers):
        return numbers
    live = RowNumbers((numbers + begin).tolist()) - dead
    return np.fromiter(live, np.int64, len(live)) - begin

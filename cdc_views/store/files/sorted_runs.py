"""Sorts more rows than memory holds: sorted runs on the disk, merged range by range.

The runs are files without a name, which vanish with the process however it ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from cdc_views.store.files.mapped import mapped

# Of a range. A range is as exact as its samples, times the number of runs.
_SAMPLES: Final = 128


class SortedRuns:
    """Runs of rows, each sorted by the same columns, of which the first has no NULL."""

    def __init__(self, folder: Path, order: Sequence[str]) -> None:
        """`folder` is where the runs take room."""
        self._folder = folder
        self._order = list(order)
        self._runs: list[pa.RecordBatch] = []

    def add(self, rows: pa.Table) -> None:
        """Put away a run, which is sorted. Raises OSError."""
        if rows.num_rows:
            (run,) = rows.combine_chunks().to_batches()
            self._runs.append(mapped(run, self._folder))

    def merged(self, rows: int) -> Iterator[pa.Table]:
        """All rows in their order, in tables of about `rows`."""
        for low, high in pairwise([None, *self._cuts(rows), None]):
            slices = [self._between(run, low, high) for run in self._runs]
            found = [pa.Table.from_batches([part]) for part in slices if part.num_rows]
            if found:
                table = pa.concat_tables(found)
                if len(found) > 1:
                    table = table.sort_by([(column, "ascending") for column in self._order])
                yield from _evenly(table, rows)

    def _cuts(self, rows: int) -> list[Any]:
        """Values of the first column that divide all rows into ranges of about `rows`."""
        step = max(1, rows // _SAMPLES)
        samples = [value for run in self._runs for value in _first_column(run, self._order)[::step].to_pylist()]
        return sorted(set(sorted(samples)[:: max(1, rows // step)][1:]))

    def _between(self, run: pa.RecordBatch, low: Any, high: Any) -> pa.RecordBatch:
        """The rows of a run from the value `low` on and before `high`; None is no bound."""
        values = _first_column(run, self._order)

        def place(value: Any) -> int:
            return bisect_left(range(len(values)), value, key=lambda number: values[number].as_py())

        begin = 0 if low is None else place(low)
        end = run.num_rows if high is None else place(high)
        return run.slice(begin, end - begin)


def _first_column(run: pa.RecordBatch, order: Sequence[str]) -> pa.Array:
    return run.column(order[0])


def _evenly(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """The table, cut into equal parts if many rows have one value."""
    count = max(1, round(table.num_rows / rows))
    ends = np.linspace(0, table.num_rows, count + 1).astype(int).tolist()
    for begin, end in pairwise(ends):
        yield table.slice(begin, end - begin)

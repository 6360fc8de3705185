"""What the views read in an epoch: each input at the version before the epoch and at the version after it."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import pyarrow as pa

from cdc_views import metrics
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.view_tables import column_types
from cdc_views.metrics import Work
from cdc_views.store.warehouse import RowsChanged, TableSpec


@dataclass(frozen=True)
class InputVersions:
    """A table that views read, `old` as the last epoch published it, `new` as this epoch leaves it."""

    spec: TableSpec
    old: int
    new: int

    @property
    def columns(self) -> list[str]:
        """The columns that queries see."""
        return list(column_types(self.spec))


class Inputs:
    """The inputs of one epoch; for several threads.

    A delta is read once, however many views use it. The work counts for each of them as if it were the only one.
    """

    def __init__(self, tables: Tables, changed: Mapping[str, int]) -> None:
        """`changed` has the new version of each table that changed; it grows while the views are maintained."""
        self._tables = tables
        self._changed = changed
        self._deltas: dict[tuple[str, frozenset[str]], tuple[RowsChanged | None, Work]] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def versions(self, name: str) -> InputVersions | None:
        """The two versions of an input; None if the last epoch did not publish it, or not at its present path."""
        published = self._tables.published
        if published is None or not self._tables.is_published(name):
            return None
        old = published.tables[name].version
        return InputVersions(self._tables.specs[name], old, self.version(name))

    def version(self, name: str) -> int:
        """The version of an input after the epoch."""
        return self._changed.get(name, self._tables.version(name))

    def delta(self, of: InputVersions, columns: Collection[str]) -> RowsChanged | None:
        """The rows of an input that the epoch removes and adds, in these columns; None if there are too many."""
        name = of.spec.name
        wanted = frozenset(columns)
        with self._locks[name]:
            if (name, wanted) not in self._deltas:
                with metrics.counting(Work()) as work:
                    found = self._tables.warehouse.changed_rows(of.spec, of.old, of.new, sorted(wanted))
                self._deltas[name, wanted] = found, work
            found, work = self._deltas[name, wanted]
        metrics.add(work)
        return found

    def lookup(self, of: InputVersions, version: int, keys: pa.Table, columns: Collection[str]) -> pa.Table | None:
        """The rows of an input whose columns equal those of one of `keys`, with `columns` and those of `keys`.

        None if the driver cannot look them up.
        """
        return self._tables.warehouse.find(of.spec, version, keys, list(columns))

    def first_rows(
        self, of: InputVersions, column: str, most: int, columns: Collection[str], *, is_largest: bool
    ) -> pa.Table | None:
        """The `most` rows of an input, as the epoch leaves it, with the largest values of a column, or the smallest.

        They have `columns` and that one. None if the driver cannot search for them.
        """
        warehouse = self._tables.warehouse
        return warehouse.first_rows(of.spec, of.new, column, most, list(columns), is_largest=is_largest)

    def row_count(self, of: InputVersions) -> int | None:
        """About how many rows an input has; None if that is not known."""
        return self._tables.warehouse.row_count(of.spec.path)

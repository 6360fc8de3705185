"""What a change costs a view does not grow with the tables: the same change over tables of one size and 16 times that.

The counters say what was looked up, found, computed again, read, opened and written; no time is compared. What would
hide the size of tables is switched off: row groups have one row, and decoded rows are not cached. Indexes are built
before the epoch that is measured. `CDC_VIEWS_COST_VIEWS` says how many shapes; `just nightly` takes all.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from random import Random
from typing import Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_views.store.files import data_files
from cdc_views.store.index import first_values
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.warehouse import Warehouse
from cdc_views.testing import Change, Cost, ViewHarness
from tests.seed import SEED
from tests.view_shapes import DDL, SHAPES, VIEWS
from tests.view_shapes.check import declare, with_parents
from tests.view_shapes.costs import LARGER, problems
from tests.view_shapes.sizes import (
    LEAST_SIZE,
    changes_without_effect,
    hot_change,
    inserts,
    largest_price,
    reversal,
    small_change,
)

COUNT: Final = os.environ.get("CDC_VIEWS_COST_VIEWS", "1")
AT_ONCE: Final = 10  # views of one harness
INCREMENTAL: Final = [name for name, view in VIEWS.items() if view.strategy != "FULL"]
CHOSEN: Final = INCREMENTAL if COUNT == "all" else Random(f"costs {SEED}").sample(INCREMENTAL, int(COUNT))
PARTS: Final = [CHOSEN[first : first + AT_ONCE] for first in range(0, len(CHOSEN), AT_ONCE)]
EXTREMES: Final = [view.name for shape in SHAPES if shape.name == "global_max" for view in shape.views]
HOT: Final = [name for shape in SHAPES if shape.name == "hot_key" for name in shape.of]
ALWAYS: Final = frozenset({"orders"})  # so that the changes without effect are not all skipped
READS_ALL: Final = "window_over_all"  # must be FULL


@dataclass(frozen=True)
class Measured:
    """The costs of one change by view, over small tables, over large ones, and of changes without effect.

    `tables` is the number of tables that a view is kept in.
    """

    small: Mapping[str, Cost]
    large: Mapping[str, Cost]
    idle: Mapping[str, Cost]
    tables: Mapping[str, int]

    def problems(self, views: list[str]) -> list[str]:
        of_views = (problems(name, self.small[name], self.large[name], self.tables[name]) for name in views)
        return list(chain.from_iterable(of_views))


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP", 1)


def measured(
    spark: SparkSession,
    names: list[str],
    change: Callable[[], Iterable[Change]] = small_change,
    *,
    is_hot: bool = False,
    is_repeated: bool = True,
) -> Measured:
    views = with_parents(VIEWS, names)
    with ViewHarness(DDL, spark, partitions=1) as harness:
        declare(harness, views.values())
        read = ALWAYS.union(*(view.reads for view in views.values()))
        tables = Tables(harness, read, is_hot, is_repeated)
        changes = list(change())
        tables.fill(1, LEAST_SIZE)
        small = tables.costs_of_change(changes)
        tables.fill(LEAST_SIZE + 1, LARGER * LEAST_SIZE)
        large = tables.costs_of_change(changes)
        tables.apply(changes_without_effect())
        kept_in = {name: 1 + len(harness.internal_views(name)) for name in harness.views}
        return Measured(small, large, costs(harness), kept_in)


@dataclass(frozen=True)
class Tables:
    """The tables of a harness that its views read; changes of others are skipped, which is faster."""

    harness: ViewHarness
    read: frozenset[str]
    is_hot: bool
    is_repeated: bool

    def apply(self, changes: Iterable[Change]) -> None:
        self.harness.apply(change for change in changes if change.table in self.read)

    def fill(self, first: int, last: int) -> None:
        """Insert many rows, with every view in full, which is faster."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Warehouse, "allows_direct", False)
            self.apply(inserts(last, first=first, is_hot=self.is_hot))

    def costs_of_change(self, changes: list[Change]) -> dict[str, Cost]:
        """Measure the change that undoes another, with nothing cached.

        Before, both are made once, if `is_repeated`: an index is built when it is first needed, by ADD only when a
        group does not follow from the changed rows. Of a hot key, the change itself is measured: which row follows one
        that a full list loses, only all rows of the key say.
        """
        undoing = list(reversal(changes, is_hot=self.is_hot))
        steps = [changes, undoing, changes, undoing] if self.is_repeated else [changes, undoing]
        *before, measured = steps[:-1] if self.is_hot else steps
        for each in before:
            self.apply(each)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RowGroups, "_kept", lambda *_: pa.record_batch([], schema=pa.schema([])))
            self.apply(measured)
        found = costs(self.harness)
        if self.is_hot:
            self.apply(undoing)
        return found


def costs(harness: ViewHarness) -> dict[str, Cost]:
    return {name: harness.cost(name) for name in harness.views}


@pytest.mark.nightly
@pytest.mark.parametrize("views", PARTS, ids=range(len(PARTS)))
def test_cost_of_a_change_does_not_grow_with_the_tables(spark: SparkSession, views: list[str]) -> None:
    found = measured(spark, [*views, READS_ALL])
    again = f"the same views: CDC_VIEWS_SEED={SEED} CDC_VIEWS_COST_VIEWS={COUNT}"
    assert not found.problems(views), "\n".join([*found.problems(views), again])
    negative_control = found.problems([READS_ALL])
    assert any("rows_found" in problem for problem in negative_control), negative_control
    # The changed rows of a table are read to see that they are equal.
    idle = {name: replace(found.idle[name], rows_read=0, files_read=0) for name in views}
    assert idle == dict.fromkeys(views, Cost()), again


@pytest.mark.nightly
def test_cost_of_a_change_of_a_hot_key_does_not_grow_with_its_rows(spark: SparkSession) -> None:
    found = measured(spark, HOT, hot_change, is_hot=True)
    assert not found.problems(HOT), "\n".join(found.problems(HOT))


@pytest.mark.nightly
def test_cost_of_removing_the_largest_price_does_not_grow_with_the_tables(spark: SparkSession) -> None:
    found = measured(spark, [*EXTREMES, READS_ALL], largest_price, is_repeated=False)
    assert not found.problems(EXTREMES), "\n".join(found.problems(EXTREMES))
    # Over the rows added, removed, and with the category of the product, twice; and over the row with the next price.
    assert found.large["global_max"].rows_recomputed == 5
    assert found.problems([READS_ALL])


@pytest.mark.nightly
def test_control_that_searches_without_bounds_reads_more_of_larger_tables(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_values, "_bounds", lambda *_: first_values._NOT_KNOWN)
    found = measured(spark, EXTREMES, largest_price, is_repeated=False)
    assert any("rows_read" in problem for problem in found.problems(EXTREMES))

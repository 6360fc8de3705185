"""The shapes of views as data, and the random histories of their tables. What the engine makes of them: tests/spark."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from cdc_views.host.clock import SYSTEM_CLOCK
from cdc_views.testing import Cost, Delete, Explanation, Insert, Update
from cdc_views.testing.memory.ddl import read_tables
from cdc_views.testing.memory.memory_source import MemorySource
from tests.view_shapes import DDL, SHAPES, TABLES, VIEWS, View
from tests.view_shapes.changes import Epoch, history
from tests.view_shapes.check import tables_below, with_parents, without_readers
from tests.view_shapes.costs import MOST, problems
from tests.view_shapes.sizes import LEAST_SIZE, changes_without_effect, hot_change, inserts, reversal, small_change

HISTORIES = [history(Random(seed), epochs=6) for seed in range(40)]


def test_list_has_fifty_shapes_and_those_that_must_be_full() -> None:
    assert [shape.number for shape in SHAPES] == list(range(1, 52))
    assert len({shape.name for shape in SHAPES}) == len(SHAPES)
    assert sum(len(shape.views) for shape in SHAPES) == len(VIEWS)
    assert all(name in VIEWS for shape in SHAPES for name in shape.of)
    assert all(bool(view.reason) == (view.strategy == "FULL") for view in VIEWS.values())


def test_views_that_a_view_reads_come_before_it() -> None:
    names = list(VIEWS)
    assert all(
        names.index(read) < names.index(name) for name, view in VIEWS.items() for read in view.reads & VIEWS.keys()
    )
    assert list(with_parents(VIEWS, ["amounts"])) == ["three_way", "amounts"]
    assert {"amounts", "three_way"}.isdisjoint(without_readers(VIEWS))


@pytest.mark.parametrize(
    ("wanted", "reason", "explained", "is_satisfied"),
    [
        ("KEYS", "", "FULL", False),
        ("KEYS", "", "KEYS", True),
        ("KEYS", "", "ADD", True),
        ("ADD", "", "KEYS", False),
        ("PATCH", "", "ADD", False),
        ("FULL", "not in", "FULL", True),
        ("FULL", "window", "FULL", False),
        ("FULL", "not in", "KEYS", False),
    ],
)
def test_strategy_is_good_enough_if_it_is_no_weaker(
    wanted: str, reason: str, explained: str, is_satisfied: bool
) -> None:
    view = View("v", "SELECT 1 AS one", wanted, reason)  # type: ignore[arg-type]
    explanation = Explanation("v", explained, "NOT IN over a column that may be NULL", None, "", (), "")
    assert view.is_satisfied_by(explanation) is is_satisfied


def test_same_seed_gives_the_same_history() -> None:
    assert repr(history(Random("7"), 5)) == repr(history(Random("7"), 5))
    assert repr(history(Random("7"), 5)) != repr(history(Random("8"), 5))


def test_history_of_a_view_changes_the_tables_below_it() -> None:
    names = tables_below(VIEWS, ["amounts_with_times"])
    assert names == {"orders", "order_items", "products"}
    epochs = history(Random("8"), 6, names)
    assert {change.table for epoch in epochs for transaction in epoch for change in transaction} == names


@pytest.mark.parametrize("epochs", HISTORIES)
def test_history_is_one_that_postgres_accepts_and_ends_with_empty_tables(epochs: list[Epoch]) -> None:
    source = MemorySource(read_tables(DDL), SYSTEM_CLOCK)
    for epoch in epochs:
        for transaction in epoch:
            source.commit(transaction)
    assert not any(source.rows(table) for table in TABLES)


@pytest.mark.parametrize("is_hot", [False, True])
def test_tables_of_a_size_take_the_small_changes(is_hot: bool) -> None:
    source = MemorySource(read_tables(DDL), SYSTEM_CLOCK)
    source.commit(inserts(LEAST_SIZE, is_hot=is_hot))
    before = sum(row["price"] for row in source.rows("products"))
    source.commit(hot_change() if is_hot else small_change())
    assert sum(row["price"] for row in source.rows("products")) == before
    source.commit(changes_without_effect())


@pytest.mark.parametrize("is_hot", [False, True])
def test_reversal_undoes_a_change(is_hot: bool) -> None:
    source = MemorySource(read_tables(DDL), SYSTEM_CLOCK)
    changes = list(hot_change() if is_hot else small_change())
    source.commit(inserts(LEAST_SIZE, is_hot=is_hot))
    source.commit(inserts(LEAST_SIZE + 10, first=LEAST_SIZE + 1, is_hot=is_hot))
    before = {table: sorted(map(repr, source.rows(table))) for table in TABLES}
    source.commit(changes)
    assert before != {table: sorted(map(repr, source.rows(table))) for table in TABLES}
    source.commit(reversal(changes, is_hot=is_hot))
    assert before == {table: sorted(map(repr, source.rows(table))) for table in TABLES}


@pytest.mark.parametrize("counter", MOST)
def test_cost_that_grows_with_the_tables_is_a_problem(counter: str) -> None:
    cost = Cost(**dict.fromkeys(MOST, 100), commits=1)
    assert problems("v", cost, cost) == []
    flat, grown = (replace(cost, **{counter: round(100 * MOST[counter]) + more}) for more in (0, 1))
    assert problems("v", cost, flat) == []
    [problem] = problems("v", cost, grown)
    assert (
        problem
        == f'view "v": {counter} grew from 100 to {getattr(grown, counter)}, wanted at most {MOST[counter]} times'
    )
    assert problems("v", replace(cost, **{counter: 0}), cost)


def test_more_commits_than_tables_are_a_problem() -> None:
    assert problems("v", Cost(commits=1), Cost(commits=2)) == ['view "v": 2 commits in one epoch, wanted at most 1']
    assert problems("v", Cost(commits=1), Cost(commits=2), tables=2) == []


def test_small_change_is_of_every_table_but_one() -> None:
    assert {change.table for change in small_change()} == TABLES.keys() - {"categories"}


def test_histories_have_every_kind_of_change() -> None:
    """Over many seeds: each table is inserted into, updated in key and other columns, and deleted from."""
    changes = [
        change for epochs in HISTORIES for epoch in epochs[:-1] for transaction in epoch for change in transaction
    ]
    kinds = Counter((change.table, type(change)) for change in changes)
    assert all(kinds[table, kind] > 10 for table in TABLES for kind in (Insert, Update, Delete))
    updates = [change for change in changes if isinstance(change, Update)]
    assert all(any(change.table == name and set(change.new) & set(table.key) for change in updates)
               for name, table in TABLES.items())  # fmt: skip
    values = [value for change in changes if isinstance(change, Insert) for value in change.row.values()]
    floats = [value for value in values if isinstance(value, float)]
    assert any(value == 0 and math.copysign(1, value) < 0 for value in floats)
    assert None in values


def test_histories_change_one_row_several_times_in_an_epoch() -> None:
    assert any(max(changes_by_row(epoch).values(), default=0) > 2 for epochs in HISTORIES for epoch in epochs[1:-1])


def changes_by_row(epoch: Epoch) -> Counter[tuple[object, ...]]:
    """How many changes of an epoch name a key."""
    changes = [change for transaction in epoch for change in transaction]
    named = [(change.table, change.row if isinstance(change, Insert) else change.old) for change in changes]
    return Counter((table, *(row[name] for name in TABLES[table].key)) for table, row in named)

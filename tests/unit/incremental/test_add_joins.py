"""One row of totals over inner joins: ADD gives the view's SQL after every epoch, or leaves the epoch to FULL."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from importlib import import_module
from typing import Any, Final

import pytest

from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, tuples
from tests.unit.incremental.played import (
    check_fails,
    counting_rows,
    declared,
    explained_lookups,
    is_kept,
    kept_by,
    random_states,
)
from tests.unit.incremental.test_add_groups import ITEMS, TABLES, TOTAL, item, order

strategy: Final = import_module("cdc_views.engine.views.strategies.adding.extremes")
adding: Final = import_module("cdc_views.engine.views.strategies.adding.add")  # the package has a function of that name
lookups: Final = import_module("cdc_views.engine.views.strategies.keys")
HISTORIES: Final = 100

EVERYTHING: Final = (
    f"SELECT count(*) AS n, {TOTAL}, sum(i.d) AS s, count(i.d) AS m, max(i.d) AS most, "
    f"min(o.k) AS least, count(DISTINCT o.k) AS k FROM {ITEMS}"
)
VIEWS: Final = {
    "count": f"SELECT count(*) AS n FROM {ITEMS}",
    "sum": f"SELECT {TOTAL} FROM {ITEMS}",
    "sum beside its count": f"SELECT {TOTAL}, count(i.d) AS m FROM {ITEMS}",
    "extremes": f"SELECT max(i.h) AS most, min(o.x) AS first FROM {ITEMS} WHERE o.g <> 'b'",
    "different values": (
        f"SELECT count(DISTINCT o.k) AS k, count(DISTINCT i.h) FILTER (WHERE i.d > 1) AS h FROM {ITEMS}"
    ),
    "everything": EVERYTHING,
    "self join": "SELECT count(*) AS n, max(x.h) AS m, min(y.h) AS l, count(DISTINCT y.h) AS v FROM i x JOIN i y ON "
    "y.k = x.k AND y.h < x.h",
    "three tables": f"SELECT count(*) AS n, max(b.h) AS m, CAST(sum(i.h) AS BIGINT) AS s, count(i.h) AS c FROM {ITEMS} "
    "JOIN b ON b.k = o.k AND b.h <= i.h",
    "using": "SELECT count(*) AS n, max(h) AS m FROM o JOIN i USING (id)",
    "comma": "SELECT count(*) AS n, max(i.h) AS m FROM o, i WHERE i.id = o.id",
    "derived tables": "SELECT count(*) AS n, max(q.v) AS m FROM o JOIN (SELECT i.id AS oid, b.h AS v FROM i JOIN b ON "
    "b.k = i.h) q ON q.oid = o.id",
    "join below a projection": f"SELECT max(v) AS m, count(*) AS n FROM (SELECT i.h AS v FROM {ITEMS} WHERE i.d > 0) q",
    "cancelling values": (
        f"SELECT CAST(sum(CASE WHEN i.h = 1 THEN i.d ELSE -i.d END) AS DECIMAL(18, 2)) AS s FROM {ITEMS}"
    ),
}
OTHERS: Final = {
    "full join": ("SELECT count(*) AS n FROM o FULL JOIN i ON i.id = o.id", "a join that is no inner join"),
    "without an equality": ("SELECT count(*) AS n FROM o JOIN i ON i.h < o.k", "no equality of columns"),
    "subquery": (
        f"SELECT count(*) AS n FROM {ITEMS} WHERE o.k + 1 IN (SELECT k FROM b)",
        "a subquery in an expression",
    ),
    "rows of groups": (
        "SELECT count(*) AS n FROM o JOIN (SELECT DISTINCT id + 1 AS id FROM i) q ON q.id = o.id",
        "not only inner",
    ),
    "limit": (f"SELECT count(*) AS n FROM {ITEMS} ORDER BY n LIMIT 1", "LIMIT"),
    "text": (f"SELECT max(o.g) AS m FROM {ITEMS}", "an extreme of type string"),
    "values of two tables": (f"SELECT count(DISTINCT o.k + i.h) AS m FROM {ITEMS}", "a column of each table"),
}

maintained = partial(kept_by, "ADD", TABLES)


def maintained_at_random(sql: str, seed: int | str, count: int = 1) -> Memory:
    return maintained(sql, *random_states(TABLES, seed, count))


def outcome(memory: Memory) -> tuple[list[Any], int]:
    """The rows of the view, and the number of epochs that were left to FULL."""
    return tuples(memory.views["v"].stored.versions[-1]), memory.in_full


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        assert is_kept(maintained_at_random(VIEWS[name], f"{SEED} {name}", 2 * OF_EACH_VIEW))


@pytest.mark.parametrize("name", ["count", "extremes", "different values", "self join", "three tables", "using"])
def test_every_epoch_of_a_random_history_is_kept_by_its_changes(name: str) -> None:
    with naming_the_seed():
        assert maintained_at_random(VIEWS[name], f"{SEED} {name}", OF_EACH_VIEW).in_full == 0


@pytest.mark.parametrize("name", OTHERS)
def test_other_view_is_maintained_in_full_with_the_reason(name: str) -> None:
    sql, reason = OTHERS[name]
    plan = declared(TABLES, sql).views["v"].plan
    assert plan.strategy == "FULL"
    assert reason in plan.reason


# ---- single epochs


def shop(orders: range, *more: tuple[Any, ...]) -> State:
    """Orders with an item each, at a price that is the number of the order, and more items."""
    return {"o": [order(each) for each in orders], "i": [*(item(1, each, f"{each}.00") for each in orders), *more]}


def test_change_that_removes_the_largest_value_reads_only_what_it_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = maintained(f"SELECT count(*) AS n, max(i.d) AS m FROM {ITEMS}", shop(range(1, 50)))
    read = counting_rows(monkeypatch)
    memory.repeats = False
    memory.epoch({"b": (), **shop(range(1, 49))})
    # The order with its item; then the item with the next largest price, and its order.
    assert (read, outcome(memory)) == ([2, 2], ([(48, Decimal("48.00"))], 0))


def test_both_sides_of_a_join_that_vanish_together_are_subtracted_once() -> None:
    assert outcome(maintained(VIEWS["count"], shop(range(1, 4)), shop(range(1, 3)))) == ([(2,)], 0)


def test_row_that_one_term_adds_and_another_removes_is_no_largest_one() -> None:
    """The item's price grows to the largest while its order vanishes."""
    sql = f"SELECT max(i.d) AS m FROM {ITEMS}"
    before = {"o": [order(1), order(2)], "i": [item(1, 1, "5.00"), item(1, 2, "1.00")]}
    after = {"o": [order(1)], "i": [item(1, 1, "5.00"), item(1, 2, "9.00")]}
    assert outcome(maintained(sql, before, after)) == ([(Decimal("5.00"),)], 0)


def test_sum_of_values_that_come_and_go_is_null() -> None:
    before = {"o": [order(1)], "i": [item(1, 1, "1.00")]}
    after = {"o": [], "i": [item(1, 1, "2.00")]}
    assert outcome(maintained(VIEWS["sum beside its count"], before, after)) == ([(None, 0)], 0)
    assert outcome(maintained(VIEWS["sum"], before, after)) == ([(None,)], 1)


def test_sum_without_values_gets_some() -> None:
    assert outcome(maintained(VIEWS["sum"], {"o": [order(1)]}, shop(range(1, 2)))) == ([(Decimal("1.00"),)], 0)


def test_value_that_counts_as_different_joins_nothing_any_more() -> None:
    """Neither side has lost the value, but the join has."""
    sql = f"SELECT count(DISTINCT i.h) AS n FROM {ITEMS}"
    assert outcome(maintained(sql, shop(range(1, 2)), {"o": [], "i": [item(1, 1, "1.00")]})) == ([(0,)], 0)


def test_explanation_shows_what_is_looked_up_and_where_the_next_value_is_searched_for() -> None:
    assert explained_lookups(TABLES, f"SELECT count(*) AS n, max(i.d) AS most FROM {ITEMS}") == [
        "a change of public.o changes the totals",
        "look up public.i by (id) from (id) of public.o",
        "a change of public.i changes the totals",
        "look up public.o by (id) from (id) of public.i",
        "if the value of (most) is removed, the next one is searched for in public.i.d",
    ]


# ---- negative controls


@pytest.mark.parametrize("version", ["old", "new"])
def test_other_leaves_at_one_version_are_noticed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    look_up = lookups.look_up
    monkeypatch.setattr(lookups, "look_up", lambda work, of, _, *rest: look_up(work, of, getattr(of, version), *rest))
    check_fails(lambda seed: maintained_at_random(VIEWS["count"], seed), HISTORIES)


def test_terms_that_are_taken_for_rows_that_stay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    new = adding.new_extreme
    monkeypatch.setattr(adding, "new_extreme", lambda *given, is_linear: new(*given, is_linear=True))
    check_fails(lambda seed: maintained_at_random(VIEWS["extremes"], seed), HISTORIES)


def test_sums_that_added_rows_make_certain_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    value = adding._value
    monkeypatch.setattr(
        adding, "_value",
        lambda total, stored, *rest, is_linear: value(total, stored or Decimal(), *rest, is_linear=True),
    )  # fmt: skip
    check_fails(lambda seed: maintained_at_random(VIEWS["cancelling values"], seed), HISTORIES)


def test_first_rows_that_are_taken_for_all_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = strategy._first
    monkeypatch.setattr(strategy, "_first", lambda *given: (first(*given)[0], []))
    check_fails(lambda seed: maintained_at_random(VIEWS["extremes"], seed), HISTORIES)


def test_different_values_of_the_changed_side_alone_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value of the other side may vanish from the join, too."""

    def changed_only(work: Any, distinct: Any, found: Any) -> Any:
        return [{path: rows.slice(0, 0) for path, rows in found[0].rows.items()} for _ in range(2)]

    monkeypatch.setattr(adding, "both_versions", changed_only)
    check_fails(lambda seed: maintained_at_random(VIEWS["different values"], seed), HISTORIES)

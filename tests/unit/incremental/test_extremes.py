"""Extremes and numbers of different values over all rows: ADD gives the view's SQL after every epoch, or FULL does.

Those over joins are in test_add_joins.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Final

import pytest

from cdc_views.engine.views.inputs import InputVersions
from cdc_views.engine.views.strategies.adding.terms import Term
from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, UnequalView, tuples
from tests.unit.incremental.played import check_fails, counting_rows, declared, is_kept, kept_by, random_states
from tests.unit.incremental.test_add import BOTH, RENAMED, TABLES

strategy: Final = import_module("cdc_views.engine.views.strategies.adding.extremes")
adding: Final = import_module("cdc_views.engine.views.strategies.adding.add")  # the package has a function of that name
HISTORIES: Final = 100

VIEWS: Final = {
    "smallest and largest": "SELECT min(d) AS least, max(d) AS most, max(h) AS m FROM a",
    "beside sums": "SELECT max(h) AS m, sum(h) AS total, count(h) AS n, count(*) AS c FROM a WHERE s <> 'b'",
    "of expressions": "SELECT max(h + 1) AS m, min(CASE WHEN s = 'a' THEN id END) AS i FROM a",
    "of some rows": "SELECT max(h) AS m, min(d) AS l FROM a WHERE s = 'a'",
    "with a filter": "SELECT max(h) FILTER (WHERE s = 'a') AS m, count(DISTINCT s) FILTER (WHERE h = 1) AS n FROM a",
    "of dates": "SELECT min(x) AS first, max(x) AS last, count(DISTINCT x) AS n FROM f",
    "over both": f"SELECT max(d) AS most, min(h) AS least, count(DISTINCT s) AS n FROM {BOTH}",
    "over one table twice": (
        "SELECT max(d) AS m, count(DISTINCT d) AS n FROM (SELECT d FROM a UNION ALL SELECT d FROM a) q"
    ),
    "different values": "SELECT count(DISTINCT h) AS n FROM a",
    "different values of two columns": "SELECT count(DISTINCT h) AS n, count(DISTINCT s) AS m, count(*) AS c FROM a",
    "different values of two tables": (
        "SELECT count(DISTINCT v) AS n FROM (SELECT h AS v FROM a WHERE s = 'a' UNION ALL SELECT h FROM b) q"
    ),
}
FULL: Final = {
    "SELECT max(s) AS m FROM a": "an extreme of type string",
    "SELECT count(DISTINCT h + 1) AS n FROM a": "not those of a column of each table",
    "SELECT count(DISTINCT (h, s)) AS n FROM a": "not those of a column of each table",
    "SELECT count(DISTINCT v) AS n FROM (SELECT h AS v FROM a UNION ALL SELECT h + 1 FROM b) q": "not those of a",
    "SELECT max(a.h) AS m FROM a FULL JOIN b ON a.h = b.h": "a join",
    f"SELECT max(h) + 1 AS m FROM {RENAMED}": "neither count(*) nor",
}


maintained = partial(kept_by, "ADD", TABLES)


def maintained_at_random(sql: str, seed: int, count: int = 1) -> Memory:
    return maintained(sql, *random_states(TABLES, seed, count))


def rows_of_a(*values: int | None) -> State:
    """The rows of `a` with these values in its column `h`."""
    return {"a": [(number, None, value, "a") for number, value in enumerate(values)], "b": [], "f": []}


def outcome(memory: Memory) -> tuple[list[Any], int]:
    """The rows of the view, and the number of epochs that were left to FULL."""
    return tuples(memory.views["v"].stored.versions[-1]), memory.in_full


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        assert is_kept(maintained_at_random(VIEWS[name], SEED, OF_EACH_VIEW))


@pytest.mark.parametrize("sql", FULL)
def test_other_column_is_maintained_in_full_with_the_reason(sql: str) -> None:
    plan = declared(TABLES, sql).views["v"].plan
    assert plan.strategy == "FULL"
    assert FULL[sql] in plan.reason


LARGEST: Final = "SELECT max(h) AS m FROM a"
OF_SOME: Final = "SELECT max(h) AS m FROM a WHERE s = 'a'"


def test_larger_value_takes_the_place_of_a_removed_largest_value() -> None:
    assert outcome(maintained(LARGEST, rows_of_a(1, 2), rows_of_a(1, 3))) == ([(3,)], 0)


def test_smaller_values_may_go() -> None:
    assert outcome(maintained(LARGEST, rows_of_a(1, 2), rows_of_a(None, 2))) == ([(2,)], 0)


def test_value_that_follows_a_removed_one_is_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = maintained(LARGEST, rows_of_a(*range(100)))
    read = counting_rows(monkeypatch)
    memory.repeats = False
    memory.epoch(rows_of_a(*range(99)))
    assert (outcome(memory), read) == (([(98,)], 0), [1, 1])


def test_more_rows_are_searched_if_a_condition_drops_the_first_ones() -> None:
    before = [(number, None, number, "b") for number in range(20)]
    states = [{"a": [(99, None, 5, "a"), *rest, *before], "b": [], "f": []} for rest in ([(98, None, 6, "a")], [])]
    assert outcome(maintained(OF_SOME, *states)) == ([(5,)], 0)


def test_value_that_follows_after_too_many_rows_is_left_to_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_STEPS", (1, 2))
    before = [(number, None, number, "b") for number in range(20)]
    states = [{"a": [(99, None, 5, "a"), *rest, *before], "b": [], "f": []} for rest in ([(98, None, 6, "a")], [])]
    assert outcome(maintained(OF_SOME, *states)) == ([(5,)], 1)


def test_largest_computed_value_that_is_removed_is_left_to_full() -> None:
    sql = "SELECT max(h + 1) AS m FROM a"
    assert outcome(maintained(sql, rows_of_a(1, 2, 2), rows_of_a(1, 1, 2))) == ([(3,)], 1)


def test_last_value_that_is_removed_leaves_null() -> None:
    assert outcome(maintained(LARGEST, rows_of_a(1, None), rows_of_a(None, None))) == ([(None,)], 0)


def test_first_values_that_cannot_be_searched_for_are_left_to_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "_first_rows", lambda *_, **__: None)
    assert outcome(maintained(LARGEST, rows_of_a(1, 2), rows_of_a(1))) == ([(1,)], 1)


def test_largest_value_of_no_rows_is_null() -> None:
    assert outcome(maintained(LARGEST, rows_of_a(None), rows_of_a(None, None), rows_of_a(None, 1))) == ([(1,)], 0)


# ---- negative controls


def test_largest_value_that_stays_although_removed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_is_beyond", lambda extreme, one, other: (one >= other) == extreme.is_largest)
    check_fails(lambda seed: maintained_at_random(LARGEST, seed), HISTORIES)


def test_first_rows_that_are_taken_for_all_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first = strategy._first
    monkeypatch.setattr(strategy, "_first", lambda *given: (first(*given)[0], []))
    check_fails(lambda seed: maintained_at_random(OF_SOME, seed), HISTORIES)


def test_value_that_follows_among_the_old_rows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    first_rows = Memory._first_rows

    def of_old(memory: Memory, of: InputVersions, *rest: Any, **more: Any) -> Any:
        return first_rows(memory, replace(of, new=of.old), *rest, **more)

    monkeypatch.setattr(Memory, "_first_rows", of_old)
    check_fails(lambda seed: maintained_at_random(LARGEST, seed), HISTORIES)


def test_different_values_that_are_counted_among_changed_rows_alone_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def changed_only(work: Any, distinct: Any, terms: Sequence[Term]) -> Any:
        return [term.rows for term in sorted(terms, key=lambda each: each.is_added)]

    monkeypatch.setattr(adding, "both_versions", changed_only)
    with pytest.raises(UnequalView):
        maintained(VIEWS["different values"], rows_of_a(1, 1), rows_of_a(1, 2))


def test_different_values_of_the_new_version_alone_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = strategy.look_up

    def at_new(work: Any, of: InputVersions, version: int, *rest: Any) -> Any:
        return look_up(work, of, of.new, *rest)

    monkeypatch.setattr(strategy, "look_up", at_new)
    check_fails(lambda seed: maintained_at_random(VIEWS["different values"], seed), HISTORIES)

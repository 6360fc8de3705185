"""PATCH for ORDER BY ... LIMIT over a whole query: it gives the SQL of the view after every epoch, or FULL does."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, Final

import pytest

from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, tuples
from tests.unit.incremental.played import check_fails, declared, is_kept, kept_by, random_states
from tests.unit.incremental.zoo import TABLES

strategy: Final = import_module("cdc_views.engine.views.strategies.patch")  # the package has a function of that name
HISTORIES: Final = 100

VIEWS: Final = {
    "one table": "SELECT id, g, s FROM t ORDER BY g DESC NULLS LAST LIMIT 2",
    "filtered": "SELECT id, upper(s) AS n FROM t WHERE k = 1 OR s IS NULL ORDER BY g NULLS FIRST, id DESC LIMIT 3",
    "join": "SELECT t.id, u.id AS o, u.g FROM t JOIN u ON u.k = t.k ORDER BY u.g NULLS FIRST LIMIT 3",
    "derived tables": (
        "SELECT a.id, b.id AS o FROM (SELECT id, k, g FROM t WHERE g > 0) a, u b WHERE b.k = a.k ORDER BY a.g LIMIT 2"
    ),
    "keys of another column": "SELECT w.id, w.k, t.id AS o FROM w JOIN t ON t.id = w.g ORDER BY w.d LIMIT 2",
}
FULL: Final = {
    "offset": "SELECT id, g FROM t ORDER BY g LIMIT 2 OFFSET 1",
    "distinct": "SELECT DISTINCT id, g FROM t ORDER BY g, id LIMIT 2",
    "groups": "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n, k LIMIT 2",
    "window": "SELECT id, row_number() OVER (ORDER BY id) AS n FROM t ORDER BY id LIMIT 2",
    "left join": "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k ORDER BY t.g LIMIT 2",
    "subquery": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) ORDER BY g LIMIT 2",
    "limit below": "SELECT id, g FROM (SELECT id, g FROM t ORDER BY g LIMIT 2) q",
    "without keys": "SELECT g FROM t ORDER BY g LIMIT 2",
    "union": "SELECT id FROM t UNION SELECT id FROM u ORDER BY id LIMIT 2",
}


maintained = partial(kept_by, "PATCH", TABLES)


def maintained_at_random(sql: str, seed: int | str, count: int = 1) -> Memory:
    return maintained(sql, *random_states(TABLES, seed, count))


def rows_of_t(*values: int) -> State:
    """The rows of `t` with these values in its column `g`."""
    return {"t": [(number, 1, value, "a") for number, value in enumerate(values)]}


def outcome(memory: Memory) -> tuple[list[Any], int]:
    """The rows of the view, and the number of epochs that were left to FULL."""
    return sorted(tuples(memory.views["v"].stored.versions[-1])), memory.in_full


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        assert is_kept(maintained_at_random(VIEWS[name], f"{SEED} {name}", OF_EACH_VIEW))


@pytest.mark.parametrize("name", FULL)
def test_other_view_is_maintained_in_full(name: str) -> None:
    assert declared(TABLES, FULL[name]).views["v"].plan.strategy == "FULL"


LARGEST: Final = "SELECT id, g FROM t ORDER BY g DESC LIMIT 2"


def test_row_that_is_added_before_the_last_one_takes_its_place() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1, 2, 3), rows_of_t(1, 2, 3, 4))) == ([(2, 3), (3, 4)], 0)


def test_row_that_is_added_in_place_of_a_removed_one_is_taken_if_it_is_before_one_that_stays() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1, 2, 3), rows_of_t(1, 2, 0, 4, 5))) == ([(3, 4), (4, 5)], 0)


def test_rows_are_all_stored_if_they_are_fewer_than_the_limit() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1), rows_of_t(), rows_of_t(5))) == ([(0, 5)], 0)


def test_first_row_that_is_removed_is_replaced_in_full() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1, 2, 3), rows_of_t(1, 2, 0))) == ([(0, 1), (1, 2)], 1)


# ---- negative controls


def test_rows_that_are_not_refilled_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_doubtful", lambda work, stored, rows, names: stored.slice(0, 0))
    check_fails(lambda seed: maintained_at_random(LARGEST, seed), HISTORIES, first=14)


def test_row_that_is_taken_to_stay_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_staying", lambda work, stored: stored)
    check_fails(lambda seed: maintained_at_random(LARGEST, seed), HISTORIES, first=14)

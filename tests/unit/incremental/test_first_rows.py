"""PATCH for ORDER BY ... LIMIT over a whole query: it gives the SQL of the view after every epoch, or FULL does."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, Final

import pytest

from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, tuples
from tests.unit.incremental.played import check_fails, declared, is_kept, kept_by, played, random_states
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
    "after others": "SELECT id, g FROM t ORDER BY id DESC LIMIT 2 OFFSET 2",
    "join after others": (
        "SELECT t.id, u.id AS o, u.g FROM t JOIN u ON u.k = t.k ORDER BY u.id DESC, t.id LIMIT 3 OFFSET 1"
    ),
    "star": "SELECT * FROM t WHERE k IS NOT NULL ORDER BY g DESC, s NULLS FIRST LIMIT 2",
    "star of one table": "SELECT t.*, u.s AS z FROM t JOIN u ON u.k = t.k ORDER BY g DESC, z LIMIT 2",
    "first rows of first rows": "SELECT id, g FROM (SELECT id, g FROM t ORDER BY g DESC LIMIT 3) q ORDER BY id LIMIT 1",
    "CTE": "WITH q AS (SELECT t.id, t.g, u.id AS o FROM t JOIN u ON u.k = t.k) SELECT id, o, g FROM q "
    "ORDER BY g DESC NULLS LAST, id LIMIT 3",
    "keys of another column": "SELECT w.id, w.k, t.id AS o FROM w JOIN t ON t.id = w.g ORDER BY w.d LIMIT 2",
}
# An internal view stores all rows of these.
STORED: Final = {
    "counts": "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC, k NULLS FIRST LIMIT 2",
    "without a space": "SELECT id, k FROM t WHERE id IN (SELECT k FROM u) AND g IN (1, 2)ORDER BY id LIMIT 2",
    "keywords": "SELECT DISTINCT k AS `order`, g AS `true` FROM t ORDER BY `order` DESC, `true` LIMIT 2",
    "groups of a CTE": "WITH q AS (SELECT k FROM t) SELECT k, count(*) AS n FROM q GROUP BY k ORDER BY n, k LIMIT 2",
    "CTEs": "WITH q AS (SELECT k, count(*) AS n FROM t GROUP BY k), p AS (SELECT * FROM q WHERE n > 1) "
    "SELECT q.k, p.n, q.n AS m FROM q LEFT JOIN p ON p.k = q.k ORDER BY p.n DESC, q.k LIMIT 2",
    "groups after others": "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n, k LIMIT 2 OFFSET 1",
    "left join after others": (
        "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k ORDER BY o DESC, id LIMIT 2 OFFSET 1"
    ),
    "star": "SELECT * FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) ORDER BY g DESC NULLS LAST LIMIT 2",
    "by number": (
        "SELECT k, g, count(*) AS n FROM t GROUP BY k, g HAVING count(*) > 0 ORDER BY 3, k NULLS FIRST, 2 LIMIT 2"
    ),
    "join": "SELECT t.g, count(*) AS n, count(DISTINCT u.s) AS m FROM t JOIN u ON u.k = t.k WHERE u.id > 0 "
    "GROUP BY t.g ORDER BY m DESC, n DESC, g NULLS FIRST LIMIT 2",
    "left join": (
        "SELECT t.id, count(u.id) AS n FROM t LEFT JOIN u ON u.k = t.k GROUP BY t.id ORDER BY n DESC, id LIMIT 3"
    ),
    "computed": "SELECT t.g + u.g AS s, count(*) AS n FROM t JOIN u ON u.k = t.k GROUP BY t.g + u.g "
    "ORDER BY n DESC, s NULLS FIRST LIMIT 2",
    "of tables' names": (
        "SELECT t.k AS g, t.g AS k, count(*) AS n FROM t GROUP BY t.k, t.g ORDER BY t.g DESC, n LIMIT 2"
    ),
    "groups and exists": "SELECT k, max(g) AS n FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k ORDER BY 1) "
    "GROUP BY k ORDER BY n NULLS FIRST, k NULLS FIRST LIMIT 2",
    "rows of a left join": (
        "SELECT t.id, t.g AS h, u.id AS o FROM t LEFT JOIN u ON u.k = t.k ORDER BY t.g DESC NULLS LAST LIMIT 3"
    ),
    "right join": "SELECT u.id, u.s, t.id AS o FROM t RIGHT JOIN u ON u.k = t.k ORDER BY u.id DESC LIMIT 3",
    "exists": "SELECT id, g FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) ORDER BY g LIMIT 2",
    "not in": "SELECT id, t.g FROM t WHERE id NOT IN (SELECT k FROM w) ORDER BY t.g DESC, id LIMIT 2",
    "value of a subquery": (
        "SELECT id, (SELECT max(u.g) FROM u WHERE u.k = t.k) AS m FROM t ORDER BY m DESC NULLS LAST LIMIT 2"
    ),
    "distinct": "SELECT DISTINCT k, g FROM t WHERE s IS NOT NULL ORDER BY g DESC, k LIMIT 2",
    "union": "SELECT id FROM t UNION SELECT id FROM u ORDER BY id LIMIT 2",
    "union all": "SELECT id, g FROM t UNION ALL SELECT id, 1 FROM u ORDER BY g DESC, id LIMIT 3",
    "union all with a literal": "SELECT 1 AS z, id FROM t UNION ALL SELECT 2, id FROM u ORDER BY id DESC, z LIMIT 2",
    "union all after others": "SELECT id, g FROM t UNION ALL SELECT id, 1 FROM u ORDER BY id DESC LIMIT 2 OFFSET 1",
    "without keys": "SELECT g, k FROM t ORDER BY g DESC, k LIMIT 2",
    "one column without keys": "SELECT g FROM t ORDER BY g DESC LIMIT 2",
    "except": "SELECT id, k FROM t EXCEPT SELECT id, k FROM u ORDER BY k DESC, 1 LIMIT 3",
    "numbered": "SELECT id, g, rank() OVER (PARTITION BY k ORDER BY id) AS r FROM t ORDER BY r DESC, g LIMIT 2",
    "groups of groups": "SELECT q.n, count(*) AS c FROM (SELECT k, count(*) AS n FROM t GROUP BY k) q GROUP BY q.n "
    "ORDER BY q.n DESC LIMIT 2",
}
FULL: Final = {
    "offset where NULL is first": "SELECT id, g FROM t ORDER BY g LIMIT 2 OFFSET 1",
    "offset without a limit": "SELECT id, g FROM t ORDER BY g DESC OFFSET 1",
    "computed offset": "SELECT id, g FROM t ORDER BY g DESC LIMIT 2 OFFSET 1 + 1",
    "groups by a value that is not selected": "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY max(g), k LIMIT 2",
    "groups by an expression": "SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n + 1, k LIMIT 2",
    "groups without their columns": "SELECT count(*) AS n FROM t GROUP BY k ORDER BY n LIMIT 2",
    "groups in another order of texts": (
        "SELECT s COLLATE NOCASE AS z, s, count(*) AS n FROM t GROUP BY s ORDER BY z, s LIMIT 1"
    ),
    "window": "SELECT id, row_number() OVER (ORDER BY id) AS n FROM t ORDER BY id LIMIT 2",
    "left join": "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k ORDER BY t.g LIMIT 2",
    "subquery": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) ORDER BY g LIMIT 2",
    "without keys, by some columns": "SELECT g, k FROM t ORDER BY g LIMIT 2",
    "without keys, where NULL is first": "SELECT g FROM t ORDER BY g LIMIT 2",
    "union all, where NULL is first": "SELECT id FROM t UNION ALL SELECT id FROM u ORDER BY id LIMIT 2",
    "union all by texts": "SELECT k, s FROM t UNION ALL SELECT g, s FROM u ORDER BY s DESC, k NULLS FIRST LIMIT 3",
    "left join after others, where NULL is first": (
        "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k ORDER BY o, id LIMIT 2 OFFSET 1"
    ),
    "ordered by a column of a name that Spark makes up": (
        "SELECT id, CAST(CAST(k AS bigint) AS string) FROM t WHERE id IN (SELECT k FROM u) ORDER BY k, id LIMIT 1"
    ),
    "ordered by a value that is selected": (
        "SELECT id, g + 1 AS h FROM t WHERE id IN (SELECT k FROM u) ORDER BY g + 1, id LIMIT 2"
    ),
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


@pytest.mark.parametrize("name", STORED)
def test_first_stored_rows_equal_their_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        assert maintained_at_random(STORED[name], f"{SEED} {name}", 2 * OF_EACH_VIEW).in_full == 0


@pytest.mark.parametrize("name", FULL)
def test_other_view_is_maintained_in_full(name: str) -> None:
    assert declared(TABLES, FULL[name]).views["v"].plan.strategy == "FULL"


def test_next_rows_are_not_searched_for_by_a_name_that_spark_may_have_made_up() -> None:
    sql = "SELECT id, CAST(k AS string) FROM t ORDER BY k LIMIT 1"  # by texts: 10 comes before 9
    patch = declared(TABLES, sql).views["v"].plan.patch
    assert patch is not None
    assert patch.order is None


# Over a view; the internal view with all rows is one over that view.
OVER_VIEWS: Final = {
    "groups": "SELECT g, count(*) AS c FROM below GROUP BY g ORDER BY c DESC, g LIMIT 2",
    "joined groups": "SELECT below.g, count(*) AS c FROM below JOIN u ON u.k = below.k GROUP BY below.g ORDER BY 2, 1 "
    "LIMIT 2",
    "a total": "SELECT id FROM u WHERE k > (SELECT max(below.k) FROM below JOIN w ON w.k = below.k)",
    "joined by a computed column": "SELECT q.c, u.id FROM (SELECT k, count(*) AS c FROM below GROUP BY k) q "
    "JOIN u ON u.g = q.c",
}
BELOW: Final = {
    "rows": "SELECT id, k, g FROM t WHERE s IS NOT NULL",
    "groups": "SELECT k, max(g) AS g, count(*) AS id FROM t GROUP BY k",
    "a bag": "SELECT k, g, 1 AS id FROM t",
}


@pytest.mark.parametrize("below", BELOW)
@pytest.mark.parametrize("name", OVER_VIEWS)
def test_view_with_an_internal_view_over_a_view_equals_its_sql_after_every_epoch(name: str, below: str) -> None:
    with naming_the_seed():
        memory = Memory(TABLES)
        memory.declare({"below": BELOW[below], "v": OVER_VIEWS[name]})
        assert memory.views["v"].plan.internal_views
        played(memory, random_states(TABLES, f"{SEED} {name} {below}", OF_EACH_VIEW))


LARGEST: Final = "SELECT id, g FROM t ORDER BY g DESC LIMIT 2"


def test_row_that_is_added_before_the_last_one_takes_its_place() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1, 2, 3), rows_of_t(1, 2, 3, 4))) == ([(2, 3), (3, 4)], 0)


def test_row_that_is_added_in_place_of_a_removed_one_is_taken_if_it_is_before_one_that_stays() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1, 2, 3), rows_of_t(1, 2, 0, 4, 5))) == ([(3, 4), (4, 5)], 0)


def test_rows_are_all_stored_if_they_are_fewer_than_the_limit() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1), rows_of_t(), rows_of_t(5))) == ([(0, 5)], 0)


def test_next_rows_of_a_star_are_searched_for_by_a_column_of_its_name() -> None:
    states = rows_of_t(1, 2, 3, 4, 5), rows_of_t(1, 2, 3, 4, 0)
    found, in_full = outcome(maintained("SELECT * FROM t ORDER BY g DESC LIMIT 2", *states))
    assert ([row[2] for row in found], in_full) == ([3, 4], 0)


def test_rows_after_others_are_searched_for_in_each_epoch() -> None:
    states = rows_of_t(1, 2, 3, 4, 5, 6, 7), rows_of_t(1, 2, 3, 4, 5, 8, 7), rows_of_t(1, 2, 3, 4, 5)
    memory = maintained(f"{LARGEST} OFFSET 1", *states[:2])
    assert outcome(memory) == ([(4, 5), (6, 7)], 0)
    assert outcome(played(memory, states[2:])) == ([(2, 3), (3, 4)], 0)


def test_first_row_that_is_removed_is_replaced_by_the_next_values() -> None:
    assert outcome(maintained(LARGEST, rows_of_t(1, 2, 3), rows_of_t(1, 2, 0))) == ([(0, 1), (1, 2)], 0)


@pytest.mark.parametrize(
    ("order", "left"),
    [
        ("g", [(0, 1), (1, 2)]),  # NULL would come first
        ("g NULLS LAST", [(0, 1), (1, 2)]),
        ("s, g NULLS LAST", [(0, 1), (1, 2)]),
        ("id", [(0, 1), (1, 2)]),
    ],
)
def test_next_rows_are_searched_for_by_numbers_after_which_null_comes(order: str, left: list[tuple[int, int]]) -> None:
    sql = f"SELECT id, g FROM t ORDER BY {order} LIMIT 2"
    memory = maintained(sql, rows_of_t(1, 2, 3), {"t": [(9, 1, 0, "a"), *rows_of_t(1, 2, 3)["t"][1:]]}, rows_of_t(1, 2))
    rows, in_full = outcome(memory)
    assert (rows, in_full > 0) == (left, order in ("g", "s, g NULLS LAST"))


def test_next_rows_of_columns_after_a_star_are_those_of_their_order() -> None:
    rows = [(0, 9, 1, "a"), (1, 1, 3, "a"), (2, 1, 2, "a")]
    memory = maintained(
        "SELECT *, g AS y FROM t ORDER BY y DESC LIMIT 1", {"t": rows}, {"t": [*rows[::2], (1, 1, 0, "a")]}
    )
    assert [row[-1] for row in outcome(memory)[0]] == [2]


def test_next_rows_of_a_join_are_searched_for_by_one_of_its_tables() -> None:
    sql = "SELECT t.id, t.g, u.id AS o FROM t JOIN u ON u.k = t.k WHERE u.id < 9 ORDER BY t.g DESC LIMIT 1"
    u = [(7, 1, 1, "a"), (9, 1, 1, "a")]
    assert outcome(maintained(sql, {**rows_of_t(5, 4, 3), "u": u}, {**rows_of_t(1, 4, 4), "u": u}))[1] == 0


def test_rows_that_tie_beyond_what_is_searched_for_are_left_to_full() -> None:
    many = [1] * 600
    assert outcome(maintained(LARGEST, rows_of_t(3, 3, *many), rows_of_t(1, 1, *many))) == ([(0, 1), (1, 1)], 1)


def test_stored_rows_are_searched_for_where_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "is_small", lambda self, path: not path.startswith("_cv_"))
    sql = "SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 1"
    memory = maintained(sql, rows_of_t(1, 1, 1, 2, 2, 3), rows_of_t(1, 5, 4, 2, 2, 3))
    assert outcome(memory) == ([(2, 2)], 0)


def test_order_of_a_column_of_the_result_is_completed_where_its_table_has_one_of_this_name() -> None:
    """The result's g is the table's k: rows that tie in it may differ in the other column."""
    sql = "SELECT t.k AS g, t.g AS k, count(*) AS n FROM t GROUP BY t.k, t.g ORDER BY n, g LIMIT 1"
    before, after = [(1, 2, 1, "a")], [(1, 2, 1, "a"), (2, 2, 0, "a")]
    assert outcome(maintained(sql, {"t": before}, {"t": after})) == ([(2, 0, 1)], 0)


def test_first_group_that_is_removed_is_replaced_by_the_next_of_all() -> None:
    sql = "SELECT g, count(*) AS n FROM t GROUP BY g ORDER BY n DESC, g LIMIT 1"
    memory = maintained(sql, rows_of_t(1, 1, 1, 2, 2, 3), rows_of_t(1, 5, 4, 2, 2, 3))
    assert outcome(memory) == ([(2, 2)], 0)


# ---- negative controls


def test_changed_groups_that_are_not_merged_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_rows_behind", lambda work, stored: [])
    check_fails(lambda seed: maintained_at_random(STORED["counts"], seed), HISTORIES)


def test_rows_that_are_not_refilled_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_doubtful", lambda work, stored, rows, names: stored.slice(0, 0))
    check_fails(lambda seed: maintained_at_random(LARGEST, seed), HISTORIES, first=14)


def test_rows_of_the_last_value_that_are_taken_for_all_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_without_last", lambda rows, order: rows)
    sql = "SELECT id, g FROM t ORDER BY g DESC NULLS LAST, id DESC LIMIT 1"
    check_fails(lambda seed: maintained_at_random(sql, seed), HISTORIES)


def test_row_that_is_taken_to_stay_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_staying", lambda work, stored: stored)
    check_fails(lambda seed: maintained_at_random(LARGEST, seed), HISTORIES, first=14)

"""Named views over random histories, and the histories that once gave a wrong view."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import Any, Final

import pytest

from tests.samples import EPOCHS, EXAMPLES
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, Row, State, tuples
from tests.unit.incremental.played import declared, is_kept, played
from tests.unit.incremental.random_tables import Draws, small_changes
from tests.unit.incremental.zoo import TABLES, VIEWS, maintained, maintained_at_random

LONG: Final = max(2, EXAMPLES // 20)


def rows(memory: Memory) -> list[Row]:
    return sorted(tuples(memory.views["v"].stored.versions[-1]), key=repr)


def state(**tables: Sequence[tuple[Any, ...]]) -> State:
    return tables


@pytest.mark.parametrize("name", VIEWS)
def test_named_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        maintained_at_random(VIEWS[name], SEED)


@pytest.mark.parametrize(
    "name", ["left joins in a row", "full join by three conditions", "except", "union all of joins"]
)
def test_view_is_empty_after_every_row_is_deleted(name: str) -> None:
    full = state(t=[(1, 1, 1, "a"), (2, 2, 1, "b")], u=[(1, 1, 1, "a")], w=[(1, 1, 1, Decimal("1.00"))])
    assert rows(maintained(VIEWS[name], full, state())) == []


def test_one_batch_gives_the_same_rows_as_single_changes() -> None:
    steps = [
        state(t=[(1, 1, 1, "a")]),
        state(t=[(1, 1, 1, "a")], u=[(1, 1, 2, "a")]),
        state(t=[(1, 2, 1, "a")], u=[(1, 1, 2, "a")]),
        state(t=[(1, 2, 1, "a"), (2, 1, 1, "b")], u=[(1, 1, 2, "a"), (2, 2, 2, None)]),
    ]
    sql = VIEWS["full join by three conditions"]
    assert rows(maintained(sql, *steps)) == rows(maintained(sql, steps[-1]))


# ---- regressions


def test_full_join_restricts_one_side_so_no_match_is_left_out() -> None:
    sql = "SELECT b.g, b.k AS o, a.k FROM t a FULL JOIN t b ON a.k = b.id"
    maintained(sql, state(t=[(4, 1, 2, None), (2, 2, 2, None)]), state(t=[(4, 2, None, None), (2, 2, 2, None)]))


def test_full_join_with_a_further_condition_takes_each_row_from_its_own_query() -> None:
    sql = "SELECT t.id, u.id AS o FROM t FULL JOIN u ON t.k = u.k AND t.g <> u.g"
    before = state(t=[(1, 1, 1, None), (2, 1, 2, None)], u=[(1, 1, 1, None)])
    maintained(sql, before, state(t=[(1, 1, 1, "a"), (2, 1, 2, None)], u=[(1, 1, 1, "a")]))


def test_merged_column_of_a_full_join_over_another_one_is_no_handle() -> None:
    inner = "t FULL JOIN (SELECT DISTINCT g FROM w) q ON t.g = q.g AND q.g = t.id"
    sql = f"SELECT id, count(*) AS n FROM {inner} FULL JOIN (SELECT id, s FROM u) r USING (id) GROUP BY id"
    assert "GROUP BY" in plan_of(sql)


def test_bag_with_two_handles_has_each_row_as_often_as_its_sql() -> None:
    sql = "SELECT u.k FROM t FULL JOIN w ON w.id = t.g JOIN u ON u.k = t.g GROUP BY t.k, u.k"
    full = state(t=[(1, 0, 1, None), (2, 2, 1, None)], u=[(1, 1, 1, None)], w=[(1, 0, 1, None)])
    maintained(sql, full, state(), full)


def test_key_of_nulls_of_a_full_join_is_computed_in_full() -> None:
    sql = "SELECT t.g, u.g AS h FROM t FULL JOIN u ON t.k = u.k"
    memory = maintained(sql, state(t=[(1, 1, None, None)], u=[(1, 2, 3, None)]), state(u=[(1, 2, 3, None)]))
    assert memory.in_full > 0


def test_whole_numbers_of_two_widths_in_the_branches_of_a_union_are_united() -> None:
    sql = "SELECT id, k FROM t UNION SELECT id, k FROM u"
    both = state(t=[(1, 1, 1, None)], u=[(1, 1, 1, None), (2, None, 1, None)])
    maintained(sql, both, state(t=[(3, 1, 1, None)], u=[(2, 1, 1, None)]))


def test_column_that_must_equal_two_others_is_looked_up_once() -> None:
    sql = "SELECT t.id FROM t LEFT JOIN u ON u.id = t.id AND t.k = u.id"
    maintained(sql, state(t=[(1, 1, 1, None), (2, 1, 1, None)]), state(t=[(1, 1, 1, None)], u=[(1, 1, 1, None)]))


def test_window_over_branches_finds_the_partition_in_all_of_them() -> None:
    inner = "SELECT id, k, g FROM t UNION ALL SELECT id, k, g FROM u"
    ranked = f"SELECT id, k, g, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM ({inner}) z"
    sql = f"SELECT q.g, q.id, q.r, w.d FROM ({ranked}) q LEFT JOIN w ON w.k = q.k"
    before = state(t=[(1, 1, 1, None)], u=[(2, 2, 1, None)], w=[(1, 2, 0, Decimal("1.00"))])
    maintained(sql, before, {**before, "t": []})


def plan_of(sql: str) -> str:
    memory = Memory(TABLES)
    memory.declare({"v": sql})
    return memory.views["v"].plan.reason


def test_not_in_of_several_columns_needs_all_of_them_without_null_and_of_the_same_types() -> None:
    in_keys = "SELECT id FROM t WHERE {} AND (id, k) NOT IN (SELECT id, {} FROM w WHERE d IS NOT NULL)"
    assert "affected (id)" in plan_of(in_keys.format("k IS NOT NULL", "k"))
    assert "may be NULL" in plan_of(in_keys.format("k > 0", "k"))
    assert "without an equality" in plan_of(in_keys.format("k IS NOT NULL", "d"))


def test_null_for_want_of_a_match_is_not_looked_up_where_null_equals_null() -> None:
    optional = "t LEFT JOIN u ON u.k = t.k"
    joined = f"SELECT t.id, w.id AS o, w.k FROM {optional} JOIN w ON w.g IS NOT DISTINCT FROM u.g"
    assert "no equality of columns" in plan_of(joined)
    below = f"SELECT q.id, w.id AS o, w.k FROM (SELECT t.id, u.g FROM {optional}) q JOIN w ON w.g <=> q.g"
    assert "no equality of columns" in plan_of(below.replace("<=>", "IS NOT DISTINCT FROM"))
    correlated = f"SELECT t.id FROM {optional} WHERE EXISTS (SELECT 1 FROM w WHERE w.g IS NOT DISTINCT FROM u.g)"
    assert "without an equality" in plan_of(correlated)


def test_side_of_a_full_join_with_using_is_no_handle() -> None:
    assert "no column, unchanged" in plan_of("SELECT t.k, t.id FROM t FULL JOIN u USING (k)")


def test_star_of_a_table_with_merged_columns_is_not_by_keys() -> None:
    assert "columns of its result are not all known" in plan_of("SELECT t.*, w.d FROM t JOIN w USING (k)")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM (t JOIN u ON u.k = t.k) AS q",
        "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM (u) AS q WHERE q.k = t.g)",
        "SELECT count(*) AS n FROM (SELECT k FROM t UNION ALL SELECT k FROM (u) AS q) p",
        "SELECT t.id, u.id AS o, w.id AS p FROM t JOIN (u JOIN w USING (k)) ON t.k = u.k",
        "SELECT t.id, u.id AS o, w.id AS p FROM t LEFT JOIN (u JOIN w ON w.g = u.g) USING (s)",
        "SELECT t.id, u.id AS o, w.id AS p, x.i FROM t JOIN u USING (k) JOIN (w JOIN (SELECT id AS i FROM t) x "
        "ON k = i) ON w.g = t.g",
        "SELECT t.id, w.id AS p, x.i FROM (t JOIN u USING (k)), (w JOIN (SELECT id AS i FROM t) x ON k = i) "
        "WHERE w.g = t.g",
    ],
)
def test_table_in_parentheses_is_not_overlooked(sql: str) -> None:
    assert "parentheses" in plan_of(sql)


def test_name_in_having_may_be_that_of_a_selected_column() -> None:
    assert "outside of WHERE" in plan_of("SELECT g, max(id) AS k FROM t GROUP BY g HAVING k IN (SELECT u.k FROM u)")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM t WHERE id NOT IN (SELECT k FROM u)",
        "SELECT id FROM t WHERE k NOT IN (SELECT id FROM u)",
        "SELECT id FROM t WHERE k NOT IN (SELECT k FROM w) OR k IS NOT NULL",
        "SELECT t.id FROM t LEFT JOIN u ON u.k = t.k WHERE u.id NOT IN (SELECT id FROM w)",
        "SELECT id FROM t WHERE id NOT IN (SELECT u.id FROM w LEFT JOIN u ON u.k = w.k)",
        "SELECT id FROM t WHERE id NOT IN (SELECT id FROM u UNION ALL SELECT k FROM u)",
    ],
)
def test_not_in_over_values_that_may_be_null_is_computed_in_full(sql: str) -> None:
    assert "NOT IN with columns that may be NULL" in plan_of(sql)


def test_key_of_a_view_may_be_null() -> None:
    memory = Memory(TABLES)
    groups = "SELECT k, count(*) AS c FROM u GROUP BY k"
    memory.declare({"by_k": groups, "v": "SELECT id FROM t WHERE id NOT IN (SELECT k FROM by_k)"})
    assert "NOT IN with columns that may be NULL" in memory.views["v"].plan.reason


def test_ctes_that_are_each_used_twice_have_a_limit() -> None:
    ctes = ["a0 AS (SELECT id, k FROM t)"]
    ctes += [f"a{n} AS (SELECT x.id, y.k FROM a{n - 1} x JOIN a{n - 1} y ON x.id = y.id)" for n in range(1, 7)]
    assert "places name a table" in plan_of(f"WITH {', '.join(ctes)} SELECT id, k FROM a6")


def test_rows_of_a_bag_with_the_same_hash_are_computed_in_full() -> None:
    memory = Memory(TABLES, weak_hash=True)
    memory.declare({"v": "SELECT k, g FROM t"})
    for count in range(1, 6):
        memory.epoch({"t": [(n, n, n, None) for n in range(count)], "u": [], "w": []})
    assert memory.in_full > 0
    assert memory.by_keys > 0


def test_join_of_texts_that_a_collation_makes_equal_is_computed_in_full() -> None:
    sql = "SELECT t.id, u.id AS o FROM t JOIN u ON t.s COLLATE NOCASE = u.s COLLATE NOCASE"
    assert "no equality of columns" in plan_of(sql)


@pytest.mark.parametrize("number", range(LONG))
def test_view_equals_its_sql_through_a_long_history_of_small_changes(number: int) -> None:
    with naming_the_seed():
        random = Random(f"{SEED} {number}")
        name = random.choice(sorted(VIEWS))
        # A history may have no epoch that a full join is kept in by its changes: all its keys are NULL there.
        histories = (small_changes(Draws(random.randrange), TABLES, EPOCHS) for _ in range(3))
        assert any(is_kept(maintained(VIEWS[name], *states)) for states in histories), name


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.id, u.id AS o FROM t JOIN u ON u.id = t.k "
        "QUALIFY row_number() OVER (PARTITION BY t.g ORDER BY t.s, t.id) = 1",
        "SELECT id, o FROM (SELECT t.id, u.id AS o, row_number() OVER (PARTITION BY t.g ORDER BY t.s, t.id) AS n "
        "FROM t JOIN u ON u.id = t.k) q WHERE n <= 2",
        "SELECT t.id, u.id AS o FROM t JOIN u ON u.id = t.k "
        "QUALIFY row_number() OVER (PARTITION BY t.g, t.k ORDER BY t.s, t.id) <= 2",
    ],
    ids=["one column", "below a subquery", "two columns"],
)
def test_first_rows_of_partitions_whose_columns_are_not_selected_are_refilled(sql: str) -> None:
    rows = [(1, 1, 5, "a"), (2, 1, 5, "b"), (3, 1, 5, "c"), (4, 1, 6, "a")]
    later = [(1, 1, 5, "z"), *rows[1:]]
    memory = declared(TABLES, sql)
    assert memory.views["v"].plan.strategy == "KEYS"
    played(memory, [{"t": each, "u": [(1, 1, 1, "a")]} for each in (rows, later, later[1:], later[2:])])


@pytest.mark.parametrize(
    "condition",
    [
        "id NOT IN ((SELECT id FROM u WHERE s = 'x'), 3)",
        "(id IN ((SELECT id FROM u WHERE s = 'x'), 4)) IS NOT NULL",
    ],
)
def test_query_in_the_list_of_an_in_is_one_value(condition: str) -> None:
    rows = [(1, 1, 1, "a"), (2, 1, 1, "a")]
    memory = declared(TABLES, f"SELECT id, g FROM t WHERE {condition}")
    assert memory.views["v"].plan.strategy == "FULL"
    played(memory, [{"t": rows[:count], "u": [(5, 1, 1, "x")]} for count in (1, 2)])

"""Subqueries with one row that does not depend on the rows around them: KEYS while their values stay, else FULL."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from random import Random
from typing import Any, Final

import pytest

from tests.samples import EPOCHS, EXAMPLES
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, Row, State, tuples
from tests.unit.incremental.played import check_fails, declared, kept_by, played, random_states
from tests.unit.incremental.random_tables import Draws, small_changes
from tests.unit.incremental.zoo import TABLES

strategy: Final = import_module("cdc_views.engine.views.strategies.keys")  # the package has a function of that name
AVERAGE: Final = "SELECT id, k FROM t WHERE k >= (SELECT avg(k) FROM t)"

VIEWS: Final = {
    "average of its own table": AVERAGE,
    "largest of another table": "SELECT id, g FROM t WHERE k = (SELECT max(k) FROM u)",
    "two subqueries": "SELECT id, k FROM t WHERE k > (SELECT min(k) FROM u) AND k <= (SELECT avg(k) FROM w)",
    "one text twice": "SELECT id, k FROM t WHERE k > (SELECT max(k) FROM u) OR g = (SELECT max(k) FROM u)",
    "selected": "SELECT id, (SELECT count(*) FROM u WHERE s = 'a') AS n, k FROM t",
    "sum with an alias": "SELECT id, k + (SELECT sum(k) AS total FROM u) AS m FROM t",
    "in a condition of a join": "SELECT t.id, u.id AS o FROM t JOIN u ON u.k = t.k AND u.g < (SELECT max(k) FROM w)",
    "beside a left join": "SELECT t.id, u.id AS o FROM t LEFT JOIN u ON u.k = t.k WHERE t.g < (SELECT max(g) FROM u)",
    "in HAVING": "SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > (SELECT min(k) FROM u)",
    "above a group": "SELECT k, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) q WHERE n < (SELECT sum(k) FROM u)",
    "in a CTE that is named twice": "WITH c AS (SELECT id, k FROM t WHERE k < (SELECT max(k) FROM u))"
    " SELECT a.id, b.k FROM c a JOIN c b ON a.id = b.id",
    "in a branch": "SELECT id FROM t WHERE k > (SELECT max(k) FROM u) UNION ALL SELECT id FROM u",
    "in a correlated subquery": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.g >= "
    "(SELECT min(g) FROM w))",
    "in a window": "SELECT id, g, rank() OVER (PARTITION BY g ORDER BY k - (SELECT max(k) FROM u)) AS place FROM t",
    "IN": "SELECT id FROM t WHERE k IN (SELECT max(k) FROM u)",
    "beside an expression": "SELECT upper(s) AS up, count(*) AS n FROM t WHERE k < (SELECT max(k) FROM u) "
    "GROUP BY upper(s)",
    "LATERAL": "SELECT id, l.n FROM t CROSS JOIN LATERAL (SELECT count(*) AS n FROM u WHERE s IS NULL) l",
    "LATERAL with names of its own": "SELECT id, l.`a b` FROM t, LATERAL (SELECT max(k) AS m FROM u) AS l(`a b`)",
    "LATERAL of an odd name": "SELECT id, l.`a b` FROM t, LATERAL (SELECT sum(k) AS `a b` FROM u) AS l",
    "cross join": "SELECT t.id, q.m FROM t CROSS JOIN (SELECT max(k) AS m FROM u) q",
    "cross join with an equality": "SELECT t.id FROM t CROSS JOIN (SELECT max(k) AS m FROM u) q WHERE t.k = q.m",
    "comma before the table": "SELECT t.id, m FROM (SELECT sum(k) AS m FROM u WHERE g > 0) q, t WHERE t.k < m",
    "join by its value": "SELECT t.id, t.g FROM t JOIN (SELECT min(g) AS m FROM u) q ON t.k = q.m AND t.g > q.m",
    "several values": "SELECT t.id, q.a, q.n, w.id AS o FROM t JOIN w ON w.k = t.k CROSS JOIN "
    "(SELECT avg(g) AS a, max(k) AS m, sum(k) FILTER (WHERE s = 'a') AS n FROM u -- of all\n) q WHERE w.g <= q.m",
    "names of the derived table": "SELECT id, c + d AS e FROM t, (SELECT count(*) AS n, sum(k) AS m FROM u) AS q(c, d)",
    "left join": "SELECT t.id, q.m FROM t LEFT JOIN (SELECT max(k) AS m FROM u) q ON q.m = t.k",
    "left join with a range": "SELECT t.id, t.g, q.m FROM t LEFT JOIN (SELECT max(k) AS m FROM u) q ON q.m < t.k",
    "semi join": "SELECT id, g FROM t SEMI JOIN (SELECT min(k) AS m, max(k) AS n FROM u) q ON k BETWEEN q.m AND q.n",
    "anti join": "SELECT id, g FROM t ANTI JOIN (SELECT max(k) AS m FROM u) q ON t.k = q.m",
    "CTE that is named twice in FROM": "WITH c AS (SELECT max(k) AS m FROM u) SELECT t.id, a.m, b.m AS n FROM t, c a, "
    "c b WHERE t.k <= a.m",
    "CTE with names of its own": "WITH c(a) AS (SELECT max(k) AS m FROM u) SELECT t.id FROM t JOIN c ON c.a = t.k",
    "cross join below a group": "SELECT t.g, count(*) AS n, max(q.m) AS m FROM t CROSS JOIN (SELECT max(k) AS m "
    "FROM u) q WHERE t.k < q.m GROUP BY t.g",
    "cross join in a correlated subquery": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM w CROSS JOIN "
    "(SELECT max(k) AS m FROM u) q WHERE w.k = t.k AND w.g < q.m)",
    "cross join before a right join": "SELECT t.id, w.id AS o, w.k FROM (SELECT max(k) AS m FROM u) q, t RIGHT JOIN w "
    "ON w.k = t.k WHERE w.g < q.m",
    "exists": "SELECT id, k FROM t WHERE EXISTS (SELECT 1 FROM u)",
    "not exists with a condition": "SELECT id, k FROM t WHERE NOT EXISTS (SELECT u.id, g FROM u WHERE k > 1)",
    "exists as a value": "SELECT id, EXISTS (SELECT * FROM u AS z WHERE z.s = 'a' -- few\n) AS has FROM t",
    "exists in a disjunction": "SELECT id FROM t WHERE (EXISTS (SELECT 'x' AS y FROM u WHERE k = 2)) OR k IN "
    "(SELECT k FROM w)",
    "exists beside an aggregate": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE k = 2) AND k < "
    "(SELECT max(k) FROM u)",
    "exists in a CTE that is named twice": "WITH c AS (SELECT id, k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE k = 1))"
    " SELECT a.id, b.k FROM c a JOIN c b ON a.id = b.id",
    "an expression of a total": "SELECT id, k FROM t WHERE k > (SELECT max(k) - 1 FROM u)",
    "an expression of several": "SELECT id, (SELECT coalesce(sum(k) -- of all\n, 0) + count(*) * 2 AS n FROM u) AS n "
    "FROM t",
    "expressions in FROM": "SELECT t.id, q.m, q.n FROM t JOIN (SELECT max(k) + 1 AS m, coalesce(sum(g) FILTER "
    "(WHERE s = 'a'), max(k)) AS n FROM u) q ON q.m >= t.k",
    "a value of a row": "SELECT id, (SELECT s FROM u WHERE id = 1) AS up FROM t",
    "an expression of a row": "SELECT id, g FROM t WHERE k + 1 > (SELECT k + coalesce(g, 1) AS m FROM u AS z "
    "WHERE id = 2)",
    "a value of the first row": "SELECT id, g FROM t WHERE g = (SELECT g FROM u ORDER BY g DESC NULLS LAST LIMIT 1)",
    "a value that is ordered by its alias": "SELECT t.id, (SELECT k AS id FROM u ORDER BY id LIMIT 1) AS x FROM t",
    "a value under the name of its table": (
        "SELECT t.id, (SELECT u.k AS u FROM u ORDER BY s NULLS FIRST LIMIT 1) AS x FROM t"
    ),
    "a value of one of the first rows": (
        "SELECT id, (SELECT upper(s) AS x FROM u WHERE k > 0 ORDER BY g DESC NULLS LAST LIMIT 1) AS up FROM t"
    ),
    "a value of a row, above a group": "SELECT k, count(*) AS n FROM t GROUP BY k HAVING count(*) > (SELECT g FROM u "
    "WHERE u.id = 1)",
    "a join": "SELECT id, k FROM t WHERE k > (SELECT max(u.k) - 1 FROM u JOIN w ON u.k = w.k AND w.g > 0)",
    "a left join": "SELECT id, (SELECT count(w.id) FROM u LEFT JOIN w USING (k) WHERE u.s = 'a') AS n FROM t",
    "a self join in FROM": "SELECT t.id, q.m FROM t JOIN (SELECT max(a.g) AS m, count(*) AS n FROM u a, u b "
    "WHERE a.k = b.id) q ON q.m >= t.k",
    "exists over a join": "SELECT id FROM t WHERE NOT EXISTS (SELECT u.id FROM u JOIN w ON w.k = u.k AND w.g > u.g)",
    "a FROM before that of the table": "SELECT id, (SELECT max(k) IS DISTINCT FROM 1 FROM u) AS a, "
    "(SELECT k IS NOT DISTINCT FROM g FROM u WHERE id = 1) AS b FROM t",
    "with a comment": "SELECT id FROM t WHERE k > ((SELECT sum(k) -- of all\n FROM u WHERE u.s = '(a' ))",
}
FULL: Final = {
    "HAVING": "SELECT id FROM t WHERE k > (SELECT max(k) FROM u HAVING count(*) > 1)",
    "groups": "SELECT id FROM t WHERE k > (SELECT max(k) FROM u GROUP BY g)",
    "rows": "SELECT id FROM t WHERE k NOT IN (SELECT k FROM u WHERE id = 1)",
    "the number of the first rows": "SELECT id FROM t WHERE k > (SELECT count(*) FROM u ORDER BY 1 LIMIT 1)",
    "whether there are first rows": "SELECT id FROM t WHERE EXISTS (SELECT k FROM u ORDER BY id LIMIT 1)",
    "a row of all columns": "SELECT id FROM t WHERE k > (SELECT * FROM (SELECT k FROM u WHERE id = 1) q)",
    "a function that may be an aggregate": "SELECT id FROM t WHERE k > (SELECT bit_xor(k) FROM u WHERE id = 1)",
    "names around it": "SELECT id FROM t WHERE k > (SELECT max(u.k + t.g) FROM u)",
    "a join without an equality": "SELECT id FROM t WHERE k > (SELECT max(u.k) FROM u CROSS JOIN w)",
    "a value of a join": "SELECT id FROM t WHERE k > (SELECT u.k FROM u JOIN w ON u.k = w.k WHERE u.id = 1)",
    "a join with a CTE": (
        "WITH c AS (SELECT k FROM w) SELECT id FROM t WHERE k > (SELECT max(u.k) FROM u JOIN c ON u.k = c.k)"
    ),
    "a CTE": "WITH u AS (SELECT 1 AS k, 2 AS j FROM w) SELECT id FROM t WHERE k > (SELECT max(k) FROM u)",
    "a CTE of a name like a table": "WITH u AS (SELECT k FROM t) SELECT id FROM t WHERE k > (SELECT max(k) FROM u)",
    "another subquery": "SELECT id FROM t WHERE k > (SELECT max(k) FROM u WHERE g > (SELECT min(g) FROM w))",
    "text": "SELECT id FROM t WHERE s > (SELECT max(s) FROM u)",
    "an expression of another aggregate": "SELECT id FROM t WHERE k > (SELECT max(k) - bit_xor(k) FROM u)",
    "FROM before SELECT": "SELECT id FROM t WHERE k > (FROM u SELECT max(k))",
    "other names of the columns": "SELECT id FROM t WHERE k > (SELECT b FROM u AS z(a, b, c, e) WHERE a = 1)",
    "a collation": "SELECT id FROM t WHERE s = (SELECT s COLLATE NOCASE FROM u WHERE id = 1)",
    "a collation of the values that count": (
        "SELECT id FROM t WHERE k > (SELECT count(DISTINCT s COLLATE NOCASE) + 1 FROM u)"
    ),
    "EXISTS": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k > t.k)",
    "EXISTS over an aggregate": "SELECT id FROM t WHERE EXISTS (SELECT bool_or(k > 1) FROM u)",
    "EXISTS over groups": "SELECT id FROM t WHERE EXISTS (SELECT k FROM u GROUP BY k HAVING count(*) > 1)",
    "EXISTS over a join with names around it": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u JOIN w ON w.k > t.k)",
    "right join": "SELECT t.id, q.m FROM t RIGHT JOIN (SELECT max(k) AS m FROM u) q ON q.m = t.k",
    "full join": "SELECT t.id, q.m FROM t FULL JOIN (SELECT max(k) AS m FROM u) q ON q.m = t.k",
    "derived table without a name": "SELECT t.id FROM t, (SELECT max(k) FROM u) AS q WHERE t.k = 1",
    "derived table of groups": "SELECT t.id FROM t, (SELECT max(k) AS m FROM u GROUP BY g) AS q WHERE t.k < q.m",
    "LATERAL without a name": "SELECT * FROM t, LATERAL (SELECT count(*) FROM u) AS l",
    "one of two": "SELECT id FROM t WHERE k > (SELECT max(k) FROM u) AND s > (SELECT max(s) FROM u)",
}
HISTORIES: Final = 60
LONG: Final = max(2, EXAMPLES // 20)
maintained = partial(kept_by, "KEYS", TABLES)


def rows(memory: Memory) -> list[Row]:
    return sorted(tuples(memory.views["v"].stored.versions[-1]), key=repr)


def of_t(*values: int | None) -> State:
    """The rows of `t` with these values in its column `k`."""
    return {"t": [(number, value, 1, "a") for number, value in enumerate(values)]}


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained(VIEWS[name], *random_states(TABLES, f"{SEED} {name}"))
        assert memory.views["v"].plan.keys is not None
        assert memory.views["v"].plan.keys.constants


@pytest.mark.parametrize("number", range(LONG))
def test_view_equals_its_sql_through_a_long_history_of_small_changes(number: int) -> None:
    with naming_the_seed():
        random = Random(f"{SEED} {number}")
        name = random.choice(sorted(VIEWS))
        maintained(VIEWS[name], *small_changes(Draws(random.randrange), TABLES, epochs=EPOCHS))


@pytest.mark.parametrize("name", FULL)
def test_view_whose_subquery_cannot_be_stored_is_computed_in_full(name: str) -> None:
    assert declared(TABLES, FULL[name]).views["v"].plan.strategy == "FULL"


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_a_change_that_leaves_the_value(name: str) -> None:
    u = of_t(1, 3, 2)["t"]
    memory = maintained(VIEWS[name], {**of_t(1, 3, 2), "u": u})
    before = memory.in_full
    played(memory, [{**of_t(1, 3, 2, 2), "u": u}])
    assert memory.in_full == before or VIEWS[name] == AVERAGE


def in_full(*states: State) -> int:
    """How often the view itself was computed in full, in the epochs after the first."""
    memory = maintained(AVERAGE, *states[:1])
    before = memory.in_full
    return played(memory, states[1:]).in_full - before


def test_average_that_stays_leaves_the_epoch_to_keys() -> None:
    assert in_full(of_t(1, 3), of_t(2, 2)) == 0


def test_average_that_changes_leaves_the_epoch_to_full() -> None:
    assert in_full(of_t(1, 3), of_t(1, 4)) == 1


def test_rows_without_values_do_not_change_an_average() -> None:
    assert in_full(of_t(1, 3), of_t(1, 3, None)) == 0


def test_average_of_no_rows_is_no_value() -> None:
    memory = maintained(AVERAGE, of_t(1), {}, of_t(None), of_t(2))
    assert rows(memory) == [(0, 2)]


def test_table_of_the_subquery_alone_is_not_looked_at_while_the_value_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = maintained(VIEWS["largest of another table"], {"t": [(1, 3, 0, "a")], "u": [(1, 3, 1, "a")]})
    computed = list[Any]()
    monkeypatch.setattr(strategy, "recomputed", lambda *arguments: computed.append(arguments))
    memory.epoch({"t": [(1, 3, 0, "a")], "u": [(1, 3, 2, "a"), (2, 1, 2, "b")], "w": ()})
    assert (computed, rows(memory)) == ([], [(1, 0)])


def test_second_value_that_changes_leaves_the_epoch_to_full() -> None:
    sql = "SELECT t.id, q.m FROM t CROSS JOIN (SELECT min(k) AS m, max(k) AS n FROM u) q WHERE t.k < q.n"
    before, after = ([(1, 1, 1, "a"), (2, value, 1, "a")] for value in (3, 5))
    memory = maintained(sql, {"t": [(1, 4, 1, "a")], "u": before}, {"t": [(1, 4, 1, "a")], "u": after})
    assert rows(memory) == [(1, 1)]


def test_rows_of_exists_that_stay_some_leave_the_epoch_to_keys() -> None:
    memory = maintained(VIEWS["exists"], {**of_t(1), "u": [(1, 1, 1, "a")]})
    before = memory.in_full
    played(memory, [{**of_t(1, 2), "u": [(1, 1, 1, "a"), (2, 1, 1, "a")]}, {**of_t(1, 2), "u": [(2, 1, 1, "a")]}])
    assert (memory.in_full - before, rows(memory)) == (0, [(0, 1), (1, 2)])
    assert rows(played(memory, [of_t(1, 2)])) == []
    assert memory.in_full - before == 1


def is_noticed(sql: str) -> None:
    check_fails(lambda seed: maintained(sql, *random_states(TABLES, seed, count=3)), HISTORIES, first=5)


def test_value_that_changes_unseen_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_require_same_constants", lambda work: None)
    is_noticed(VIEWS["largest of another table"])


def test_value_of_the_old_version_in_place_of_the_stored_one_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    rows_of = Memory.rows
    monkeypatch.setattr(Memory, "rows", lambda memory, spec, _: rows_of(memory, spec, 0))
    is_noticed(VIEWS["selected"])

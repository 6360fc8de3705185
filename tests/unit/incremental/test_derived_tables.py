"""Derived tables that are joined by a computed column, or have ORDER BY and LIMIT: KEYS over the internal view that
stores their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from random import Random
from typing import Any, Final

import pytest

from tests.samples import EPOCHS, EXAMPLES
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, UnequalView, tuples
from tests.unit.incremental.played import check_fails, counting_rows, declared, kept_by, random_states
from tests.unit.incremental.random_tables import Draws, small_changes
from tests.unit.incremental.zoo import TABLES

strategy: Final = import_module("cdc_views.engine.views.strategies.keys")  # the package has a function of that name
LARGEST: Final = "(SELECT g, max(k) AS k FROM t GROUP BY g) m"
OF_OWN: Final = f"SELECT m.g, t.id FROM {LARGEST} JOIN t ON t.k = m.k"

VIEWS: Final = {
    "largest of its own table": OF_OWN,
    "in WHERE": f"SELECT m.g, u.id FROM {LARGEST}, u WHERE u.k = m.k AND u.g >= m.g",
    "left join": f"SELECT u.id, u.k, m.g FROM u LEFT JOIN {LARGEST} ON m.k = u.k",
    "of the derived table": f"SELECT m.g, u.id FROM {LARGEST} LEFT JOIN u ON u.k = m.k",
    "full join": f"SELECT m.g, u.id FROM {LARGEST} FULL JOIN u ON u.k = m.k",
    "semi join": f"SELECT u.id, u.k FROM u SEMI JOIN {LARGEST} ON m.k = u.k",
    "two of them": f"SELECT m.g, n.g AS h FROM {LARGEST} JOIN (SELECT g, min(k) AS k FROM u GROUP BY g) n ON n.k = m.k",
    "one text twice": f"SELECT m.g, n.g AS h FROM {LARGEST} JOIN (SELECT g, max(k) AS k FROM t GROUP BY g) n "
    "ON n.k = m.k",
    "renamed": "SELECT m.a, t.id FROM (SELECT g, max(k) FILTER (WHERE s = 'a') AS k FROM t WHERE id > 1 GROUP BY g "
    "HAVING count(*) < 3) m(a, b) JOIN t ON t.k = m.b",
    "between others": f"SELECT w.id, w.k AS wk, t.id AS o FROM {LARGEST} JOIN t ON t.k = m.k JOIN w ON w.g = m.g",
    "in a CTE that is named twice": f"WITH c AS (SELECT m.g, t.id FROM {LARGEST} JOIN t ON t.k = m.k) "
    "SELECT a.g, b.id AS i, a.id FROM c a JOIN c b ON a.id = b.id",
    "below a group": f"SELECT t.g, count(*) AS n FROM {LARGEST} JOIN t ON t.k = m.k GROUP BY t.g",
    "CTE": "WITH m AS (SELECT g, max(k) AS k FROM t GROUP BY g) SELECT m.g, t.id FROM m JOIN t ON t.k = m.k",
    "CTE that is named twice, with names": "WITH m(a, b) AS (SELECT g, max(k) AS k FROM t GROUP BY g) "
    "SELECT m.a, n.a AS c FROM m JOIN m n ON n.b = m.b",
    "first rows": "SELECT p.id, u.id AS o, u.g FROM (SELECT id, k FROM t ORDER BY g DESC NULLS LAST LIMIT 3) p "
    "JOIN u ON u.k = p.k",
    "first rows, all columns": "SELECT p.id, p.s, u.id AS o FROM (SELECT * FROM t ORDER BY id DESC LIMIT 3) p "
    "LEFT JOIN u ON u.k = p.k",
    "first rows without their key": "SELECT p.value_1, u.id AS o FROM (SELECT k AS value_1, g AS id FROM t WHERE g > 0 "
    "ORDER BY g DESC LIMIT 3) p JOIN u ON u.k = p.value_1",
    "first rows of a join": "SELECT p.k, p.d, u.id AS o FROM (SELECT t.k, w.d FROM t JOIN w ON w.k = t.k "
    "ORDER BY w.id DESC, t.id LIMIT 3) p JOIN u ON u.k = p.k",
    "first rows after others": "SELECT u.id, p.g FROM u LEFT JOIN (SELECT k, g FROM t ORDER BY id LIMIT 3 OFFSET 1) p "
    "ON p.k = u.k",
    "first rows in IN": "SELECT id, k FROM u WHERE g > 1 OR k IN (SELECT k FROM t ORDER BY g NULLS FIRST, id LIMIT 3)",
    "first rows in a CTE that is named twice": "WITH p AS (SELECT k, s FROM t ORDER BY g DESC NULLS LAST LIMIT 3) "
    "SELECT u.id, p.s FROM p JOIN u ON u.k = p.k WHERE u.g IN (SELECT k FROM p)",
    "first rows, renamed": "SELECT p.b, u.id FROM (SELECT g, k FROM t ORDER BY id DESC LIMIT 3) p(a, b) JOIN u "
    "ON u.k = p.b AND u.g >= p.a",
    "groups of first rows": "SELECT k, count(*) AS n, max(g) AS m FROM (SELECT k, g FROM t ORDER BY id DESC LIMIT 4) p "
    "GROUP BY k",
    "first rows of groups": "SELECT p.k, p.n, u.id FROM (SELECT k, count(*) AS n FROM t GROUP BY k ORDER BY n DESC, k "
    "NULLS FIRST LIMIT 2) p JOIN u ON u.k = p.k",
    "first rows of groups after others": "SELECT id, g FROM u WHERE k IN (SELECT k FROM (SELECT k, max(g) AS m FROM t "
    "GROUP BY k HAVING count(*) < 4 ORDER BY m DESC NULLS LAST, k LIMIT 2 OFFSET 1) p)",
    "first rows of a left join": "SELECT p.id, p.o, u.id AS v FROM (SELECT t.id, t.k, w.id AS o, w.k AS l FROM t "
    "LEFT JOIN w ON w.k = t.k ORDER BY o DESC NULLS LAST, id, l LIMIT 3) p JOIN u ON u.k = p.k",
    "first different rows": "SELECT p.k, u.id FROM (SELECT DISTINCT k FROM t ORDER BY k DESC NULLS LAST LIMIT 2) p "
    "JOIN u ON u.k = p.k",
    "first rows of a derived table": "SELECT p.k, u.id FROM (SELECT q.k, q.id FROM (SELECT k, id FROM t WHERE g > 0) q "
    "ORDER BY id DESC LIMIT 2) p JOIN u ON u.k = p.k",
    "computed groups": "SELECT t.id FROM (SELECT g + 1 AS g, max(k) AS k FROM t GROUP BY g + 1) m JOIN t ON t.k = m.k",
    "first rows that tie, under the name of their table": "SELECT p.t, u.id AS o FROM (SELECT k AS t, g FROM t "
    "ORDER BY s NULLS FIRST LIMIT 1) p JOIN u ON u.k = p.t",
    "first rows that tie, under the name of one of their tables": "SELECT p.b, u.id AS o FROM (SELECT b.id AS a, b.k "
    "AS b FROM t a JOIN t b ON a.g = b.g ORDER BY a.s NULLS FIRST LIMIT 2) p JOIN u ON u.k = p.b",
    "first rows with a semi join": "SELECT p.k, u.id FROM (SELECT t.k FROM t SEMI JOIN w ON w.k = t.k ORDER BY t.id "
    "LIMIT 3) p JOIN u ON u.k = p.k",
    "first rows in parentheses": "SELECT p.k, u.id, w.id AS x FROM u LEFT JOIN ((SELECT k, g, id FROM t ORDER BY g "
    "NULLS LAST, id LIMIT 3) p JOIN w ON p.k = w.k) ON u.k = p.k",
    "first rows of two tables": "SELECT id FROM (SELECT id FROM t ORDER BY g LIMIT 2) p UNION ALL SELECT id FROM "
    "(SELECT id FROM u ORDER BY g LIMIT 2) q",
    "beside a constant": f"SELECT m.g, t.id FROM {LARGEST} JOIN t ON t.k = m.k WHERE t.k < (SELECT max(k) FROM u)",
}
FULL: Final = {
    "all rows, and a text": "SELECT t.id FROM (SELECT max(s) AS s FROM t) m JOIN t ON t.s = m.s",
    "join below": "SELECT m.g, t.id FROM (SELECT t.g, max(u.k) AS k FROM t JOIN u ON u.k = t.k GROUP BY t.g) m "
    "JOIN t ON t.k = m.k",
    "window": "SELECT t.id FROM (SELECT id, rank() OVER (PARTITION BY g ORDER BY k) AS r FROM t) m JOIN t ON t.k = m.r",
    "first rows of unnamed totals": "SELECT id FROM u WHERE k IN (SELECT k FROM t GROUP BY k ORDER BY count(*), k "
    "LIMIT 2)",
    "first rows of a total": "SELECT u.id FROM (SELECT max(k) AS m FROM t ORDER BY m LIMIT 1) p JOIN u ON u.k = p.m",
    "first rows of a CTE": "WITH c AS (SELECT id, k FROM t) SELECT p.k, u.id FROM (SELECT k FROM c ORDER BY id "
    "LIMIT 2) p JOIN u ON u.k = p.k",
    "all rows, of first rows": "SELECT max(k) AS m FROM (SELECT id, k FROM t ORDER BY id LIMIT 2) p",
    "first rows with a float": "SELECT p.x, u.id FROM (SELECT k, CAST(g AS DOUBLE) AS x FROM t ORDER BY id LIMIT 2) p "
    "JOIN u ON u.k = p.k",
    "first rows with a column twice": "SELECT p.k, u.id FROM (SELECT k, k FROM t ORDER BY id LIMIT 3) p(k, j) JOIN u "
    "ON u.k = p.k",
    "first rows that depend on the row": "SELECT id FROM u WHERE EXISTS (SELECT 1 FROM (SELECT k FROM w WHERE w.g = "
    "u.g ORDER BY id, k LIMIT 2) q)",
    "CTE over a CTE": "WITH c AS (SELECT g, k FROM t), m AS (SELECT g, max(k) AS k FROM c GROUP BY g) "
    "SELECT m.g, t.id FROM m JOIN t ON t.k = m.k",
    "LIMIT around it": "SELECT m.g, t.id FROM ((SELECT g, max(k) AS k FROM t GROUP BY g) ORDER BY g LIMIT 2) m "
    "JOIN t ON t.k = m.k",
    "average, which is a float": "SELECT m.g, t.id FROM (SELECT g, max(k) AS k, avg(k) AS a FROM t GROUP BY g) m "
    "JOIN t ON t.k = m.k",
    "collation": "SELECT m.g, t.id FROM (SELECT g, max(s COLLATE NOCASE) AS s FROM t GROUP BY g) m JOIN t ON t.s = m.s",
    "expression of the column": f"SELECT m.g, t.id FROM {LARGEST} JOIN t ON t.k = m.k + 1",
    "no key": "SELECT m.k, t.id FROM (SELECT max(k) AS k FROM t GROUP BY g) m JOIN t ON t.k = m.k",
}
HISTORIES: Final = 60
LONG: Final = max(2, EXAMPLES // 20)
maintained = partial(kept_by, "KEYS", TABLES)


def rows(memory: Memory) -> set[tuple[Any, ...]]:
    return set(tuples(memory.views["v"].stored.versions[-1]))


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained(VIEWS[name], *random_states(TABLES, f"{SEED} {name}"))
        assert memory.views["v"].plan.keys is not None
        assert memory.views["v"].plan.keys.internal_views


@pytest.mark.parametrize("number", range(LONG))
def test_view_equals_its_sql_through_a_long_history_of_small_changes(number: int) -> None:
    with naming_the_seed():
        random = Random(f"{SEED} {number}")
        name = random.choice(sorted(VIEWS))
        maintained(VIEWS[name], *small_changes(Draws(random.randrange), TABLES, epochs=EPOCHS))


@pytest.mark.parametrize("name", FULL)
def test_other_derived_table_is_computed_in_full(name: str) -> None:
    assert declared(TABLES, FULL[name]).views["v"].plan.strategy == "FULL"


def test_largest_value_that_moves_to_another_row_moves_the_row_of_the_view() -> None:
    before: State = {"t": [(1, 5, 1, "a"), (2, 4, 1, "a"), (3, 4, 2, "a")]}
    after: State = {"t": [(1, 3, 1, "a"), (2, 4, 1, "a"), (3, 4, 2, "a")]}
    assert rows(maintained(OF_OWN, before)) == {(1, 1), (2, 2), (2, 3)}
    assert rows(maintained(OF_OWN, before, after)) == {(1, 2), (1, 3), (2, 2), (2, 3)}


# The row (1, 2) joins the largest value of one table with the smallest of the other, and both change at once. Each is
# found from the other at the old version only. With a single internal view that version is not needed: if one of its
# rows is gone, the lookups that begin with this row find the others.
BOTH_MOVE_AWAY: Final[Sequence[State]] = (
    {"t": [(1, 5, 1, "a")], "u": [(1, 5, 2, "a")]},
    {"t": [(1, 7, 1, "a")], "u": [(1, 8, 2, "a")]},
)


def test_values_of_two_derived_tables_that_change_at_once_remove_the_row_of_the_view() -> None:
    before, after = BOTH_MOVE_AWAY
    assert rows(maintained(VIEWS["two of them"], before)) == {(1, 2)}
    assert rows(maintained(VIEWS["two of them"], before, after)) == set()


def test_change_reads_only_the_groups_and_rows_that_it_touches(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [(number, number, number, "a") for number in range(40)]
    memory = maintained(OF_OWN, {"t": many})
    read = counting_rows(monkeypatch)
    memory.epoch({"t": [(0, 100, 0, "a"), *many[1:]], "u": (), "w": ()})
    assert (max(read) <= 4, memory.in_full) == (True, 0)


# ---- negative controls


def test_internal_view_at_the_new_version_alone_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = strategy.look_up

    def at_new(work: Any, of: Any, version: int, *rest: Any) -> Any:
        return look_up(work, of, of.new if of.spec.name.startswith("_cv_") else version, *rest)

    monkeypatch.setattr(strategy, "look_up", at_new)
    with pytest.raises(UnequalView):
        maintained(VIEWS["two of them"], *BOTH_MOVE_AWAY)


def test_changes_of_the_internal_view_that_are_not_looked_at_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    delta = strategy.Incremental.delta

    def unseen(work: Any, leaf: Any) -> Any:
        found = delta(work, leaf)
        return type(found)(*(each.slice(0, 0) for each in (found.old, found.new))) if leaf.source[0] == "_" else found

    monkeypatch.setattr(strategy.Incremental, "delta", unseen)
    sql = VIEWS["in WHERE"]
    check_fails(lambda seed: maintained(sql, *random_states(TABLES, seed, count=3)), HISTORIES)

"""Totals over rows that neither a union nor inner joins give: ADD takes all rows that a change may affect, twice."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from importlib import import_module
from typing import Any, Final

import pytest

from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, tuples
from tests.unit.incremental.played import (
    check_fails,
    counting_rows,
    declared,
    explained_lookups,
    is_kept,
    kept_by,
    random_states,
)
from tests.unit.incremental.test_add_groups import TABLES, TOTAL, item, order
from tests.unit.incremental.test_not_in import DECLARED

adding: Final = import_module("cdc_views.engine.views.strategies.adding.add")  # the package has a function of that name
terms: Final = import_module("cdc_views.engine.views.strategies.adding.terms")
HISTORIES: Final = 100

LEFT: Final = "o LEFT JOIN i ON i.id = o.id"
NOT_IN: Final = "SELECT count(*) AS n, sum(g) AS s, count(g) AS m FROM t WHERE k NOT IN (SELECT k FROM u)"
COUNTS: Final = "count(*) AS n, count(i.d) AS m"
# The FROM of each, with the handle by which its rows are found.
VIEWS: Final = {
    "left join": (f"SELECT {COUNTS}, {TOTAL} FROM {LEFT}", "id"),
    "right join": (f"SELECT {COUNTS}, sum(i.d) AS s FROM i RIGHT JOIN o ON o.id = i.id", "id"),
    "inner and left join": (f"SELECT {COUNTS}, sum(b.h) AS s FROM o JOIN b ON b.k = o.k {LEFT[2:]}", "id"),
    "extremes": (f"SELECT max(i.h) AS most, min(o.x) AS first, count(*) AS n FROM {LEFT} WHERE o.g <> 'b'", "id"),
    "full join by a merged column": ("SELECT count(*) AS n, count(d) AS m FROM o FULL JOIN i USING (id)", "id"),
    "union all with a join": (
        "SELECT count(*) AS n, sum(k) AS s, count(k) AS m FROM (SELECT o.k FROM o JOIN i USING (id) UNION ALL SELECT k "
        "FROM b) q", "k",
    ),
    "in": ("SELECT count(*) AS n, sum(k) AS s, count(k) AS m FROM o WHERE o.k IN (SELECT k FROM b WHERE h > 1)", "id"),
    "not exists": ("SELECT count(*) AS n FROM o WHERE NOT EXISTS (SELECT 1 FROM i WHERE i.id = o.id AND i.h > 1)",
                   "id"),
    "distinct": ("SELECT count(*) AS n, sum(k) AS s, count(k) AS m FROM (SELECT DISTINCT o.k, o.g FROM o) q", "k, g"),
    "groups": (
        "SELECT count(*) AS groups, sum(n) AS s, max(n) AS m FROM (SELECT k, count(*) AS n FROM o GROUP BY k) q", "k",
    ),
    "union": ("SELECT count(*) AS n, count(k) AS m FROM (SELECT k FROM o UNION SELECT k FROM b) q", "k"),
    "except all": ("SELECT count(*) AS n FROM (SELECT k FROM o EXCEPT ALL SELECT k FROM b) q", "k"),
    "window": (
        "SELECT count(*) AS n, sum(k) AS s, count(k) AS m FROM (SELECT id, k, row_number() OVER (PARTITION BY k "
        "ORDER BY id) AS place FROM o) q WHERE place <= 2", "k",
    ),
    "cte twice": ("WITH q AS (SELECT k, count(*) AS n FROM o GROUP BY k) SELECT count(*) AS c, sum(x.n) AS s FROM q x "
                  "LEFT JOIN q y ON y.k = x.k AND y.n > 1", "k"),
    "different values": (
        f"SELECT count(DISTINCT o.k) AS k, count(DISTINCT o.x) FILTER (WHERE i.h > 1) AS x FROM {LEFT}", "id",
    ),
    "different values of groups": (
        "SELECT count(DISTINCT g) AS n, count(*) AS groups FROM (SELECT k, g, max(x) AS last FROM o GROUP BY k, g) q "
        "WHERE last > DATE '2020-01-02'", "k, g",
    ),
    "values of a union": ("SELECT count(DISTINCT k) AS n FROM (SELECT k FROM o UNION SELECT k FROM b) q", "k"),
    "sum without counts": ("SELECT sum(i.d) AS s FROM o LEFT JOIN i ON i.id = o.id", "id"),
}  # fmt: skip

GROUPS: Final = {
    "column that a row may lack": f"SELECT i.h, {COUNTS}, sum(o.k) AS s, count(o.k) AS k FROM {LEFT} GROUP BY i.h",
    "values of two tables": (
        f"SELECT coalesce(i.h, o.k) AS v, {COUNTS}, max(i.d) AS most FROM {LEFT} GROUP BY coalesce(i.h, o.k)"
    ),
    "groups of groups": ("SELECT n, count(*) AS groups FROM (SELECT k, count(*) AS n FROM o GROUP BY k) q GROUP BY n"),
    "sum without its count": f"SELECT i.h, count(*) AS n, {TOTAL} FROM {LEFT} GROUP BY i.h",
}
OTHERS: Final = {
    "full join": "SELECT count(*) AS n FROM o FULL JOIN i ON i.id = o.id",
    "limit": "SELECT count(*) AS n FROM (SELECT id FROM o ORDER BY id LIMIT 3) q",
    "subquery in an aggregate": "SELECT sum((SELECT max(h) FROM i WHERE i.id = o.id)) AS s FROM o",
    "limit of the totals": f"SELECT {COUNTS} FROM {LEFT} ORDER BY n LIMIT 1",
    "having": f"SELECT {COUNTS} FROM o AS o(id, k, g, x) LEFT JOIN i ON i.id = o.id HAVING count(*) > 1",
    "different values of what a row may lack": f"SELECT count(DISTINCT i.h) AS n FROM {LEFT}",
    # The planner does not know this as an aggregate, so to it the subquery has a row for each row of "o".
    "what may be an aggregate": "SELECT count(*) AS n, count(y) AS m FROM (SELECT bool_or(k > 1) AS y FROM o) q",
}

maintained = partial(kept_by, "ADD", TABLES)


def maintained_at_random(name: str, seed: int | str, count: int = 1) -> Memory:
    return maintained(VIEWS[name][0], *random_states(TABLES, seed, count))


def outcome(memory: Memory) -> tuple[list[Any], int]:
    """The rows of the view, and the number of epochs that were left to FULL."""
    return tuples(memory.views["v"].stored.versions[-1]), memory.in_full


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        assert is_kept(maintained_at_random(name, f"{SEED} {name}", 2 * OF_EACH_VIEW))


@pytest.mark.parametrize("name", GROUPS)
def test_groups_equal_their_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        assert is_kept(maintained(GROUPS[name], *random_states(TABLES, f"{SEED} {name}", 2 * OF_EACH_VIEW)))


@pytest.mark.parametrize("name", ["in", "not exists", "distinct", "union", "except all", "window", "different values"])
def test_every_epoch_of_a_random_history_is_kept_by_its_changes(name: str) -> None:
    with naming_the_seed():
        assert maintained_at_random(name, f"{SEED} {name}", OF_EACH_VIEW).in_full == 0


@pytest.mark.parametrize("name", VIEWS)
def test_rows_are_found_by_as_few_columns_as_tell_them_apart(name: str) -> None:
    sql, handle = VIEWS[name]
    assert declared(TABLES, sql).views["v"].plan.reason.startswith(f"of affected ({handle}), ")


@pytest.mark.parametrize("name", OTHERS)
def test_other_view_is_maintained_in_full(name: str) -> None:
    assert declared(TABLES, OTHERS[name]).views["v"].plan.strategy == "FULL"


def test_not_in_is_kept_while_its_columns_hold_no_null() -> None:
    assert (
        declared(TABLES, "SELECT count(*) AS n FROM o WHERE id NOT IN (SELECT h FROM b)").views["v"].plan.strategy
        == "FULL"
    ), "the source does not declare them"
    assert "as long as no row has NULL in public.t.k, public.u.k" in declared(DECLARED, NOT_IN).views["v"].plan.reason
    with naming_the_seed():
        kept_by("ADD", DECLARED, NOT_IN, *random_states(DECLARED, f"{SEED}", OF_EACH_VIEW))


def test_only_the_affected_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, items = [order(each) for each in range(1, 50)], [item(1, each, f"{each}.00") for each in range(1, 40)]
    memory = maintained(VIEWS["left join"][0], {"o": orders, "i": items})
    read = counting_rows(monkeypatch)
    memory.repeats = False
    memory.epoch({"b": (), "o": orders, "i": [*items[1:], item(1, 45, "7.00")]})
    # Order 1 with and without its item, order 45 without and with one.
    assert (read, outcome(memory)[1]) == ([6], 0)


def test_row_that_loses_its_last_match_stays_once() -> None:
    before = {"o": [order(1), order(2)], "i": [item(1, 1, "5.00")]}
    memory = maintained(f"SELECT {COUNTS}, sum(i.d) AS s FROM {LEFT}", before, {**before, "i": []})
    assert outcome(memory) == ([(2, 0, None)], 0)


def test_extreme_that_stays_beside_a_changed_row_is_kept() -> None:
    """The order with the largest item gets another item: all of its rows are affected, and the largest stays."""
    before = {"o": [order(1), order(2)], "i": [item(1, 1, "5.00"), item(1, 2, "1.00")]}
    after = {**before, "i": [*before["i"], item(2, 1, "3.00")]}
    assert outcome(maintained(f"SELECT max(i.d) AS m FROM {LEFT}", before, after)) == ([(Decimal("5.00"),)], 0)


def test_explanation_shows_what_is_looked_up() -> None:
    assert explained_lookups(TABLES, VIEWS["left join"][0]) == [
        "a change of public.o affects (id)",
        "a change of public.i affects (id)",
        "look up public.o by (id) from (id) of public.i",
        "the totals over the rows of affected (id), before and after, are computed from",
        "public.o by (id) from (id) of the affected keys",
        "public.i by (id) from (id) of public.o",
    ]


# ---- negative controls


@pytest.mark.parametrize("version", ["old", "new"])
def test_affected_rows_of_one_version_are_noticed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    at = getattr(terms, f"at_{version}_version")
    monkeypatch.setattr(terms, "at_old_version", at)
    monkeypatch.setattr(terms, "at_new_version", at)
    check_fails(lambda seed: maintained_at_random("left join", seed), HISTORIES)


def test_different_values_of_the_affected_rows_alone_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other rows may have the values that an affected row has no more."""

    def affected_only(work: Any, distinct: Any, found: Any) -> Any:
        return [term.rows for term in reversed(found)]

    monkeypatch.setattr(adding, "both_versions", affected_only)
    check_fails(lambda seed: maintained_at_random("different values", seed), HISTORIES)


def test_rows_that_only_removed_rows_affect_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    affected = terms.affected
    monkeypatch.setattr(terms, "affected", lambda work: affected(work, only_removed=True))
    check_fails(lambda seed: maintained_at_random("left join", seed), HISTORIES)


def test_null_in_not_in_that_is_not_looked_for_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "require_values", lambda work: None)
    check_fails(lambda seed: kept_by("ADD", DECLARED, NOT_IN, *random_states(DECLARED, seed, count=3)), HISTORIES)

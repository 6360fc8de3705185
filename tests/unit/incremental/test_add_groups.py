"""ADD for groups: which views it maintains, and that it gives the view's SQL, or leaves the epoch to KEYS."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from importlib import import_module
from typing import Any, Final

import duckdb
import pytest

from cdc_views.engine.views.strategies import Incremental
from cdc_views.store.warehouse import RowsChanged
from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, Table, tuples
from tests.unit.incremental.played import check_fails, counting_rows, declared, kept_by, random_states

strategy: Final = import_module("cdc_views.engine.views.strategies.adding.add_groups")
lookups: Final = import_module("cdc_views.engine.views.strategies.keys")

TABLES: Final = (
    Table("o", {"id": "bigint", "k": "int", "g": "text", "x": "date"}, ("id",)),
    Table("i", {"id": "int", "k": "bigint", "h": "int", "d": "decimal"}, ("id", "k")),
    Table("b", {"k": "int", "h": "int"}, ()),
)
TOTAL: Final = "CAST(sum(i.d) AS DECIMAL(18, 2)) AS total"
ITEMS: Final = "o JOIN i ON i.id = o.id"

VIEWS: Final = {
    "one table": "SELECT k, count(*) AS n, CAST(sum(h) AS BIGINT) AS s FROM i GROUP BY k",
    "join": f"SELECT o.k, count(*) AS n, {TOTAL}, count(i.d) AS m FROM {ITEMS} GROUP BY o.k",
    "sum without its count": f"SELECT o.k, count(*) AS n, {TOTAL} FROM {ITEMS} GROUP BY o.k",
    "two group columns": f"SELECT o.g, {TOTAL}, o.x, count(1) AS n FROM {ITEMS} WHERE i.h <> 1 GROUP BY o.x, o.g",
    "expressions": "SELECT o.k, CAST(count(*) AS INT) AS n, CAST(sum(i.h * 2 + 1) AS BIGINT) AS s, "
    f"CAST(count(*) FILTER (WHERE i.d > 1) AS INT) AS m FROM {ITEMS} GROUP BY o.k",
    "filtered sum": f"SELECT o.k, count(*) AS n, CAST(sum(i.d) FILTER (WHERE i.h = 1) AS DECIMAL(18, 2)) AS s, "
    f"count(*) FILTER (WHERE i.h = 1) AS m FROM {ITEMS} GROUP BY o.k",
    "self join": "SELECT x.k, count(*) AS n, CAST(sum(y.h) AS BIGINT) AS s, count(y.h) AS m FROM i x JOIN i y ON y.k = "
    "x.k GROUP BY x.k",
    "three tables": f"SELECT o.g, o.k, count(*) AS n, {TOTAL} FROM {ITEMS} JOIN b ON b.k = o.k AND b.h <= i.h GROUP BY "
    "o.k, o.g",
    "copies of rows": "SELECT k, count(*) AS n, count(h) AS m FROM b GROUP BY k",
    "derived table": "SELECT o.k, count(*) AS n, CAST(sum(q.s) AS BIGINT) AS s FROM o JOIN (SELECT i.id AS oid, b.h "
    "AS s FROM i JOIN b ON b.k = i.h) q ON q.oid = o.id GROUP BY o.k",
    "cancelling values": f"SELECT o.k, count(*) AS n, CAST(sum(CASE WHEN i.h = 1 THEN i.d ELSE -i.d END) AS "
    f"DECIMAL(18, 2)) AS s FROM {ITEMS} GROUP BY o.k",
    "extremes": "SELECT k, max(x) AS newest, min(id) AS first, count(*) AS n FROM o GROUP BY k",
    "extremes of a join": f"SELECT o.k, min(i.d) AS l, max(i.h + o.k) AS m, count(*) AS n FROM {ITEMS} GROUP BY o.k",
    "filtered extreme": "SELECT k, max(d) FILTER (WHERE h = 1) AS m, count(*) AS n FROM i GROUP BY k",
    "average": "SELECT k, avg(h) AS a, sum(h) AS s, count(h) AS m, count(*) AS n FROM i GROUP BY k",
    "groups of two tables": f"SELECT o.g, i.h, count(*) AS n, max(i.d) AS m FROM {ITEMS} GROUP BY o.g, i.h",
    "CTE": f"WITH q AS (SELECT o.k, i.d FROM {ITEMS} WHERE i.h > 0), r AS (SELECT k, d FROM q WHERE k <> 2) SELECT "
    "k, count(*) AS n, CAST(sum(d) AS DECIMAL(18, 2)) AS s, count(d) AS m FROM r GROUP BY k",
    "CTE that is named twice": "WITH q(a, b) AS (SELECT k, id FROM o) SELECT x.a, count(*) AS n, max(y.b) AS m FROM q "
    "x JOIN q y ON y.b = x.a GROUP BY x.a",
    "computed group": "SELECT h % 2 AS p, k, count(*) AS n FROM i GROUP BY k, h % 2",
    "sum without its count of a computed group": "SELECT upper(g) AS u, CAST(sum(id) AS BIGINT) AS s, count(*) AS n "
    "FROM o GROUP BY upper(g)",
    "computed group with a maximum": "SELECT k, h % 2 AS p, count(*) AS n, max(d) AS m FROM i GROUP BY 1, p",
}
# What needs no lookup of a group, so no internal view of its values.
COMPUTED: Final = {
    "values computed from one table": "SELECT coalesce(h, 0) AS p, count(*) AS n FROM i GROUP BY coalesce(h, 0)",
    "values computed from two tables": f"SELECT o.k + i.h AS p, count(*) AS n FROM {ITEMS} GROUP BY p",
    "a sum and its count": "SELECT upper(g) AS u, CAST(sum(id) AS BIGINT) AS s, count(id) AS m, count(*) AS n FROM o "
    "GROUP BY upper(g)",
    "values of a derived table": "SELECT q.p, count(*) AS n FROM (SELECT k + h AS p FROM i WHERE h <> 1) q GROUP BY p",
}
OTHERS: Final = {
    "no count of rows": f"SELECT o.k, {TOTAL}, count(i.d) AS n FROM {ITEMS} GROUP BY o.k",
    "count of some rows": "SELECT k, count(*) FILTER (WHERE h = 1) AS n FROM i GROUP BY k",
    "having": "SELECT k, count(*) AS n FROM i GROUP BY k HAVING count(*) > 1",
    "maximum of text": "SELECT k, count(*) AS n, max(g) AS m FROM o GROUP BY k",
    "average without its sum": "SELECT k, count(*) AS n, count(h) AS m, avg(h) AS a FROM i GROUP BY k",
    "expression of a total": "SELECT k, count(*) + 1 AS n, count(*) AS m FROM i GROUP BY k",
    "computed group of floats": "SELECT h / 2 AS p, count(*) AS n FROM i GROUP BY h / 2",
    "computed group that is not selected": "SELECT k, count(*) AS n FROM i GROUP BY k, h % 2",
    "group column that is not selected": "SELECT k, count(*) AS n FROM i GROUP BY k, h",
    "distinct values": "SELECT k, count(DISTINCT h) AS m, count(*) AS n FROM i GROUP BY k",
    "left join": "SELECT o.k, count(*) AS n FROM o LEFT JOIN i ON i.id = o.id GROUP BY o.k",
    "exists": "SELECT k, count(*) AS n FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.id = o.id) GROUP BY k",
    "rows of groups": "SELECT q.k, count(*) AS n FROM (SELECT DISTINCT k, h FROM i) q GROUP BY q.k",
}


maintained = partial(kept_by, "ADD", TABLES)


def maintained_at_random(sql: str, seed: str, count: int = 6) -> Memory:
    return maintained(sql, *random_states(TABLES, seed, count))


def is_noticed(sql: str) -> None:
    check_fails(lambda seed: maintained_at_random(sql, str(seed)), 60)


# ---- random histories


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained_at_random(VIEWS[name], f"{SEED} {name}", OF_EACH_VIEW)
        assert memory.in_full == 0


@pytest.mark.parametrize("name", COMPUTED)
def test_groups_of_computed_values_are_added_up_without_lookups(name: str) -> None:
    with naming_the_seed():
        memory = maintained_at_random(COMPUTED[name], f"{SEED} {name}", OF_EACH_VIEW)
        assert (memory.in_full, memory.views["v"].plan.keys) == (0, None)


@pytest.mark.parametrize("version", ["old", "new"])
def test_other_leaves_at_one_version_are_noticed(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    look_up = lookups.look_up
    monkeypatch.setattr(lookups, "look_up", lambda work, of, _, *rest: look_up(work, of, getattr(of, version), *rest))
    is_noticed(VIEWS["join"])


def test_removed_rows_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    delta = Incremental.delta

    def forgetful(work: Any, leaf: Any) -> RowsChanged:
        found = delta(work, leaf)
        return RowsChanged(found.old.slice(0, 0), found.new)

    monkeypatch.setattr(Incremental, "delta", forgetful)
    is_noticed(VIEWS["one table"])


def test_sums_that_are_never_null_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "_value", lambda total, stored, change, counts: (
        stored.get(total.name, Decimal()) + change.added.get(total.name, Decimal())
        - change.removed.get(total.name, Decimal())
    ))  # fmt: skip
    is_noticed(VIEWS["join"])


def test_stored_extremes_that_always_stay_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "new_extreme", lambda extreme, before, *_, **__: before)
    is_noticed(VIEWS["extremes"])


def test_extremes_of_removed_rows_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    new_extreme = strategy.new_extreme
    monkeypatch.setattr(
        strategy,
        "new_extreme",
        lambda extreme, before, added, _, **rest: new_extreme(extreme, before, added, [], **rest),
    )
    is_noticed(VIEWS["extremes of a join"])


@pytest.mark.parametrize("name", OTHERS)
def test_other_view_has_another_strategy(name: str) -> None:
    assert declared(TABLES, OTHERS[name]).views["v"].plan.strategy in ("KEYS", "FULL")


# ---- single epochs


def order(number: int) -> tuple[Any, ...]:
    return (number, 7, "a", None)


def item(number: int, of: int, amount: str | None) -> tuple[Any, ...]:
    return (of, number, 1, None if amount is None else Decimal(amount))


def rows(memory: Memory) -> list[tuple[Any, ...]]:
    return tuples(memory.views["v"].stored.versions[-1])


def test_change_of_a_large_group_reads_only_what_it_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, items = [order(number) for number in range(50)], [item(1, number, "1.00") for number in range(50)]
    memory = maintained(VIEWS["join"], {"o": orders, "i": items})
    read = counting_rows(monkeypatch)
    memory.repeats = False
    memory.epoch({"b": (), "o": [*orders, order(99)], "i": [*items, item(1, 99, "2.00"), item(2, 3, "3.00")]})
    assert (read, rows(memory)) == ([4], [(7, 52, Decimal("55.00"), 52)])


def test_both_sides_of_a_join_that_vanish_together_are_subtracted_once() -> None:
    before = {"o": [order(1), order(2)], "i": [item(1, 1, "1.00"), item(1, 2, "2.00")]}
    after = {"o": [order(1)], "i": [item(1, 1, "1.00")]}
    assert rows(maintained(VIEWS["join"], before, after)) == [(7, 1, Decimal("1.00"), 1)]


def test_group_without_rows_vanishes_and_comes_back() -> None:
    full = {"o": [order(1)], "i": [item(1, 1, "1.00")]}
    assert rows(maintained(VIEWS["sum without its count"], full, {"o": [order(1)]})) == []
    memory = maintained(VIEWS["sum without its count"], full, {"o": [order(1)]}, full)
    assert (rows(memory), memory.ways.taken()) == ([(7, 1, Decimal("1.00"))], {})


@pytest.mark.parametrize(("left", "total"), [(None, None), ("0.00", Decimal("0.00"))])
def test_sum_that_may_be_null_or_zero_is_computed_by_keys(left: str | None, total: Decimal | None) -> None:
    before = {"o": [order(1)], "i": [item(1, 1, "1.00"), item(2, 1, left)]}
    after = {"o": [order(1)], "i": [item(2, 1, left)]}
    memory = maintained(VIEWS["sum without its count"], before, after)
    assert (rows(memory), memory.ways.taken()) == ([(7, 1, total)], {"view": {"v": "keys"}})
    memory = maintained(VIEWS["join"], before, after)
    assert (rows(memory), memory.ways.taken()) == ([(7, 1, total, int(total is not None))], {})


def test_total_beyond_its_type_is_left_to_keys() -> None:
    sql = "SELECT k, count(*) AS n, CAST(sum(h) AS TINYINT) AS s FROM i GROUP BY k"
    many: list[tuple[Any, ...]] = [(number, 7, 100, None) for number in range(2)]
    memory = maintained(sql, {"i": many[:1]})
    old = memory.write({"o": (), "b": (), "i": many})
    with pytest.raises(duckdb.ConversionException):
        memory.changes(memory.views["v"], old)
    assert memory.ways.taken() == {"view": {"v": "keys"}}


def test_group_reads_its_rows_only_if_its_extreme_was_removed() -> None:
    sql = "SELECT k, max(h) AS m, count(*) AS n FROM i GROUP BY k"
    before = [(1, 7, 5, None), (2, 7, 3, None), (3, 7, 1, None)]
    memory = maintained(sql, {"i": before}, {"i": [(1, 7, 5, None), (3, 7, 4, None)]})
    assert (rows(memory), memory.ways.taken()) == ([(7, 5, 2)], {})
    memory = maintained(sql, {"i": before}, {"i": before[1:]})
    assert (rows(memory), memory.ways.taken()) == ([(7, 3, 2)], {"view": {"v": "keys"}})


def test_changed_row_that_keeps_the_extreme_reads_no_group() -> None:
    sql = "SELECT k, max(h) AS m, CAST(sum(d) AS DECIMAL(18, 2)) AS s, count(d) AS c, count(*) AS n FROM i GROUP BY k"
    memory = maintained(sql, {"i": [(1, 7, 5, Decimal("1.00"))]}, {"i": [(1, 7, 5, Decimal("2.00"))]})
    assert (rows(memory), memory.ways.taken()) == ([(7, 5, Decimal("2.00"), 1, 1)], {})


CONDITIONAL = (
    "SELECT k, count(*) AS n, CAST(sum(CASE WHEN h > 1 THEN 1 WHEN h = 1 THEN (2) ELSE 0 END) AS BIGINT) AS s"
    " FROM i GROUP BY k"
)


def test_sum_of_what_is_never_null_is_zero_without_a_count_of_it() -> None:
    before = [(1, 7, 1, None), (2, 7, 0, None)]
    memory = maintained(CONDITIONAL, {"i": before}, {"i": [(1, 7, 0, None), (2, 7, 0, None)]})
    assert (rows(memory), memory.ways.taken()) == ([(7, 2, 0)], {})


def test_only_groups_whose_sum_is_not_certain_are_computed_again() -> None:
    sql = "SELECT k, count(*) AS n, CAST(sum(h) AS BIGINT) AS s FROM i GROUP BY k"
    before = [(1, 7, 5, None), (2, 7, None, None), (3, 8, 1, None)]
    memory = maintained(sql, {"i": before}, {"i": [(1, 7, None, None), (2, 7, None, None), (3, 8, 2, None)]})
    assert (set(rows(memory)), memory.ways.taken()) == ({(7, 2, None), (8, 1, 2)}, {"view": {"v": "keys"}})


def test_join_of_so_many_tables_that_its_terms_are_too_long_is_left_to_keys() -> None:
    tables = "i x0" + "".join(f" JOIN i x{number} ON x{number}.id = x{number - 1}.id" for number in range(1, 8))
    sql = f"SELECT x0.k, count(*) AS n FROM {tables} GROUP BY x0.k"
    memory = maintained(sql, {"i": [(1, 7, 5, None)]}, {"i": [(1, 8, 5, None)]})
    assert (rows(memory), memory.ways.taken()) == ([(8, 1)], {"view": {"v": "keys"}})

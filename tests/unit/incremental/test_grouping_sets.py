"""ADD for ROLLUP, CUBE and GROUPING SETS: it gives the view's SQL after every epoch, or leaves the epoch to FULL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from importlib import import_module
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cdc_views.engine.views.strategies import Incremental
from cdc_views.store.warehouse import RowsChanged
from tests.samples import EPOCHS, OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, tuples
from tests.unit.incremental.played import check_fails, counting_rows, declared, is_kept, kept_by, played, random_states
from tests.unit.incremental.random_tables import Draws, small_changes
from tests.unit.incremental.test_add_groups import ITEMS, TABLES, item, order

strategy: Final = import_module("cdc_views.engine.views.strategies.adding.add_groups")
lookups: Final = import_module("cdc_views.engine.views.strategies.keys")

LEVEL: Final = "grouping_id(o.k, o.g) AS level"
TOTALS: Final = "count(*) AS n, CAST(sum(i.d) AS DECIMAL(18, 2)) AS total, count(i.d) AS m"
ROLLUP: Final = f"SELECT o.k, o.g, {LEVEL}, {TOTALS} FROM {ITEMS} GROUP BY ROLLUP (o.k, o.g)"

VIEWS: Final = {
    "rollup": ROLLUP,
    "cube": f"SELECT o.k, o.g, {LEVEL}, {TOTALS} FROM {ITEMS} GROUP BY CUBE (o.k, o.g)",
    "some sets": f"SELECT o.g, {TOTALS}, o.k, {LEVEL} FROM {ITEMS} GROUP BY GROUPING SETS ((o.k, o.g), o.g, ())",
    "no set of all rows": f"SELECT o.k, o.g, {LEVEL}, {TOTALS} FROM {ITEMS} GROUP BY GROUPING SETS ((o.k), (o.g))",
    "one column": "SELECT k, grouping_id(k) AS level, count(*) AS n, count(h) AS m FROM b GROUP BY ROLLUP (k)",
    "grouping of columns": "SELECT x, h, grouping(x) AS gx, grouping_id(h, x) AS level, grouping(h) AS gh, count(*) "
    "AS n FROM (SELECT b.h, o.x FROM b JOIN o ON o.k = b.k) q GROUP BY ROLLUP (h, x)",
    "grouped column in a total": "SELECT k, grouping_id(k) AS level, count(k) AS m, count(*) AS n, count(*) FILTER "
    "(WHERE k > 1) AS f FROM i WHERE h <> 1 OR h IS NULL GROUP BY ROLLUP (k)",
    "self join": "SELECT x.k, y.h, grouping_id(x.k, y.h) AS level, count(*) AS n FROM i x JOIN i y ON y.k = x.k "
    "GROUP BY CUBE (x.k, y.h)",
    "columns without NULL": f"SELECT o.k, o.g, {TOTALS} FROM {ITEMS} WHERE o.k IS NOT NULL AND i.d > 0 "
    "AND o.g IS NOT NULL GROUP BY ROLLUP (o.k, o.g)",
    "cube of columns without NULL": "SELECT k, h, count(*) AS n, count(d) AS m, sum(d) AS total FROM i "
    "WHERE NOT k IS NULL AND h IS NOT NULL GROUP BY CUBE (k, h)",
    "column of the key": "SELECT id, count(*) AS n FROM o GROUP BY ROLLUP (id)",
    "sum without its count": "SELECT k, h, grouping_id(k, h) AS level, count(*) AS n, sum(d) AS total FROM i "
    "GROUP BY ROLLUP (k, h)",
    "different rows": "SELECT q.k, q.g, grouping_id(q.k, q.g) AS level, count(*) AS n FROM (SELECT DISTINCT k, g, x "
    "FROM o) q GROUP BY ROLLUP (q.k, q.g)",
    "left join": f"SELECT i.k, o.g, grouping_id(i.k, o.g) AS level, {TOTALS} FROM o LEFT JOIN i ON "
    "i.id = o.id WHERE o.k IN (SELECT k FROM b) GROUP BY CUBE (i.k, o.g)",
    "merged column": "SELECT o.id, count(*) AS n FROM o JOIN i USING (id) GROUP BY ROLLUP (id)",
    "computed group": "SELECT upper(g) AS p, grouping_id(upper(g)) AS level, count(*) AS n FROM o "
    "GROUP BY ROLLUP (upper(g))",
    "computed group by its alias": "SELECT coalesce(o.g, '-') AS p, i.k, grouping_id(coalesce(o.g, '-'), i.k) AS "
    f"level, {TOTALS} FROM {ITEMS} GROUP BY CUBE (p, i.k)",
    "two parts of one date": "SELECT date_trunc('year', x) AS y, grouping_id(date_trunc('year', x), "
    "date_trunc('month', x)) AS level, count(*) AS n, "
    "date_trunc('month', x) AS m FROM o GROUP BY GROUPING SETS ((y, m), (y), ())",
    "extremes": f"SELECT o.k, {LEVEL}, o.g, count(*) AS n, max(i.d) AS m, min(i.h) AS l FROM {ITEMS} "
    "GROUP BY CUBE (o.k, o.g)",
}
# Kept by their groups, which an internal view stores.
STORED: Final = {
    "no level": "SELECT k, g, count(*) AS n FROM o GROUP BY ROLLUP (k, g)",
    "column that may be NULL": "SELECT k, g, count(*) AS n FROM o WHERE k IS NOT NULL GROUP BY CUBE (k, g)",
    "column or another": "SELECT k, count(*) AS n FROM o WHERE k IS NOT NULL OR g = 'a' GROUP BY CUBE (k)",
    "left join": "SELECT i.id, count(*) AS n FROM o LEFT JOIN i ON i.id = o.id GROUP BY CUBE (i.id)",
    "not all columns": "SELECT k, grouping_id(k, g) AS level, count(*) AS n FROM o GROUP BY ROLLUP (k, g)",
    "no count of rows": "SELECT k, h, count(d) AS m, CAST(sum(d) AS DECIMAL(18, 2)) AS total FROM i "
    "GROUP BY GROUPING SETS ((k, h), (k), (h))",
    "having": "SELECT k, grouping_id(k) AS level, count(*) AS n FROM o GROUP BY ROLLUP (k) HAVING count(*) > 2",
    "having of all kinds": f"SELECT o.k AS key, o.g, {TOTALS} FROM {ITEMS} GROUP BY CUBE (o.k, o.g) "
    "HAVING (n > 1 OR grouping(o.g) = 1) AND o.k IS NOT NULL AND count(i.d) < 9",
    "derived table": "SELECT k, g, count(*) AS n FROM (SELECT k, upper(g) AS g FROM o WHERE k > 0) q "
    "GROUP BY ROLLUP (k, g)",
    "columns with one value": "SELECT x, y, count(*) AS n FROM (SELECT k AS x, k AS y FROM o) q GROUP BY ROLLUP (x, y)",
    "column or the merged one": "SELECT o.id, count(*) - 1 AS n FROM o JOIN i USING (id) GROUP BY ROLLUP (id)",
    "CTE": "WITH q AS (SELECT k, g FROM o WHERE EXISTS (SELECT 1 FROM i WHERE i.id = o.id)) SELECT a.k, b.g, "
    "count(*) AS n FROM q a JOIN q b ON b.k = a.k GROUP BY CUBE (a.k, b.g) HAVING count(*) < 9",
    "joins in parentheses": "SELECT o.k, count(*) - 1 AS n, count(*) AS m FROM (o JOIN i ON i.id = o.id) "
    "GROUP BY CUBE (o.k)",
    "computed group without its level": "SELECT upper(g) AS p, k, count(*) AS n FROM o GROUP BY ROLLUP (upper(g), k)",
    "computed groups by their aliases": "SELECT date_trunc('year', x) AS y, lower(g) AS p, count(*) AS n FROM o "
    "GROUP BY ROLLUP (y, p)",
    "computed from computed groups": "SELECT lower(upper(g)) AS p, g, concat('-', upper(g)) AS q, max(k) + 1 AS m, "
    "count(*) AS n FROM o GROUP BY ROLLUP (upper(g), g) HAVING count(*) > 1",
    "having by the name of a column": "SELECT k, count(*) AS n FROM o GROUP BY ROLLUP (k) HAVING k > 1",
    "computed from totals": "SELECT x.k, coalesce(max(x.h), -1) - count(*) AS m, count(*) AS n, "
    "CASE WHEN x.k IS NULL THEN 'none or all' END AS of FROM i x JOIN i y ON y.k = x.k GROUP BY ROLLUP (x.k)",
    "grouped column in a total": "SELECT k, count(k) AS m, max(k) AS l, count(*) AS n FROM o GROUP BY ROLLUP (k)",
}
FULL: Final = {
    "SELECT k, count(*) AS n FROM o AS q(id, k, g, x) GROUP BY CUBE (k)": "columns without NULL",
    "SELECT k, g, count(*) AS n FROM o AS q(id, k, g, x) GROUP BY ROLLUP (k, g)": "grouping_id() in SELECT",
    "SELECT k, grouping_id(k) AS level, count(g) AS n FROM o AS q(id, k, g, x) GROUP BY ROLLUP (k)": "no count(*)",
    "SELECT k, grouping_id(k) AS level, count(*) AS n FROM o AS q(id, k, g, x) GROUP BY ROLLUP (k) HAVING count(*) > 1":
    "HAVING",
    "SELECT count(*) AS n FROM o GROUP BY ROLLUP (k)": "all of their groups",
    "SELECT k % 2 AS p, count(*) AS n FROM o GROUP BY ROLLUP (k)": "all of their groups",
    "SELECT DISTINCT k, count(*) AS n FROM o GROUP BY ROLLUP (k, g)": "DISTINCT",
    "SELECT k, grouping_id(k) AS level, count(*) AS n FROM o GROUP BY GROUPING SETS ((k), (k))": "no set twice",
    "SELECT k, grouping_id(k) AS level, count(*) AS n FROM o GROUP BY ROLLUP (k, o.k)": "no set twice",
    "SELECT k % 2 AS p, grouping_id(k % 2) AS level, count(*) AS n FROM o GROUP BY ROLLUP (k % 2)": "function calls",
    "SELECT upper(g) AS p, grouping_id(upper(g)) AS level, count(*) AS n FROM o GROUP BY ROLLUP (upper(g), upper(o.g))":
    "no set twice",
    "SELECT upper(g) AS p, grouping_id(upper(g)) AS level, count(*) AS n FROM o GROUP BY ROLLUP (upper(g), ucase(g))":
    "no set twice",
    "SELECT greatest(o.k, i.k) AS p, count(*) AS n FROM o JOIN i ON i.id = o.id "
    "GROUP BY CUBE (greatest(o.k, i.k), greatest(i.k, o.k))": "no set twice",
    "SELECT day(x) AS p, count(*) AS n FROM o GROUP BY CUBE (day(x), dayofmonth(x))": "no set twice",
    # Spark may find a group in another expression over its columns.
    "SELECT upper(g) AS p, ucase(g) AS q, g, count(*) AS n FROM o GROUP BY ROLLUP (upper(g), g)": "all of their groups",
    "SELECT upper(g) AS p, g, count(*) AS n FROM o GROUP BY ROLLUP (upper(o.g), g)": "all of their groups",
    "SELECT upper(`g`) AS p, g, count(*) AS n FROM o GROUP BY ROLLUP (upper(g), g)": "all of their groups",
    "SELECT abs(k) AS p, k, abs((k)) AS q, count(*) AS n FROM o GROUP BY ROLLUP (abs(k), k)": "all of their groups",
    # No function calls.
    "SELECT NOT (k > 1) AS p, g, count(*) AS n, NOT (k > 1) IS NULL AS q FROM o GROUP BY ROLLUP (NOT (k > 1), g, k)":
    "function calls",
    "SELECT -(k) AS p, g, count(*) AS n FROM o GROUP BY ROLLUP (-(k), g)": "function calls",
    "WITH q AS (SELECT k FROM o) FROM q SELECT k, count(*) - 1 AS n GROUP BY ROLLUP (k)": "all of their groups",
    "SELECT k, grouping_id(k) AS level, count(*) AS n, count(DISTINCT g) AS m FROM o GROUP BY ROLLUP (k)": "neither",
    "SELECT o.k, max(o.id) AS g, count(*) AS n FROM o GROUP BY ROLLUP (o.k) HAVING g > 1": "HAVING",
    "SELECT o.k, max(o.x) AS x, count(*) AS n FROM o GROUP BY ROLLUP (o.k) HAVING count(x) > 1": "HAVING",
    "SELECT CAST(k AS STRING), count(*) AS n FROM o GROUP BY ROLLUP (k) HAVING k > 1": "HAVING",
    "SELECT k AS g, g AS k, count(*) AS n FROM o GROUP BY ROLLUP (k, g) HAVING k > 1": "HAVING",
    "SELECT i.k, grouping_id(i.k) AS level, count(*) AS n FROM o FULL JOIN i ON i.id = o.id GROUP BY CUBE (i.k)":
    "not only inner joins",
    "SELECT CAST(d AS DOUBLE) AS f, grouping_id(d) AS level, count(*) AS n FROM i GROUP BY ROLLUP (d)": "all of their",
}  # fmt: skip
HISTORIES: Final = 60

maintained = partial(kept_by, "ADD", TABLES)


@pytest.fixture(autouse=True)
def over_no_rows_as_in_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over no rows, DuckDB has a row for the set of all rows, like Postgres, and Spark has none."""
    query = Memory._query

    def counted(self: Memory, sql: str, columns: Sequence[str] | None, rows: Mapping[str, pa.Table]) -> pa.Table:
        found = query(self, sql, columns, rows)
        counts = ["n", *re.findall(r"count\(\*\) AS (value_\d+)", sql)]
        count = next((name for name in counts if name in found.column_names), None)
        return found if count is None else found.filter(pc.greater(found.column(count), 0))

    monkeypatch.setattr(Memory, "_query", counted)


def rows(memory: Memory) -> set[tuple[Any, ...]]:
    return set(tuples(memory.views["v"].stored.versions[-1]))


def is_noticed(memory: Memory, seed: int) -> None:
    played(memory, random_states(TABLES, seed, count=6))


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained(VIEWS[name], *random_states(TABLES, f"{SEED} {name}", count=OF_EACH_VIEW))
        assert is_kept(memory)
        assert memory.in_full == 0 or name in ("sum without its count", "extremes")


@pytest.mark.parametrize("name", VIEWS)
def test_view_equals_its_sql_through_a_long_history_of_small_changes(name: str) -> None:
    with naming_the_seed():
        states = small_changes(Draws(Random(f"{SEED} {name}").randrange), TABLES, epochs=EPOCHS)
        assert is_kept(maintained(VIEWS[name], *states))


@pytest.mark.parametrize("name", STORED)
def test_view_over_stored_groups_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = kept_by("KEYS", TABLES, STORED[name], *random_states(TABLES, f"{SEED} {name}", count=OF_EACH_VIEW))
        assert memory.views["_cv_v_1"].plan.strategy == "ADD"
        assert is_kept(memory)


@pytest.mark.parametrize("name", STORED)
def test_view_over_stored_groups_equals_its_sql_through_a_long_history_of_small_changes(name: str) -> None:
    with naming_the_seed():
        states = small_changes(Draws(Random(f"{SEED} {name}").randrange), TABLES, epochs=EPOCHS)
        assert is_kept(kept_by("KEYS", TABLES, STORED[name], *states))


@pytest.mark.parametrize("sql", FULL)
def test_other_view_is_computed_in_full_with_the_reason(sql: str) -> None:
    plan = declared(TABLES, sql).views["v"].plan
    assert plan.strategy == "FULL"
    assert FULL[sql] in plan.reason


def test_groups_of_null_are_not_the_totals() -> None:
    memory = maintained(VIEWS["one column"], {"b": [(None, 1), (1, 1)]}, {"b": [(None, 1), (None, None), (1, 1)]})
    assert rows(memory) == {(None, 0, 2, 1), (1, 0, 1, 1), (None, 1, 3, 2)}


def test_view_without_rows_is_empty_and_comes_back() -> None:
    full: State = {"o": [order(1)], "i": [item(1, 1, "1.00")]}
    assert rows(maintained(ROLLUP, full, {"o": [order(1)]})) == set()
    assert len(rows(maintained(ROLLUP, full, {}, full))) == 3


@pytest.mark.parametrize("left", [None, "0.00"])
def test_sum_that_may_be_null_or_zero_is_left_to_full(left: str | None) -> None:
    sql = VIEWS["sum without its count"]
    before, after = ({"i": [(1, 1, 1, Decimal(each)), (2, 1, 1, left and Decimal(left))]} for each in ("5.00", "0.00"))
    memory = maintained(sql, before, {"i": after["i"][1:]})
    assert memory.in_full > 0


def test_change_reads_only_what_it_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    orders, items = [order(number) for number in range(50)], [item(1, number, "1.00") for number in range(50)]
    memory = maintained(ROLLUP, {"o": orders, "i": items})
    read = counting_rows(monkeypatch)
    memory.repeats = False
    memory.epoch({"b": (), "o": orders, "i": [*items, item(2, 3, "3.00")]})
    assert (read, memory.in_full) == ([2], 0)
    assert (None, None, 3, 51, Decimal("53.00"), 51) in rows(memory)


# ---- negative controls


def test_other_leaves_at_the_new_version_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = lookups.look_up
    monkeypatch.setattr(lookups, "look_up", lambda work, of, _, *rest: look_up(work, of, of.new, *rest))
    check_fails(lambda seed: is_noticed(declared(TABLES, ROLLUP), seed), HISTORIES, first=1)


def test_removed_rows_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    delta = Incremental.delta

    def forgetful(work: Any, leaf: Any) -> RowsChanged:
        found = delta(work, leaf)
        return RowsChanged(found.old.slice(0, 0), found.new)

    monkeypatch.setattr(Incremental, "delta", forgetful)
    check_fails(lambda seed: is_noticed(declared(TABLES, VIEWS["cube"]), seed), HISTORIES)


def test_groups_that_stay_without_rows_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    new_rows = strategy._new_rows

    def kept(work: Any, stored: pa.Table, *rest: Any) -> tuple[pa.Table, pa.Table]:
        found, doubtful = new_rows(work, stored, *rest)
        return (found if found.num_rows else stored), doubtful

    monkeypatch.setattr(strategy, "_new_rows", kept)
    check_fails(lambda seed: is_noticed(declared(TABLES, ROLLUP), seed), HISTORIES)

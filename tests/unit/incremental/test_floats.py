"""Floating-point columns as keys: NULL, NaN and -0.0 are found as Spark groups and joins them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Final

import pyarrow as pa
import pytest

from cdc_views.engine.views import lookups
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, Table
from tests.unit.incremental.played import check_fails, declared, played, random_states

strategy: Final = import_module("cdc_views.engine.views.strategies.keys")  # the package has a function of that name
NAN: Final = float("nan")
HISTORIES: Final = 100
TABLES: Final = (
    Table("t", {"id": "bigint", "x": "double", "g": "int"}, ("id",)),
    Table("u", {"id": "bigint", "x": "double", "g": "int"}, ("id",)),
    Table("w", {"id": "bigint", "x": "float", "g": "int"}, ("id",)),
)
VIEWS: Final = {
    "groups": "SELECT x, count(*) AS n, max(g) AS m FROM t GROUP BY x",
    "groups of two columns": "SELECT x, g, max(id) AS m FROM t GROUP BY x, g",
    "groups of short floats": "SELECT x, max(g) AS m FROM w GROUP BY x",
    "distinct": "SELECT DISTINCT t.x FROM t JOIN u ON u.g = t.g",
    "inner join": "SELECT t.id, u.id AS o, t.x FROM t JOIN u ON t.x = u.x",
    "self join": "SELECT a.id, b.id AS o FROM t a JOIN t b ON a.x = b.x",
    "join by two columns": "SELECT t.id, u.id AS o FROM t JOIN u ON t.x = u.x AND t.g = u.g",
    "left join": "SELECT t.id, t.x, u.id AS o FROM t LEFT JOIN u ON t.x = u.x",
    "full join": "SELECT t.id, u.id AS o FROM t FULL JOIN u ON t.x = u.x",
    "merged full join": "SELECT x, t.id, u.id AS o FROM t FULL JOIN u USING (x)",
    "exists": "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.x = t.x)",
    "anti join": "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.x = t.x)",
    "in": "SELECT id, g FROM t WHERE x IN (SELECT x FROM u)",
    "not in": "SELECT id, g FROM t WHERE x IS NOT NULL AND x NOT IN (SELECT x FROM u WHERE x IS NOT NULL)",
    "scalar": "SELECT id, (SELECT count(*) FROM u WHERE u.x = t.x) AS n FROM t",
    "window": "SELECT id, x, rank() OVER (PARTITION BY x ORDER BY g NULLS FIRST) AS r FROM t",
    "top rows": "SELECT id, x FROM t QUALIFY row_number() OVER (PARTITION BY x ORDER BY g NULLS FIRST, id) <= 2",
    "counted groups": "SELECT x, count(*) AS n FROM t GROUP BY x",
    "bag": "SELECT x, g FROM t",
    "union": "SELECT x FROM t UNION SELECT x FROM u",
    "union all": "SELECT x, g FROM t UNION ALL SELECT x, g FROM u",
    "intersect": "SELECT x, g FROM t INTERSECT SELECT x, g FROM u",
    "except": "SELECT x FROM t EXCEPT SELECT x FROM u",
    "except all": "SELECT x FROM t EXCEPT ALL SELECT x FROM u",
    "group by an expression": (
        "SELECT CASE WHEN g = 1 THEN CAST('NaN' AS DOUBLE) ELSE x END AS y, count(*) AS n FROM t "
        "GROUP BY CASE WHEN g = 1 THEN CAST('NaN' AS DOUBLE) ELSE x END"
    ),
    "groups joined": ("SELECT u.id, q.x, q.m FROM u JOIN (SELECT x, max(g) AS m FROM t GROUP BY x) q ON q.x = u.x"),
}


def maintained_at_random(sql: str, seed: int) -> Memory:
    return played(declared(TABLES, sql), random_states(TABLES, seed))


@pytest.mark.parametrize("name", VIEWS)
def test_view_over_floats_equals_its_sql_after_every_epoch_of_a_random_history(name: str) -> None:
    with naming_the_seed():
        memory = maintained_at_random(VIEWS[name], SEED)
    assert memory.views["v"].plan.strategy == "KEYS", memory.views["v"].plan.reason


@pytest.mark.parametrize("sql", ["SELECT t.id FROM t JOIN w ON w.x = t.x", "SELECT t.id FROM t JOIN u ON u.x = t.g"])
def test_join_of_floats_with_values_of_other_types_is_computed_in_full(sql: str) -> None:
    assert declared(TABLES, sql).views["v"].plan.strategy == "FULL"


def test_floats_are_the_same_as_compared_where_spark_takes_them_for_equal() -> None:
    values = [0.0, -0.0, NAN, -NAN, None, 1.5]
    for kind in (pa.float32(), pa.float64()):
        one, other, nan, minus_nan, null, rest = lookups.as_compared(pa.chunked_array([values], kind)).to_pylist()
        assert (one, nan, null) == (other, minus_nan, None)
        assert len({one, nan, rest}) == 3


# ---- negative controls


@pytest.mark.parametrize(("name", "first"), [("groups", 27), ("groups of two columns", 38), ("except", 8)])
def test_rows_that_are_compared_by_their_bits_are_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, first: int
) -> None:
    def by_bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
        return pa.chunked_array([[None if value is None else str(value) for value in column.to_pylist()]], pa.string())

    monkeypatch.setattr(strategy, "as_compared", by_bits)
    check_fails(lambda seed: maintained_at_random(VIEWS[name], seed), HISTORIES, first)


@pytest.mark.parametrize(("name", "first"), [("groups", 11), ("inner join", 5)])
def test_lookups_that_do_not_find_equal_floats_are_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str, first: int
) -> None:
    look_up = strategy.look_up

    def only_the_same(work: object, of: object, version: int, wanted: pa.Table, names: Iterable[str]) -> pa.Table:
        found = look_up(work, of, version, wanted, names)
        known = {str(row) for row in zip(*(column.to_pylist() for column in wanted.columns), strict=True)}
        own = zip(*(found.column(column).to_pylist() for column in wanted.column_names), strict=True)
        return found.filter(pa.array([str(row) in known for row in own], pa.bool_()))

    monkeypatch.setattr(strategy, "look_up", only_the_same)
    check_fails(lambda seed: maintained_at_random(VIEWS[name], seed), HISTORIES, first)

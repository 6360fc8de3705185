"""Operators that Spark groups in another way than sqlglot and DuckDB: no view is planned by the reading of those."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from cdc_views.base.names import TableName
from cdc_views.plan.compiled import compile_view
from cdc_views.plan.incremental.maintenance import Maintenance, maintenance
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph
from tests.unit.incremental.memory import TYPES, Table

TABLES: Final = (
    Table("t", {"id": "bigint", "a": "bool", "b": "bool", "s": "text", "k": "int"}, ("id",)),
    Table("u", {"id": "bigint", "c": "bool", "s": "text", "k": "int"}, ("id",)),
)
NAMES: Final = {f"public.{table.name}": table for table in TABLES}
IN: Final = "IN (SELECT c FROM u WHERE c IS NOT NULL)"


def planned(sql: str) -> Maintenance:
    """The plan of a view of whole numbers. DuckDB, which other tests ask, cannot parse all of these texts."""
    view = parse_view(f"CREATE MATERIALIZED VIEW v AS {sql}", Path("v.sql"))
    schemas = {name: {each: TYPES[kind][0] for each, kind in table.columns.items()} for name, table in NAMES.items()}
    keys = {name: table.key for name, table in NAMES.items()}
    compiled = compile_view(view, ViewGraph([view], [TableName.parse(name) for name in NAMES]), schemas, keys)
    types = {name: {each.name: str(each.type) for each in table.schema} for name, table in NAMES.items()}
    assert compiled.parsed is not None
    columns = dict.fromkeys(compiled.parsed.tree.named_selects, "int64")
    return maintenance(compiled, types, columns, keys)


def reason(sql: str) -> str:
    """Why a view is FULL; empty if it is not."""
    plan = planned(sql)
    return plan.reason if plan.strategy == "FULL" else ""


@pytest.mark.parametrize(
    "condition",
    [
        f"a = b {IN}",
        f"b = a NOT {IN}",
        f"b <> a {IN}",
        f"a <=> b {IN}",
        f"true = a {IN}",
        f"k > 1 = a {IN}",
        f"a AND (s = 'x' OR NOT a = b {IN})",
        f"CASE WHEN a = b {IN} THEN s = 'x' END",
        "a = k < 3",
        "a <=> k < 3",
        "a = s LIKE 'x'",
        "a = s LIKE 'x' ESCAPE '!'",
        "a = s NOT LIKE 'x'",
        "a = k BETWEEN 1 AND 3",
        "s LIKE 'x' = a",
        "k BETWEEN 1 AND 3 = a",
        "NOT k BETWEEN 1 AND 3 <> a",
    ],
)
def test_operators_that_spark_groups_in_another_way_are_full(condition: str) -> None:
    sql = f"SELECT id FROM t WHERE a IS NOT NULL AND b IS NOT NULL AND {condition}"
    assert "Spark groups these in another way" in reason(sql)


@pytest.mark.parametrize(
    "condition",
    [
        f"a {IN}",
        f"b NOT {IN}",
        f"NOT (b {IN})",
        "a = b = a",
        "k > 1 = a",
        "a = (k < 3)",
        "(s LIKE 'x') = a",
        "a = b IS NOT NULL",
        "NOT a = b AND s LIKE 'x' OR k BETWEEN 1 AND 3",
    ],
)
def test_operators_that_both_group_alike_are_kept_by_keys(condition: str) -> None:
    assert reason(f"SELECT id FROM t WHERE a IS NOT NULL AND b IS NOT NULL AND {condition}") == ""

"""Spark's ordered lists in the SQL of DuckDB: collect_list() drops NULL, and NULL is the first value of a field."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from sqlglot import exp, parse_one

_LISTS: Final = re.compile(r"collect_list|array_agg", re.IGNORECASE)


@lru_cache(2000)
def in_duckdb(sql: str) -> str:
    """A query with ordered lists as DuckDB writes it; another one as it is."""
    return parse_one(sql, read="spark").transform(_ordered).sql("duckdb") if _LISTS.search(sql) else sql


def _ordered(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.ArraySlice):
        most = node.args["end"].sql()
        return parse_one(f"({_ordered(node.this).sql('duckdb')})[{node.args['start'].sql()}:{most}]", read="duckdb")
    return _list(node) if isinstance(node, exp.ArraySort) else node


def _list(node: exp.ArraySort) -> exp.Expr:
    collected, conditions = node.this, list[str]()
    if isinstance(collected, exp.Filter):
        conditions.append(collected.expression.this.sql("duckdb"))
        collected = collected.this
    value = collected.this
    is_struct = isinstance(value, exp.Struct)
    if not is_struct:
        conditions.append(f"{value.sql('duckdb')} IS NOT NULL")
    ascends = node.args.get("asc")
    direction = "DESC NULLS LAST" if ascends is not None and not ascends.this else "ASC NULLS FIRST"
    fields = [each.expression for each in value.expressions] if is_struct else [value]
    order = ", ".join(f"{each.sql('duckdb')} {direction}" for each in fields)
    condition = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    return parse_one(f"coalesce(list({value.sql('duckdb')} ORDER BY {order}){condition}, [])", read="duckdb")

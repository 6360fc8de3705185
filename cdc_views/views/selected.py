"""The names that a SELECT gives to its columns, as far as its text alone says."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError


def selected_names(sql: str) -> tuple[str, ...] | None:
    """The names of all columns of a query; None if it has `*`, or a column without a name, or is not understood."""
    try:
        query = sqlglot.parse_one(sql, dialect="spark")
        items = query.selects if isinstance(query, exp.Query) else []
    except (SqlglotError, AttributeError, RecursionError):  # "|> LIMIT" after an ORDER BY makes an AttributeError
        return None  # which is reported where the view is compiled
    names = tuple(map(given_name, items))
    return names if names and all(names) else None


def given_name(item: exp.Expr) -> str:
    """The name of an item of a SELECT; empty if Spark makes one up, and for a star.

    Spark calls `string(k)` and `(k)` "k", and `k + 1` "(k + 1)".
    """
    return item.alias_or_name if isinstance(item, exp.Alias | exp.Column) and not item.is_star else ""

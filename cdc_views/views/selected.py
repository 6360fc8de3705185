"""The names that a SELECT gives to its columns, as far as its text alone says."""

from __future__ import annotations

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError


def selected_names(sql: str) -> tuple[str, ...] | None:
    """The names of all columns of a query; None if it has `*`, or a column without a name, or is not understood."""
    try:
        query = sqlglot.parse_one(sql, dialect="spark")
        items = query.selects if isinstance(query, exp.Query) else []
    except (ParseError, RecursionError):
        return None  # which is reported where the view is compiled
    is_named = all(isinstance(item, exp.Alias | exp.Column) and not item.is_star for item in items)
    return tuple(item.alias_or_name for item in items) if items and is_named else None

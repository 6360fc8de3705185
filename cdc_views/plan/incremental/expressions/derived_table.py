"""Derived tables whose rows an internal view stores: those that are joined by a column that they compute.

    SELECT m.category_id, p.id
    FROM (SELECT category_id, max(price) AS price FROM products GROUP BY category_id) m
    JOIN products p ON p.price = m.price

No lookup in `products` finds the groups whose largest price is a given one. The rows of the derived table can be looked
up by any column where they are stored. So the plan reads the internal view like a table that the text names there: its
rows at both versions are those of the derived table, its changes are found like those of a table, and the text that
runs has the rows of the internal view that are looked up in place of the derived table.

Such a derived table is a subquery of FROM or a CTE, and groups the rows of one table by GROUP BY. The internal view is
maintained in the same epoch, before the view, and must not be FULL. Its columns must have one form for each value: a
maximum of -0.0 and 0.0 is either of them, and a function of the stored one may give another result than over the other.

The groups of a query that keeps the first of them are stored in the same way (delta_plans/first_rows.py), and those of
grouping sets (stored_groups.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.expressions.subquery_text import StoredSubquery, WantedSubquery, is_over_tables, span_of
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.selected import given_name
from cdc_views.views.text import has_collation

_CLAUSES: Final = frozenset({"expressions", "from_", "where", "group", "having"})


@dataclass(frozen=True)
class WantedTable(WantedSubquery):
    """A derived table. Without a `select`, all of its columns are selected. `may_repeat`: it may have equal rows."""

    select: str = ""
    may_repeat: bool = False
    after: str = " "  # text may follow a parenthesis without a space
    is_relation: bool = True

    @property
    def is_of_totals(self) -> bool:
        """Whether it stores totals from which the view is computed."""
        return bool(self.select)


@dataclass(frozen=True)
class StoredDerivedTable(StoredSubquery):
    """An internal view with the rows of a derived table. `key` are the columns that identify a row, if any do."""

    wanted: WantedTable
    key: tuple[str, ...]

    @property
    def select(self) -> str:
        """What stands before the relation of the stored rows, in place of the derived table."""
        return self.wanted.select or f"SELECT {', '.join(map(quoted_name, self.types))} FROM "


def place_of(query: ParsedQuery, select: exp.Expr) -> tuple[int, int] | None:
    """Where the text has a derived table that an internal view may store: its start and its end."""
    if not isinstance(select, exp.Select) or select.args.get("group") is None:
        return None
    if not is_over_tables(select, _CLAUSES) or not all(map(given_name, select.expressions)):
        return None
    span = span_of(query, select)
    if span is None:
        return None
    tokens = query.tokens[span[0] : span[1] + 1]
    if has_collation(tokens):  # the type of a stored column has none
        return None
    return tokens[0].start, tokens[-1].end + 1

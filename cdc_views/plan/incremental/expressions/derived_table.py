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
stored -0.0 stays if the group has 0.0 now, and a function of it would give another result than over 0.0.

The groups of a query that keeps the first of them are stored in the same way (delta_plans/first_rows.py), and those of
grouping sets (stored_groups.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.expressions.subquery_text import is_over_tables, span_of
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.selected import given_name
from cdc_views.views.text import has_collation

_CLAUSES: Final = frozenset({"expressions", "from_", "where", "group", "having"})


@dataclass(frozen=True)
class WantedTable:
    """A derived table over some tables whose rows no internal view stores yet: `text[start:end]` of the view.

    `sql` is the SELECT of the internal view. `select` and `after` stand around the relation of the stored rows in the
    place of the text; without `select`, all columns are selected.
    """

    sources: tuple[str, ...]
    start: int
    end: int
    sql: str
    select: str = ""
    after: str = " "  # text may follow a parenthesis without a space

    @property
    def is_of_totals(self) -> bool:
        """Whether it stores totals from which the view is computed."""
        return bool(self.select)


@dataclass(frozen=True)
class StoredDerivedTable:
    """An internal view with the rows of a derived table.

    `types` has the Arrow types of its columns, in order, `key` those that identify a row. The rest is that of `wanted`.
    """

    name: str
    types: Mapping[str, str]
    key: tuple[str, ...]
    wanted: WantedTable

    @property
    def sql(self) -> str:
        """Its SELECT."""
        return self.wanted.sql

    @property
    def start(self) -> int:
        """Where the derived table begins in the text of the outer view."""
        return self.wanted.start

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.wanted.end

    @property
    def is_relation(self) -> bool:
        """Whether it stands in FROM."""
        return True

    @property
    def select(self) -> str:
        """What stands before the relation of the stored rows, in place of the derived table."""
        return self.wanted.select or f"SELECT {', '.join(map(quoted_name, self.types))} FROM "

    @property
    def after(self) -> str:
        """What stands after it."""
        return self.wanted.after


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

"""Derived tables whose rows an internal view stores: those that are joined by a column that they compute, and those
with ORDER BY and LIMIT.

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

    SELECT p.id, u.name FROM (SELECT id, author_id FROM posts ORDER BY created_at DESC, id DESC LIMIT 100) p
    JOIN users u ON u.id = p.author_id

One changed row may move any other over the limit, so no lookup finds what it affects. Where the first rows are stored,
as those of a view of their own are (delta_plans/first_rows.py), the rows that come and go are known. That view selects
the keys of its tables, too. The query may stand in IN.

The groups of a query that keeps the first of them are stored in the same way (delta_plans/first_rows.py), and those of
grouping sets (stored_groups.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType, exp

from cdc_views.plan.facts.keys import is_aggregated
from cdc_views.plan.incremental.columns import Column, Leaf, LeafColumn, start_of
from cdc_views.plan.incremental.expressions.select_text import completed, free_names, items_of
from cdc_views.plan.incremental.expressions.subquery_text import (
    StoredSubquery,
    WantedSubquery,
    is_of_rows,
    is_over_tables,
    relations_of,
    span_of,
)
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.selected import given_name
from cdc_views.views.text import has_collation

_OF_GROUPS: Final = frozenset({"expressions", "from_", "where", "group", "having"})
_OF_FIRST_ROWS: Final = _OF_GROUPS.union({"joins", "distinct", "order", "limit", "offset"})


@dataclass(frozen=True)
class WantedTable(WantedSubquery):
    """A derived table. Without a `select`, its columns are selected: all that are stored, but `keys` at the end.

    `may_repeat`: it may have equal rows.
    """

    select: str = ""
    keys: int = 0
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
    def columns(self) -> list[str]:
        """The columns of the derived table, in order."""
        return [*self.types][: len(self.types) - self.wanted.keys]

    @property
    def select(self) -> str:
        """What stands before the relation of the stored rows, in place of the derived table."""
        return self.wanted.select or f"SELECT {', '.join(map(quoted_name, self.columns))} FROM "


def tokens_of_table(query: ParsedQuery, select: exp.Expr) -> Sequence[Token] | None:
    """The tokens of a derived table that an internal view may store."""
    if not isinstance(select, exp.Select):
        return None
    is_storable = (
        is_of_rows(select, _OF_FIRST_ROWS)
        if select.args.get("limit")
        else bool(select.args.get("group")) and is_over_tables(select, _OF_GROUPS)
    )
    if not is_storable or not _names_inputs(query, select):
        return None
    names = [given_name(item).lower() for item in select.expressions if not item.is_star]
    if not all(names) or len({*names}) < len(names):
        return None
    span = span_of(query, select)
    if span is None:
        return None
    tokens = query.tokens[span[0] : span[1] + 1]
    return None if has_collation(tokens) else tokens  # the type of a stored column has none


def _names_inputs(query: ParsedQuery, select: exp.Select) -> bool:
    """Whether all names of relations in a SELECT are those of tables and views, and none is that of a CTE; and whether
    it names columns of its own relations only.
    """
    inputs = {id(reference.node) for reference in query.references}
    named = [table for table in select.find_all(exp.Table) if isinstance(table.this, exp.Identifier | exp.Dot)]
    relations = {each.alias_or_name.lower() for each in (*named, *select.find_all(exp.Subquery))}
    return all(id(table) in inputs for table in named) and all(
        column.table.lower() in ("", *relations) for column in select.find_all(exp.Column)
    )


def first_rows(
    query: ParsedQuery,
    select: exp.Expr,
    leaves: Sequence[Leaf],
    columns: Sequence[Column],
    appended: Mapping[int, str],
) -> WantedTable | None:
    """What an internal view would store for a derived table with ORDER BY and LIMIT, which has these columns.

    `leaves` are those of its tables, `appended` is what makes the orders of the view total, by offset: which of several
    rows that tie come first must be the same in both. None if it may not stand alone.
    """
    tokens = tokens_of_table(query, select)
    if tokens is None or not isinstance(select, exp.Select):
        return None
    if tokens[0].token_type is not TokenType.SELECT:  # Spark also takes FROM before it
        return None
    *items, rest = items_of(select, tokens)
    keys = [] if _is_reduced(select) else list(_missing_keys(select, leaves, columns))
    # ORDER BY would mean the new column, and not that of a table.
    free = free_names([*map(given_name, select.expressions), *(name for leaf in leaves for name in leaf.types)])
    sql = query.definition.sql
    stored = [completed(sql, item, appended) for item in items] + [f"{key} AS {next(free)}" for key in keys]
    sources = dict.fromkeys(leaf.source for leaf in leaves)
    text = f"SELECT {', '.join(stored)} {completed(sql, rest, appended)}"
    return WantedTable(tuple(sources), tokens[0].start, tokens[-1].end + 1, text, keys=len(keys))


def _is_reduced(select: exp.Select) -> bool:
    """Whether a row of a SELECT may come from several rows of its FROM, or from those of a subquery."""
    has_groups = bool(select.args.get("group") or select.args.get("distinct")) or is_aggregated(select)
    return has_groups or not all(isinstance(relation, exp.Table) for relation in relations_of(select))


def _missing_keys(select: exp.Select, leaves: Sequence[Leaf], columns: Sequence[Column]) -> Iterator[str]:
    """The columns of the keys of its tables that a SELECT with these columns does not have, as it may write them."""
    hidden = [join.this for join in select.args.get("joins") or () if join.kind in ("SEMI", "ANTI")]
    tables = [each for each in relations_of(select) if isinstance(each, exp.Table) and each not in hidden]
    names = {start_of(table): quoted_name(table.alias_or_name) for table in tables}
    selected = {each for column in columns for each in column.origin}
    for leaf in (leaf for leaf in leaves if leaf.path[-1] in names):
        for name in sorted(leaf.never_null):
            if LeafColumn(leaf, name) not in selected:
                yield f"{names[leaf.path[-1]]}.{quoted_name(name)}"

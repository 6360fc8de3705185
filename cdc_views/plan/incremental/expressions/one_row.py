"""Subqueries with one row that does not depend on the rows around them: an internal view stores that row.

    SELECT id, price FROM products WHERE price > (SELECT avg(price) FROM products)
    SELECT id, total * (SELECT rate FROM taxes WHERE country = 'NL') AS tax FROM orders
    SELECT p.id, price / q.total FROM products p CROSS JOIN (SELECT sum(price) AS total FROM products) q

As long as the values stay what they are, they are constants, and the view is one over its other tables. So the plan has
no operator for the subquery, and in the text that runs, `SELECT value_1 FROM` its stored row stands in its place, with
the alias of the value. If a value changes, each row of the view may change: that epoch is FULL.

Such a subquery is an aggregate over all rows of a table or a join, without HAVING, so it has exactly one row. It
selects one value, or in FROM several, each with an alias. Or it is a column or an expression of one table, used as a
value, with or without ORDER BY and LIMIT: then it may have no row, which is NULL, and with two rows Spark fails. All of
its names are those of columns of its tables, so it means the same where it stands alone. The internal view must be kept
by ADD, or where it has no aggregate not be FULL: to compute the value in full in each epoch would cost as much as to
compute the view. So only the aggregates are stored, beside a sum or an average with what ADD needs; a function of them,
such as `coalesce(sum(price), 0)`, is written over the stored values.

    SELECT id FROM users WHERE NOT EXISTS (SELECT 1 FROM holidays WHERE is_today)

An EXISTS that does not depend on the row around it is such a constant, too. The internal view counts the rows of its
tables; in the text that runs, `SELECT 1 FROM` the stored row `WHERE value_1 > 0` stands in its place. The count may
change, as long as it stays 0, or more than 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import Token, TokenType, exp

from cdc_views.base.names import is_table
from cdc_views.plan.facts.keys import MAY_AGGREGATE, is_aggregated, own_nodes
from cdc_views.plan.incremental.columns import Leaf
from cdc_views.plan.incremental.expressions.select_text import (
    VALUE,
    StoredCalls,
    completed,
    free_names,
    items_of,
    replaced,
    text_of,
    without_alias,
)
from cdc_views.plan.incremental.expressions.subquery_text import (
    StoredSubquery,
    WantedSubquery,
    is_over_tables,
    relations_of,
    span_of,
)
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import has_collation

_Kind = Literal["totals", "value", "existence"]

_CLAUSES: Final = frozenset({"expressions", "from_", "joins", "where"})
_OF_FIRST_ROW: Final = _CLAUSES.union({"order", "limit"})
_OF_FROM: Final = (exp.From, exp.Join, exp.Lateral, exp.CTE)
# Where a subquery has rows, or is a set of values.
_OF_ROWS: Final = (*_OF_FROM, exp.SetOperation, exp.In, exp.Exists, exp.Any, exp.All)


@dataclass(frozen=True)
class WantedRow(WantedSubquery):
    """A subquery with one row.

    Its internal view has these `columns`: first `values` that the view depends on, then what ADD needs beside them. If
    it is an existence, the value is a count, of which only matters whether it is 0.
    """

    kind: _Kind
    values: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class StoredRow(StoredSubquery):
    """An internal view with the row of a subquery."""

    wanted: WantedRow

    @property
    def is_existence(self) -> bool:
        """Whether it only matters whether the value is 0."""
        return self.wanted.kind == "existence"

    @property
    def values(self) -> dict[str, str]:
        """The columns that the view depends on, and their types."""
        return {name: self.types[name] for name in self.wanted.columns[: self.wanted.values]}


def one_row(
    query: ParsedQuery, select: exp.Expr, scope: Scope, leaves: Sequence[Leaf], appended: Mapping[int, str]
) -> WantedRow | None:
    """What an internal view would store for a subquery with this FROM over `leaves`; None if it may not stand alone.

    `appended` is what makes the orders of the view total, by offset.
    """
    if not isinstance(select, exp.Select) or (kind := _kind(select)) is None:
        return None
    sources = tuple(dict.fromkeys(leaf.source for leaf in leaves))
    if not _has_own_names(select, kind, scope) or (kind == "value" and not all(map(is_table, sources))):
        return None
    span = span_of(query, select)
    if span is None:
        return None
    tokens = query.tokens[span[0] : span[1] + 1]
    # The type of a stored column has no collation. Spark also takes FROM before SELECT.
    if has_collation(tokens) or tokens[0].token_type is not TokenType.SELECT:
        return None
    found = _STORED[kind](_Subquery(query.definition.sql, select, tokens, leaves[0], appended))
    if found is None:
        return None
    return WantedRow(
        sources,
        tokens[0].start,
        tokens[-1].end + 1,
        found.sql,
        found.select,
        found.after,
        is_relation=isinstance(_holder(select), _OF_FROM),
        kind=kind,
        values=found.values,
        columns=tuple(map(VALUE, range(1, len(found.columns) + 1))),
    )


def may_stand_alone(select: exp.Expr) -> bool:
    """Whether a subquery has one row of tables that are named there, or EXISTS asks for its rows."""
    return isinstance(select, exp.Select) and _kind(select) is not None


def _kind(select: exp.Select) -> _Kind | None:
    is_first = bool(select.args.get("order") and select.args.get("limit"))
    if not is_over_tables(select, _OF_FIRST_ROW if is_first else _CLAUSES):
        return None
    holder, items = _holder(select), select.expressions
    if isinstance(holder, exp.Exists) and not is_first:
        # Any function might be an aggregate, which has a row always.
        is_plain = all(isinstance(item.unalias(), exp.Literal | exp.Star | exp.Column) for item in items)
        return "existence" if is_plain else None
    if is_aggregated(select) and not is_first:
        # The names of values without an alias are Spark's choice.
        has_values = all(item.alias for item in items) if isinstance(holder, _OF_FROM) else len(items) == 1
        return "totals" if has_values else None
    is_value = isinstance(select.parent, exp.Subquery) and not isinstance(holder, _OF_ROWS) and len(items) == 1
    if len(relations_of(select)) > 1:  # the key of a join is not known here
        return None
    return "value" if is_value and not any(select.find_all(exp.Star, *MAY_AGGREGATE)) else None


def _has_own_names(select: exp.Select, kind: _Kind, scope: Scope) -> bool:
    """Whether all names that decide are those of columns of its tables."""
    shown = {id(item.unalias()) for item in select.expressions} if kind == "existence" else ()
    names = (node for node in own_nodes(select) if isinstance(node, exp.Column) and id(node) not in shown)
    return all(scope.resolve(node) is not None for node in names)


def _holder(select: exp.Select) -> exp.Expr | None:
    node = select.parent
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.parent
    return node


# ---- the texts


@dataclass(frozen=True)
class _Texts:
    """The SELECT of an internal view and its columns, the first `values` of which matter; the text in its place."""

    sql: str
    columns: Sequence[str]
    values: int
    select: str
    after: str = ""


@dataclass(frozen=True)
class _Subquery:
    """A subquery, its tokens in the text of the view, its first table, and what is appended to its text."""

    sql: str
    select: exp.Select
    tokens: Sequence[Token]
    table: Leaf
    appended: Mapping[int, str]


def _existence(of: _Subquery) -> _Texts:
    *_, rest = items_of(of.select, of.tokens)
    counted = f"SELECT count(*) {text_of(of.sql, rest)}"
    return _Texts(counted, ["count(*)"], 1, "SELECT 1 FROM ", f" WHERE {VALUE(1)} > 0")


def _value(of: _Subquery) -> _Texts:
    """The key beside the value says which rows change. The value keeps its alias, which ORDER BY may name."""
    item, rest = items_of(of.select, of.tokens)
    free = free_names([of.select.expressions[0].alias, *of.table.types])
    keys = [f"{quoted_name(name)} AS {next(free)}" for name in sorted(of.table.never_null)]
    columns = [text_of(of.sql, item), *keys]
    rows = completed(of.sql, rest, of.appended)
    return _Texts(f"SELECT {', '.join(columns)} {rows}", columns, 1, f"SELECT {VALUE(1)} FROM ")


def _totals(of: _Subquery) -> _Texts | None:
    *items, rest = items_of(of.select, of.tokens)
    stored = StoredCalls(of.sql)
    selected = []
    for item, each in zip(of.select.expressions, items, strict=True):
        expression = without_alias(item, each)
        values = stored.values_in(expression)
        text = replaced(of.sql, expression, values)
        if not values or not stored.are_all_of(text):
            return None
        selected.append(f"{text} AS {quoted_name(item.alias)}" if item.alias else text)
    columns = [*stored.calls, *stored.beside()]
    return _Texts(
        f"SELECT {', '.join(columns)} {text_of(of.sql, rest)}",
        columns,
        len(stored.calls),
        f"SELECT {', '.join(selected)} FROM ",
    )


_STORED: Final[Mapping[_Kind, Callable[[_Subquery], _Texts | None]]] = {
    "totals": _totals,
    "value": _value,
    "existence": _existence,
}

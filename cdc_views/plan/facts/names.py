"""Names for the columns of a view to which its SELECT gives none: those that Postgres gives.

Spark's own names, such as `count(1)`, cannot be columns of a Delta table. A call is named for its function, CASE is
"case", a cast has the name of what is cast. Postgres has no name for an operator or a literal either, so these are
refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlglot import Token, TokenType, exp

from cdc_views.errors import UnsupportedView
from cdc_views.plan.facts.keys import makes_rows
from cdc_views.plan.facts.relation import RelationFacts
from cdc_views.views.references import ParsedQuery

_DEPTH: Final = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}
_BEFORE_ITEMS: Final = (TokenType.DISTINCT, TokenType.ALL, TokenType.HINT)
_WRAPPERS: Final = (exp.Paren, exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls, exp.Bracket)


def column_names(query: ParsedQuery, rows: RelationFacts) -> tuple[str, ...] | None:
    """Return names for all columns of a query with these `rows`; None if every column has one.

    Raises UnsupportedView with file, line and column for a column that has no name in Postgres either.
    """
    select = _first_select(query.tree)
    if select is None or any(map(makes_rows, select.expressions)):
        return None  # Spark names the columns of the rows that a function returns
    items = {place: item for place, item in enumerate(select.expressions) if not _is_named(item)}
    if all(isinstance(item, exp.Dot) for item in items.values()):
        return None  # a field has its own name in Spark, too
    starts = _starts(query.tokens)
    names = [_name_of(query, item, starts[place]) for place, item in items.items()]
    missing = (rows.columns or ()).count("") != len(names)
    for place, name in zip(items, names, strict=True):
        if not name or missing:
            raise UnsupportedView(
                f"{query.definition.place(query.tokens[starts[place]].start)}: a column without a name",
                hint="give it a name with AS",
            )
    found = iter(names)
    return tuple(name or next(found) for name in rows.columns or ())


def _first_select(query: exp.Expr) -> exp.Select | None:
    """The SELECT that names the columns of a query."""
    while not isinstance(query, exp.Select):
        if not isinstance(query, exp.SetOperation | exp.Subquery):
            return None
        query = query.this
    return query


def _is_named(item: exp.Expr) -> bool:
    return isinstance(item, exp.Alias | exp.Aliases | exp.Column | exp.Star)


def _name_of(query: ParsedQuery, value: exp.Expr, start: int | None = None) -> str:
    """The name that Postgres gives to an expression that begins at the token `start`; empty if it gives none.

    The rules are those of FigureColname in Postgres's parse_target.c.
    """
    if isinstance(value, exp.Column | exp.Dot):
        return value.name
    if isinstance(value, _WRAPPERS):
        return _name_of(query, value.this, None if isinstance(value, exp.Paren) else start)
    if isinstance(value, exp.Cast):
        return _name_of(query, value.this)
    if isinstance(value, exp.Case):
        default = value.args.get("default")
        return (_name_of(query, default) if default is not None else "") or "case"
    if isinstance(value, exp.Subquery):
        select = _first_select(value)
        only = select.expressions[0] if select is not None and len(select.expressions) == 1 else None
        return "" if only is None else only.alias or _name_of(query, only)
    is_function = isinstance(value, exp.Func) and not isinstance(value, exp.Binary)
    return _function_name(query, value, start) if is_function else ""


def _function_name(query: ParsedQuery, value: exp.Expr, start: int | None) -> str:
    """As it is written: sqlglot has one class for functions of several names."""
    if "start" in value.meta:
        return query.definition.sql[value.meta["start"] : value.meta["end"] + 1].lower()
    following = query.tokens[start + 1 : start + 2] if start is not None else []
    is_call = bool(following) and following[0].token_type is TokenType.L_PAREN
    return query.tokens[start].text.lower() if is_call and start is not None else ""


def _starts(tokens: Sequence[Token]) -> list[int]:
    """The first token of each item of the SELECT that names the columns."""
    depths, depth = [], 0
    for token in tokens:
        depth += _DEPTH.get(token.token_type, 0)
        depths.append(depth)
    # Parentheses may surround the query; the queries of WITH are deeper than its SELECT.
    level = min(depth for token, depth in zip(tokens, depths, strict=True) if token.token_type is TokenType.SELECT)
    first = next(
        index for index, token in enumerate(tokens) if token.token_type is TokenType.SELECT and depths[index] == level
    )
    starts = [first + 1]
    while tokens[starts[0]].token_type in _BEFORE_ITEMS:
        starts[0] += 1
    for index in range(starts[0], len(tokens)):
        if depths[index] < level or (depths[index] == level and tokens[index].token_type is TokenType.FROM):
            break
        if depths[index] == level and tokens[index].token_type is TokenType.COMMA:
            starts.append(index + 1)
    return starts

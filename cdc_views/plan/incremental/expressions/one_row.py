"""Subqueries with one row that does not depend on the rows around them: an internal view stores that row.

    SELECT id, price FROM products WHERE price > (SELECT avg(price) FROM products)
    SELECT p.id, price / q.total FROM products p CROSS JOIN (SELECT sum(price) AS total FROM products) q

As long as the values stay what they are, they are constants, and the view is one over its other tables. So the plan has
no operator for the subquery, and in the text that runs, `SELECT value_1 FROM` its stored row stands in its place, with
the alias of the value. If a value changes, each row of the view may change: that epoch is FULL.

Such a subquery is an aggregate over all rows of one table, without HAVING, so it has exactly one row. It selects one
value, or in FROM several, each with an alias. All of its names are those of columns of the table, so it means the same
where it stands alone. The internal view must be kept by ADD: to compute the value in full in each epoch would cost as
much as to compute the view. So beside a sum or an average it stores what ADD needs.

    SELECT id FROM users WHERE NOT EXISTS (SELECT 1 FROM holidays WHERE is_today)

An EXISTS that does not depend on the row around it is such a constant, too. The internal view counts the rows of its
table; in the text that runs, `SELECT 1 FROM` the stored row `WHERE value_1 > 0` stands in its place. The count may
change, as long as it stays 0, or more than 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType, exp

from cdc_views.base.names import is_table
from cdc_views.plan.facts.keys import is_aggregated, own_nodes
from cdc_views.plan.incremental.expressions.subquery_text import is_over_one_table, span_of
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import closing

VALUE: Final = "value_{}".format

_CLAUSES: Final = frozenset({"expressions", "from_", "where"})
_DEPTH: Final = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}
# What ADD needs beside an aggregate of the same values.
_BESIDE: Final[Mapping[type[exp.Expr], tuple[str, ...]]] = {exp.Avg: ("sum", "count"), exp.Sum: ("count",)}


@dataclass(frozen=True)
class WantedRow:
    """A subquery over the table `source` whose row no internal view stores yet.

    It is `text[start:end]` of the view, and calls its values `aliases`; one that is empty has no name. `sql` is the
    SELECT of its internal view, with these columns: the values, then what ADD needs beside them. `is_existence`: the
    value is a count, of which only matters whether it is 0.
    """

    source: str
    start: int
    end: int
    aliases: tuple[str, ...]
    sql: str
    columns: tuple[str, ...]
    is_existence: bool = False


@dataclass(frozen=True)
class StoredRow:
    """An internal view with the row of a subquery, which is `text[start:end]` of the outer view.

    `sql` is its SELECT, `types` has the Arrow types of its columns. The subquery calls its values `aliases`; one that
    is empty has no name. `is_existence` is that of WantedRow.
    """

    name: str
    sql: str
    start: int
    end: int
    aliases: tuple[str, ...]
    types: Mapping[str, str]
    is_existence: bool = False

    @property
    def select(self) -> str:
        """What stands before the relation of the stored row, in place of the subquery."""
        if self.is_existence:
            return "SELECT 1 FROM "
        names = zip(self.values, self.aliases, strict=True)
        values = (f"{value} AS {quoted_name(alias)}" if alias else value for value, alias in names)
        return f"SELECT {', '.join(values)} FROM "

    @property
    def after(self) -> str:
        """What stands after the relation of the stored row."""
        return f" WHERE {VALUE(1)} > 0" if self.is_existence else ""

    @property
    def values(self) -> dict[str, str]:
        """The columns with the values of the subquery, and their types."""
        names = map(VALUE, range(1, len(self.aliases) + 1))
        return {name: self.types[name] for name in names}


def one_row(query: ParsedQuery, select: exp.Expr, scope: Scope) -> WantedRow | None:
    """What an internal view would store for a subquery with this FROM; None if it may not stand alone."""
    if not isinstance(select, exp.Select) or not may_stand_alone(select):
        return None
    (source,) = scope.sources
    is_of_table = source.leaf is not None and is_table(source.leaf.source)
    is_existence = _is_existence(select)
    where = select.args.get("where")
    nodes = (where.walk() if where else ()) if is_existence else own_nodes(select)
    columns = [node for node in nodes if isinstance(node, exp.Column)]
    if not is_of_table or any(scope.resolve(column) is None for column in columns):
        return None
    span = span_of(query, select)
    if source.leaf is None or span is None:
        return None
    first, last = span
    tokens = query.tokens[first : last + 1]
    start, end = tokens[0].start, tokens[-1].end + 1
    if is_existence:
        *_, rest = _items(tokens)
        sql = f"SELECT count(*) {query.definition.sql[rest[0].start : end]}"
        return WantedRow(source.leaf.source, start, end, ("",), sql, (VALUE(1),), is_existence)
    sql, beside = _stored(query, select, tokens)
    aliases = tuple(item.alias for item in select.expressions)
    names = tuple(map(VALUE, range(1, len(aliases) + beside + 1)))
    return WantedRow(source.leaf.source, start, end, aliases, sql, names)


def may_stand_alone(select: exp.Expr) -> bool:
    """Whether a subquery is a SELECT of aggregates from one table that is named there, or EXISTS asks for its rows."""
    return isinstance(select, exp.Select) and (_has_one_row(select) or _is_existence(select))


def _is_existence(select: exp.Select) -> bool:
    """Whether EXISTS asks for the rows of one table, or for those that meet a condition."""
    return (
        isinstance(_holder(select), exp.Exists)
        and is_over_one_table(select, _CLAUSES)
        # Any function might be an aggregate, which has a row always.
        and all(isinstance(item.unalias(), exp.Literal | exp.Star | exp.Column) for item in select.expressions)
    )


def _has_one_row(select: exp.Select) -> bool:
    has_values = all(item.alias for item in select.expressions) if _is_of_from(select) else len(select.expressions) == 1
    return has_values and is_over_one_table(select, _CLAUSES) and is_aggregated(select)


def _is_of_from(select: exp.Select) -> bool:
    """Whether the names of the values, which without an alias are Spark's choice, can be used around the subquery."""
    return isinstance(_holder(select), exp.From | exp.Join | exp.Lateral | exp.CTE)


def _holder(select: exp.Select) -> exp.Expr | None:
    node = select.parent
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.parent
    return node


def _stored(query: ParsedQuery, select: exp.Select, tokens: Sequence[Token]) -> tuple[str, int]:
    """The SELECT of the internal view, and the number of its columns beside the values of the subquery."""
    sql = query.definition.sql
    *items, rest = _items(tokens)
    beside = [
        f"{name}{sql[each[1].start : each[closing(each, 1)].end + 1]}"
        for item, each in zip(select.expressions, items, strict=True)
        if len(each) > 1 and each[1].token_type is TokenType.L_PAREN
        for name in _names_beside(item.unalias())
    ]
    before = sql[tokens[0].start : rest[0].start]
    before = before if "--" in before or not beside else before.rstrip()  # a line break ends a comment
    added = "".join(f", {each}" for each in beside) + " " * bool(beside)
    return f"{before}{added}{sql[rest[0].start : rest[-1].end + 1]}", len(beside)


def _names_beside(call: exp.Expr) -> tuple[str, ...]:
    return () if isinstance(call.this, exp.Distinct) else _BESIDE.get(type(call), ())


def _items(tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The tokens of each item of a SELECT, and those from FROM on."""
    outside = list(_outside(tokens))
    from_ = next(number for number in outside if tokens[number].token_type is TokenType.FROM)
    commas = [number for number in outside if number < from_ and tokens[number].token_type is TokenType.COMMA]
    starts = [1, *(number + 1 for number in commas), from_]
    return [*(tokens[start:end] for start, end in pairwise(starts)), tokens[from_:]]


def _outside(tokens: Sequence[Token]) -> Iterator[int]:
    """The numbers of the tokens that are in no parentheses."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += _DEPTH.get(token.token_type, 0)
        if depth == 0:
            yield number

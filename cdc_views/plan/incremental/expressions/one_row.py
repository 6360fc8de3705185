"""Subqueries with one row that does not depend on the rows around them: an internal view stores that row.

    SELECT id, price FROM products WHERE price > (SELECT avg(price) FROM products)

As long as the value stays what it is, it is a constant, and the view is one over its other tables. So the plan has no
operator for the subquery, and in the text that runs, `SELECT value_1 FROM` its stored row stands in its place, with the
alias of the value. If the value changes, each row of the view may change: that epoch is FULL.

Such a subquery is an aggregate over all rows of one table, without HAVING, so it has exactly one row. All of its names
are those of columns of the table, so it means the same where it stands alone. The internal view must be kept by ADD: to
compute the value in full in each epoch would cost as much as to compute the view. So beside a sum or an average it
stores what ADD needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType, exp

from cdc_views.base.names import is_table
from cdc_views.plan.facts.keys import is_aggregated, own_nodes
from cdc_views.plan.incremental.expressions.subquery_text import is_over_one_table, span_of
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import closing

VALUE: Final = "value_1"

_CLAUSES: Final = frozenset({"expressions", "from_", "where"})
# What ADD needs beside an aggregate of the same values.
_BESIDE: Final[Mapping[type[exp.Expr], tuple[str, ...]]] = {exp.Avg: ("sum", "count"), exp.Sum: ("count",)}


@dataclass(frozen=True)
class WantedRow:
    """A subquery over the table `source` whose row no internal view stores yet.

    It is `text[start:end]` of the view, and calls its value `alias`, unless that is empty. `sql` is the SELECT of its
    internal view, with these columns.
    """

    source: str
    start: int
    end: int
    alias: str
    sql: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class StoredRow:
    """An internal view with the row of a subquery, which is `text[start:end]` of the outer view.

    `sql` is its SELECT, `types` has the Arrow types of its columns. The subquery calls its value `alias`, unless that
    is empty.
    """

    name: str
    sql: str
    start: int
    end: int
    alias: str
    types: Mapping[str, str]

    @property
    def select(self) -> str:
        """What stands before the relation of the stored row, in place of the subquery."""
        return f"SELECT {VALUE}{f' AS {quoted_name(self.alias)}' if self.alias else ''} FROM "


def one_row(query: ParsedQuery, select: exp.Expr, scope: Scope) -> WantedRow | None:
    """What an internal view would store for a subquery with this FROM; None if it may not stand alone."""
    if not isinstance(select, exp.Select) or not _has_one_row(select):
        return None
    (source,) = scope.sources
    is_of_table = source.leaf is not None and is_table(source.leaf.source)
    columns = [node for node in own_nodes(select) if isinstance(node, exp.Column)]
    if not is_of_table or any(scope.resolve(column) is None for column in columns):
        return None
    span = span_of(query, select)
    if source.leaf is None or span is None:
        return None
    first, last = span
    sql, values = _stored(query, select, query.tokens[first : last + 1])
    names = tuple(f"value_{number}" for number in range(1, values + 1))
    start, end = query.tokens[first].start, query.tokens[last].end + 1
    return WantedRow(source.leaf.source, start, end, select.expressions[0].alias, sql, names)


def may_stand_alone(select: exp.Expr) -> bool:
    """Whether a subquery is a SELECT of one aggregate from one table that is named there."""
    return isinstance(select, exp.Select) and _has_one_row(select)


def _has_one_row(select: exp.Select) -> bool:
    return (
        is_over_one_table(select, _CLAUSES)
        and len(select.expressions) == 1
        and is_aggregated(select)
        and not (_is_lateral(select) and not select.expressions[0].alias)
    )


def _is_lateral(select: exp.Select) -> bool:
    """Whether the name of the value, which without an alias is Spark's choice, can be used around the subquery."""
    node = select.parent
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.parent
    return isinstance(node, exp.Lateral)


def _stored(query: ParsedQuery, select: exp.Select, tokens: Sequence[Token]) -> tuple[str, int]:
    """The SELECT of the internal view, and its number of columns."""
    sql = query.definition.sql
    text = sql[tokens[0].start : tokens[-1].end + 1]
    call = select.expressions[0].unalias()
    from_ = next((each.start for each in _outside(tokens) if each.token_type is TokenType.FROM), None)
    is_call = len(tokens) > 2 and tokens[2].token_type is TokenType.L_PAREN
    names = _BESIDE.get(type(call), ())
    if from_ is None or not is_call or not names or isinstance(call.this, exp.Distinct):
        return text, 1
    argument = sql[tokens[2].start : tokens[closing(tokens, 2)].end + 1]
    before, after = text[: from_ - tokens[0].start], text[from_ - tokens[0].start :]
    before = before if "--" in before else before.rstrip()  # a line break ends a comment
    return f"{before}{''.join(f', {name}{argument}' for name in names)} {after}", 1 + len(names)


def _outside(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens that are in no parentheses."""
    depth = 0
    for token in tokens:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            yield token

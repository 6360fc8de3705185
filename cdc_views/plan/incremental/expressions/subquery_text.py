"""Subqueries that an internal view may store: what they consist of, and where the view's text has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from cdc_views.plan.facts.keys import makes_rows, nested_queries, own_nodes
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import closing

_OF_TABLE: Final = frozenset({"this", "db", "alias"})


def is_over_one_table(select: exp.Select, clauses: frozenset[str]) -> bool:
    """Whether a SELECT has only these clauses, its FROM names one relation, and no subquery or window is in it."""
    from_ = select.args.get("from_")
    return (
        isinstance(from_, exp.From)
        and isinstance(from_.this, exp.Table)
        and not any(value for name, value in from_.this.args.items() if name not in _OF_TABLE)
        and not from_.this.alias_column_names
        and not any(value for name, value in select.args.items() if name not in clauses)
        and not any(nested_queries(select))
        and not any(map(makes_rows, select.expressions))
        and not any(isinstance(node, exp.Window) for node in own_nodes(select))
    )


def span_of(query: ParsedQuery, select: exp.Select) -> tuple[int, int] | None:
    """The numbers of the first and the last token: those between the nearest parentheses that are parsed as it."""
    table = select.args["from_"].this
    start = next((each.start for each in query.references if each.node is table), None)
    if start is None:
        return None  # a CTE
    at = next(number for number, token in enumerate(query.tokens) if token.start == start)
    for opening in _parentheses_around(query.tokens, at):
        first, last = opening + 1, closing(query.tokens, opening) - 1
        text = query.definition.sql[query.tokens[first].start : query.tokens[last].end + 1]
        try:
            if sqlglot.parse_one(text, dialect="spark") == select:
                return first, last
        except (SqlglotError, RecursionError):
            continue
    return None


def _parentheses_around(tokens: Sequence[Token], number: int) -> Iterator[int]:
    """The numbers of the opening parentheses around a token, the nearest first."""
    depth = 0
    for place in range(number - 1, -1, -1):
        depth += {TokenType.L_PAREN: -1, TokenType.R_PAREN: 1}.get(tokens[place].token_type, 0)
        if depth < 0:
            yield place
            depth = 0

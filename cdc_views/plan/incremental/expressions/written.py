"""The text of an expression in a view, and its words without the names that the view gives its tables.

sqlglot's trees do not say where an expression begins and ends, and one tree may stand for two texts of which Spark
makes different values (`CAST` and `TRY_CAST`). So the text is searched for around the columns of the expression, and
two expressions count as equal only if their tokens are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from cdc_views.views.references import ParsedQuery

Identity = tuple[tuple[str, str], ...]
"""The words of an expression, with the columns of its table in place of their names in the view."""

_MOST_TOKENS: Final = 60  # on each side of the columns of an expression
_QUOTES: Final = frozenset("'\"`")
_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_BEFORE: Final = frozenset(
    {
        *(TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.COMMA, TokenType.L_PAREN),
        *(TokenType.GROUP_BY, TokenType.PARTITION_BY, TokenType.ON, TokenType.WHERE, TokenType.AND, TokenType.EQ),
    }
)
_AFTER: Final = frozenset(
    {
        *(TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM, TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER),
        *(TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET),
        *(TokenType.QUALIFY, TokenType.WINDOW, TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT),
        *(TokenType.ROWS, TokenType.RANGE, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY),
        *(TokenType.JOIN, TokenType.INNER, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.CROSS),
        *(TokenType.NATURAL, TokenType.SEMI, TokenType.ANTI, TokenType.LATERAL),
        *(TokenType.AND, TokenType.WHERE, TokenType.EQ, TokenType.IN),
    }
)


@dataclass(frozen=True)
class WrittenExpression:
    """An expression: its text in the view, and what identifies it. A row has one value for each of its time windows."""

    text: str
    identity: Identity
    is_time_window: bool = False


def written(query: ParsedQuery, node: exp.Expr, columns: Mapping[int, str]) -> WrittenExpression | None:
    """The text of an expression of a view; None if it is not found with certainty.

    `columns` has all columns of the expression: their names in the table, by the offset at which the view names them.
    """
    span = _span(query, node)
    if span is None:
        return None
    tokens = query.tokens[span[0] : span[1] + 1]
    text = query.definition.sql[tokens[0].start : tokens[-1].end + 1]
    return WrittenExpression(text, tuple(_identity(query, tokens, columns)))


def offset(column: exp.Column) -> int:
    """The offset at which a view names a column, without the table before it; -1 if it is not known."""
    return int(column.this.meta.get("start", -1))


def _span(query: ParsedQuery, node: exp.Expr) -> tuple[int, int] | None:
    """The numbers of the first and the last token: the smallest span between two delimiters that is parsed as `node`.

    A text before the delimiter could give the expression another meaning, although sqlglot makes nothing of it.
    """
    at = {token.start: number for number, token in enumerate(query.tokens)}
    names = [at[start] for each in node.find_all(exp.Identifier) if (start := each.meta.get("start")) in at]
    if not names:
        return None
    for first in _outwards(query.tokens, min(names), -1):
        for last in _outwards(query.tokens, max(names), 1):
            if _may_be_one(query.tokens[first : last + 1]) and _is_parsed_as(query, first, last, node):
                return first, last
    return None


def _outwards(tokens: Sequence[Token], number: int, step: int) -> Iterator[int]:
    """The tokens at which an expression may begin (-1) or end (1), the nearest first."""
    delimiters = _BEFORE if step < 0 else _AFTER
    for _ in range(_MOST_TOKENS):
        if not 0 <= number < len(tokens):
            return
        beyond = number + step
        if beyond >= len(tokens) or (beyond >= 0 and tokens[beyond].token_type in delimiters):
            yield number
        number = beyond


def _may_be_one(tokens: Sequence[Token]) -> bool:
    """Whether the parentheses are balanced, and no comma is outside of them."""
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        if depth < 0 or (depth == 0 and token.token_type is TokenType.COMMA):
            return False
    return depth == 0


def _is_parsed_as(query: ParsedQuery, first: int, last: int, node: exp.Expr) -> bool:
    text = query.definition.sql[query.tokens[first].start : query.tokens[last].end + 1]
    try:
        tree = sqlglot.parse_one(f"SELECT {text}", dialect="spark")
    except (SqlglotError, RecursionError):
        return False
    return isinstance(tree, exp.Select) and tree.expressions == [node]


def _identity(query: ParsedQuery, tokens: Sequence[Token], columns: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    for number, token in enumerate(tokens):
        if token.start in columns:
            yield "column", columns[token.start]
        elif not _qualifies(tokens, number, columns):
            word = query.definition.sql[token.start : token.end + 1]
            yield "word", word if _QUOTES & set(word) else word.lower()


def _qualifies(tokens: Sequence[Token], number: int, columns: Mapping[int, str]) -> bool:
    """Whether a token belongs to the name of a table before a column."""
    is_dot = tokens[number].token_type is TokenType.DOT
    column = number + (1 if is_dot else 2)
    return column < len(tokens) and tokens[column].start in columns and tokens[column - 1].token_type is TokenType.DOT

"""The text of an expression in a view, and its words without the names that the view gives its tables.

Two expressions count as equal only if their tokens are (views/expression_text.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType, exp

from cdc_views.views.expression_text import span_of_expression, word
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import has_collation

Identity = tuple[tuple[str, str], ...]
"""The words of an expression, with the columns of its table in place of their names in the view."""


@dataclass(frozen=True)
class WrittenExpression:
    """An expression: its text in the view, and what identifies it. A row has one value for each of its time windows."""

    text: str
    identity: Identity
    is_time_window: bool = False


def written(query: ParsedQuery, node: exp.Expr, columns: Mapping[int, str]) -> WrittenExpression | None:
    """The text of an expression of a view; None if it is not found with certainty, or may have a collation.

    With a collation, different texts are equal.
    `columns` has all columns of the expression: their names in the table, by the offset at which the view names them.
    """
    span = span_of_expression(query, node)
    if span is None:
        return None
    tokens = query.tokens[span[0] : span[1] + 1]
    if has_collation(tokens):
        return None
    text = query.definition.sql[tokens[0].start : tokens[-1].end + 1]
    return WrittenExpression(text, tuple(_identity(query, tokens, columns)))


def offset(column: exp.Column) -> int:
    """The offset at which a view names a column, without the table before it; -1 if it is not known."""
    return int(column.this.meta.get("start", -1))


def _identity(query: ParsedQuery, tokens: Sequence[Token], columns: Mapping[int, str]) -> Iterator[tuple[str, str]]:
    for number, token in enumerate(tokens):
        if token.start in columns:
            yield "column", columns[token.start]
        elif not _qualifies(tokens, number, columns):
            yield "word", word(query, token)


def _qualifies(tokens: Sequence[Token], number: int, columns: Mapping[int, str]) -> bool:
    """Whether a token belongs to the name of a table before a column."""
    is_dot = tokens[number].token_type is TokenType.DOT
    column = number + (1 if is_dot else 2)
    return column < len(tokens) and tokens[column].start in columns and tokens[column - 1].token_type is TokenType.DOT

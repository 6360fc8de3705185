"""Where the text of a view has an expression, and whether two expressions are written in the same way.

sqlglot's trees do not say where an expression begins and ends, and one tree may stand for two texts of which Spark
makes different values (`CAST` and `TRY_CAST`, `date_trunc('s', at)` and `date_trunc(s, at)`). So the text is searched
for around the names in the expression, and two expressions count as equal only if their tokens are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from cdc_views.views.join_parentheses import without_parentheses
from cdc_views.views.references import ParsedQuery

_NAME: Final = re.compile(r"`?[a-z_]\w*`?", re.IGNORECASE)  # of a function
_MOST_TOKENS: Final = 60  # on each side of the names and values of an expression
QUOTES: Final = frozenset("'\"`")
"""The first letters of texts and quoted names."""

_OPENING: Final = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING: Final = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_BEFORE: Final = frozenset(
    {
        *(TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL, TokenType.COMMA, TokenType.L_PAREN),
        *(TokenType.GROUP_BY, TokenType.PARTITION_BY, TokenType.ORDER_BY, TokenType.ON, TokenType.WHERE),
        *(TokenType.QUALIFY, TokenType.AND, TokenType.EQ),
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
        *(TokenType.AND, TokenType.WHERE, TokenType.EQ, TokenType.LT, TokenType.LTE, TokenType.IN),
        *(TokenType.ASC, TokenType.DESC, TokenType.WITH, TokenType.GROUPING_SETS),
    }
)


class Texts:
    """The texts of the expressions of a query."""

    def __init__(self, query: ParsedQuery) -> None:
        self._query = query
        self._words: dict[int, tuple[str, ...] | None] = {}  # by the identity of a node of the query's tree

    def are_same(self, one: exp.Expr | None, other: exp.Expr | None) -> bool:
        """Whether two expressions are certain to be written alike, up to the case of names; None is like None."""
        if one is None or other is None or type(one) is not type(other):
            return one is other
        if isinstance(one, exp.Column) and isinstance(other, exp.Column):
            return [part.name.lower() for part in one.parts] == [part.name.lower() for part in other.parts]
        words = self._of(one)
        return one is other or (words is not None and words == self._of(other))

    def call(self, node: exp.Expr) -> tuple[str, ...] | None:
        """The words of a function call, or of a cast like one; None for any other expression.

        Whatever stands around it, such words are that call wherever they are written.
        """
        words = self._of(node) if isinstance(node, exp.Func | exp.Mod) else None
        if words is None or words[1:2] != ("(",) or not _NAME.fullmatch(words[0]):
            return None
        depth = 0
        for number, each in enumerate(words):
            depth += {"(": 1, ")": -1}.get(each, 0)
            if number > 0 and depth == 0:
                return words if number == len(words) - 1 else None
        return None

    def text(self, node: exp.Expr) -> str:
        """An expression as it is written; empty if it is not found."""
        span = span_of_expression(self._query, node)
        tokens = self._query.tokens
        return "" if span is None else self._query.definition.sql[tokens[span[0]].start : tokens[span[1]].end + 1]

    def _of(self, node: exp.Expr) -> tuple[str, ...] | None:
        if id(node) not in self._words:
            span = span_of_expression(self._query, node)
            tokens = self._query.tokens[span[0] : span[1] + 1] if span is not None else ()
            self._words[id(node)] = tuple(word(self._query, token) for token in tokens) or None
        return self._words[id(node)]


def word(query: ParsedQuery, token: Token) -> str:
    """A token as it is written; in lower case, unless it is quoted."""
    written = query.definition.sql[token.start : token.end + 1]
    return written if QUOTES & set(written) else written.lower()


def span_of_expression(query: ParsedQuery, node: exp.Expr) -> tuple[int, int] | None:
    """The numbers of the first and the last token: the smallest span between two delimiters that is parsed as `node`.

    A text before the delimiter could give the expression another meaning, although sqlglot makes nothing of it.
    """
    at = {token.start: number for number, token in enumerate(query.tokens)}
    parts = [at[start] for each in node.walk() if (start := each.meta.get("start")) in at]
    if not parts:
        return None
    for first in _outwards(query.tokens, min(parts), -1):
        for last in _outwards(query.tokens, max(parts), 1):
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
        tree = without_parentheses(sqlglot.parse_one(f"SELECT {text}", dialect="spark"))
    except (SqlglotError, RecursionError):
        return False
    return isinstance(tree, exp.Select) and tree.expressions == [node]

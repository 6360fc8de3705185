"""The text of a SELECT whose aggregates an internal view stores: its items, and its calls of aggregates.

The stored values have the names `value_1`, `value_2` and so on. What the SELECT computes from its aggregates is written
over these names; every other word stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark

from cdc_views.plan.facts.keys import MAY_AGGREGATE
from cdc_views.views.text import closing

VALUE: Final = "value_{}".format

_DEPTH: Final = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1, TokenType.R_BRACKET: -1}
_AGGREGATES: Final = frozenset({"count", "sum", "avg", "min", "max"})
# What ADD needs beside an aggregate of the same values.
_BESIDE: Final[Mapping[type[exp.Expr], tuple[str, ...]]] = {exp.Avg: ("sum", "count"), exp.Sum: ("count",)}

_NAME: Final = re.compile(r"^\w+")

Span = tuple[int, int]
"""The numbers of the first and the last of some tokens."""


def text_of(sql: str, tokens: Sequence[Token]) -> str:
    """What is written from the first to the last of some tokens."""
    return sql[tokens[0].start : tokens[-1].end + 1]


def completed(sql: str, tokens: Sequence[Token], appended: Mapping[int, str]) -> str:
    """The same with what is `appended` at some offsets of the text."""
    text, position, end = "", tokens[0].start, tokens[-1].end + 1
    for offset in sorted(each for each in appended if position < each <= end):
        text += sql[position:offset] + appended[offset]
        position = offset
    return text + sql[position:end]


def free_names(taken: Iterable[str]) -> Iterator[str]:
    """Names of values that are none of these, in upper or lower case."""
    in_lower_case = {name.lower() for name in taken}
    return (name for name in map(VALUE, count(1)) if name not in in_lower_case)


def items_of(select: exp.Select, tokens: Sequence[Token]) -> list[Sequence[Token]]:
    """The tokens of each item of a SELECT with these tokens, then those from FROM on."""
    table = min(node.meta["start"] for node in select.args["from_"].this.walk() if "start" in node.meta)
    outside = list(outside_of_parentheses(tokens))
    # Not that of `a IS DISTINCT FROM b`.
    *_, from_ = (
        number for number in outside if tokens[number].token_type is TokenType.FROM and tokens[number].start < table
    )
    commas = [number for number in outside if number < from_ and tokens[number].token_type is TokenType.COMMA]
    between = pairwise([0, *commas, from_])
    return [*(tokens[start + 1 : end] for start, end in between), tokens[from_:]]


def outside_of_parentheses(tokens: Sequence[Token]) -> Iterator[int]:
    """The numbers of the tokens that are in no parentheses."""
    depth = 0
    for number, token in enumerate(tokens):
        depth += _DEPTH.get(token.token_type, 0)
        if depth == 0:
            yield number


def without_alias(item: exp.Expr, tokens: Sequence[Token]) -> Sequence[Token]:
    """The tokens of an item of a SELECT without its name."""
    if not isinstance(item, exp.Alias):
        return tokens
    return tokens[:-2] if tokens[-2].token_type is TokenType.ALIAS else tokens[:-1]


class StoredCalls:
    """The `calls` that an internal view stores, each once, as they are written: `value_1` is the first of them."""

    def __init__(self, sql: str, calls: Iterable[str] = ()) -> None:
        """`sql` is the text of the view."""
        self.calls = [*calls]
        self._sql = sql

    def values_in(self, tokens: Sequence[Token], further: Collection[str] = ()) -> dict[Span, str]:
        """Store the calls of aggregates among some tokens, and of functions with these `further` names.

        Returns the name of the stored value for each.
        """
        return {
            span: self._value(text_of(self._sql, tokens[span[0] : span[1] + 1])) for span in _calls(tokens, further)
        }

    def are_all_of(self, text: str) -> bool:
        """Whether an expression is one of stored values alone, and means the same over their names."""
        return is_of_values(text, len(self.calls))

    def beside(self) -> list[str]:
        """The calls that ADD needs beside the stored ones."""
        return [each for call in self.calls for each in beside(call)]

    def _value(self, call: str) -> str:
        if call not in self.calls:
            self.calls.append(call)
        return VALUE(self.calls.index(call) + 1)


def _calls(tokens: Sequence[Token], further: Collection[str] = ()) -> Iterator[Span]:
    """Where aggregates are called, each with its FILTER, and functions with these `further` names."""
    last = -1
    for number, token in enumerate(tokens[:-1]):
        name = token.text.lower()
        is_call = tokens[number + 1].token_type is TokenType.L_PAREN and (name in _AGGREGATES or name in further)
        is_qualified = number > 0 and tokens[number - 1].token_type is TokenType.DOT
        if number <= last or not is_call or is_qualified:
            continue
        last = closing(tokens, number + 1)
        if last + 2 < len(tokens) and tokens[last + 1].text.upper() == "FILTER":
            last = closing(tokens, last + 2)
        yield number, last


def beside(call: str) -> tuple[str, ...]:
    """The calls of the aggregates that ADD needs beside this one."""
    (node,) = sqlglot.parse_one(f"SELECT {call}", dialect="spark").args["expressions"]
    node = node.this if isinstance(node, exp.Filter) else node
    names = () if isinstance(node.this, exp.Distinct) else _BESIDE.get(type(node), ())
    return tuple(_NAME.sub(name, call, count=1) for name in names)


def replaced(sql: str, tokens: Sequence[Token], values: Mapping[Span, str]) -> str:
    """The text of some tokens with these texts in place of those at these spans, which do not overlap."""
    text, position = "", tokens[0].start
    for (first, last), value in sorted(values.items()):
        text += sql[position : tokens[first].start] + value
        position = tokens[last].end + 1
    return text + sql[position : tokens[-1].end + 1]


def is_of_values(text: str, values: int) -> bool:
    """Whether an expression is one of stored values alone, and means the same over their names.

    Any function that is not known might be an aggregate. A struct takes the names of its fields from its text, a star
    stands for columns that the view does not know, and a lambda has names of its own.
    """
    tree = sqlglot.parse_one(f"SELECT {text}", dialect="spark")
    names = {VALUE(number) for number in range(1, values + 1)}
    columns = list(tree.find_all(exp.Column))
    return (
        all(column.name in names and not column.table for column in columns)
        and not any(tree.find_all(*MAY_AGGREGATE, exp.Star, exp.Lambda, exp.Tuple))
        and not any(one.text.lower() == "struct" for one in Spark().tokenize(text))
    )

"""Totals that an internal view stores: those of grouping sets, and over all rows, that cannot be added up as they are.

    SELECT country, count(*) AS orders FROM orders GROUP BY ROLLUP (country) HAVING count(*) > 10
    SELECT max(price) - min(price) AS spread, coalesce(sum(price), 0) AS total FROM products

ADD needs aggregates that nothing is computed from, no HAVING, and of grouping sets all columns, `grouping_id()` and
`count(*)`. So an internal view has these, with the aggregates that the view computes from, and is kept by ADD. The view
is then a SELECT over its rows, each of which gives one row or none:

    SELECT value_1 AS country, value_3 AS orders FROM (the stored rows) WHERE value_3 > 10

A name is written over the stored values only if it is certain what it means: a column of the sets, which is NULL in the
rows of a set without it; in HAVING also a name that the SELECT gives. In HAVING Spark looks for a name among those
first, so one that may be both is not rewritten. The arguments of aggregates are those of the rows below the groups.

A function call that is a group is its stored value in an item of the SELECT, not in HAVING, which computes it from the
columns of the result. Another expression over its columns may be the same group to Spark, as `ucase(s)` is `upper(s)`,
so it is not rewritten.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sqlglot import Token, TokenType, exp

from cdc_views.plan.facts.grouping_sets import GroupsOfSets
from cdc_views.plan.incremental.expressions.derived_table import WantedTable
from cdc_views.plan.incremental.expressions.select_text import (
    VALUE,
    Span,
    StoredCalls,
    items_of,
    outside_of_parentheses,
    replaced,
    text_of,
    without_alias,
)
from cdc_views.plan.incremental.expressions.subquery_text import is_of_rows
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.expression_text import Texts, word
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.selected import given_name
from cdc_views.views.text import has_collation

_CLAUSES: Final = frozenset({"with_", "expressions", "from_", "joins", "where", "group", "having"})
_GROUPING: Final = frozenset({"grouping", "grouping_id"})


@dataclass(frozen=True)
class GroupsText:
    """The internal view that is wanted, and for each column of the view the stored column that it passes on, if any.

    Only the columns of the sets and what tells the sets apart are named: a group is found by these. `has_one_row`: it
    is a total over all rows.
    """

    wanted: WantedTable
    passed_on: Sequence[str | None]
    has_one_row: bool


def stored_groups(query: ParsedQuery, select: exp.Select, scope: Scope, sources: Sequence[str]) -> GroupsText:
    """What an internal view would store for such a view, whose FROM has this scope over these inputs.

    Raises NotIncremental if a word of the view is not certain to mean the same over the stored values.
    """
    if not is_of_rows(select, _CLAUSES) or has_collation(query.tokens):
        raise NotIncremental("another query than totals of tables, joins and derived tables")
    group = select.args.get("group")
    texts = Texts(query)
    of_sets = GroupsOfSets(select, scope.name_of, scope.has, texts)
    groups = of_sets.all() if group is not None else {}
    if groups is None:
        raise NotIncremental("sets of other groups than columns and function calls, or a set that occurs twice")
    aliases = of_sets.by_alias() if groups else []
    return _Groups(query, select, scope, groups, texts).text(sources, aliases)


class _Groups:
    """Writes a SELECT over its groups: those of the sets, by what they stand for; of a total, none."""

    def __init__(
        self, query: ParsedQuery, select: exp.Select, scope: Scope, groups: Mapping[Hashable, exp.Expr], texts: Texts
    ) -> None:
        self._sql, self._tokens, self._select, self._scope = query.definition.sql, query.tokens, select, scope
        self._texts = texts
        self._at = {token.start: number for number, token in enumerate(query.tokens)}
        self._words = [word(query, token) for token in query.tokens]
        self._sets = {group: VALUE(number) for number, group in enumerate(groups, start=1)}
        self._calls = {words: self._sets[group] for group, node in groups.items() if (words := texts.call(node))}
        of_calls = (node for node in groups.values() if not isinstance(node, exp.Column))
        self._of_calls = {scope.name_of(column) for node in of_calls for column in node.find_all(exp.Column)}
        self._stored = StoredCalls(
            self._sql, [*map(self._written, groups.values()), *(["grouping_id()"] if groups else [])]
        )

    def text(self, sources: Sequence[str], aliases: Sequence[tuple[exp.Column, exp.Expr]]) -> GroupsText:
        """`aliases` are the names in GROUP BY of items of the SELECT, which the stored values do not have."""
        start = _start_of_select(self._tokens)
        *items, rest = items_of(self._select, self._tokens[start:])
        below, having = _without_having(rest)
        expressions = self._select.expressions
        values = [
            self._over_values(item, without_alias(item, each)) for item, each in zip(expressions, items, strict=True)
        ]
        names = [given_name(item) for item in expressions]
        condition = self._condition(having, dict(zip((name.lower() for name in names), values, strict=True)))
        if not all(map(self._stored.are_all_of, [*values, *filter(None, [condition])])):
            raise NotIncremental("an aggregate that is not stored")
        if self._sets and not {*values} & {*self._sets.values()}:
            raise NotIncremental("no column of the sets by which a group is found")
        selected = [
            f"{value} AS {quoted_name(name)}" if name else value for value, name in zip(values, names, strict=True)
        ]
        stored = dict.fromkeys([*self._stored.calls, *self._stored.beside(), "count(*)"])
        written = {self._span(alias, self._at[below[0].start]): self._written(item) for alias, item in aliases}
        columns = (f"{each} AS {VALUE(number)}" for number, each in enumerate(stored, start=1))
        before = self._sql[self._tokens[0].start : self._tokens[start].start]  # WITH
        wanted = WantedTable(
            tuple(sources),
            self._tokens[0].start,
            self._tokens[-1].end + 1,
            f"{before}SELECT {', '.join(columns)} {replaced(self._sql, below, written)}",
            select=f"SELECT {', '.join(selected)} FROM ",
            after=f" WHERE {condition}" if condition else " ",
        )
        found_by = {
            *self._sets.values(),
            *(VALUE(number) for number, call in enumerate(self._stored.calls, 1) if _is_level(call)),
        }
        return GroupsText(wanted, [value if value in found_by else None for value in values], not self._sets)

    def _condition(self, tokens: Sequence[Token], names: Mapping[str, str]) -> str:
        """What HAVING says; `names` are those of the SELECT, in lower case, with what they stand for."""
        having = self._select.args.get("having")
        if having is None:
            return ""
        if not all(self._is_certain(column, names) for column in having.find_all(exp.Column)):
            raise NotIncremental("a name in HAVING that may be that of a column or of a value")
        return self._over_values(having.this, tokens, names)

    def _is_certain(self, node: exp.Column, names: Mapping[str, str]) -> bool:
        """Whether a name in HAVING is not both one that the SELECT gives to another value, and one of its FROM."""
        first = node.parts[0].name.lower()
        if not node.table and "" in names:  # Spark makes a name up, which may be this one
            return False
        if first not in names or not self._scope.has(first):
            return True
        return not node.table and names[first] == self._sets.get(self._scope.name_of(node))

    def _over_values(
        self, node: exp.Expr, tokens: Sequence[Token], names: Mapping[str, str] = MappingProxyType({})
    ) -> str:
        """An expression over the stored values."""
        first = self._at[tokens[0].start]
        found = self._stored.values_in(tokens, _GROUPING)
        is_item = node.find_ancestor(exp.Having) is None
        if is_item:
            found |= self._groups_in(tokens, first, list(found))
        spans = list(found)
        for column in node.find_all(exp.Column):
            span = self._span(column, first)
            if any(start <= span[0] <= end for start, end in spans):
                continue
            if is_item and column is not node.unalias() and self._scope.name_of(column) in self._of_calls:
                raise NotIncremental("an expression over a column of a computed group, which it may be")
            found[span] = self._column(column, names)
        return replaced(self._sql, tokens, found)

    def _groups_in(self, tokens: Sequence[Token], first: int, spans: Sequence[Span]) -> dict[Span, str]:
        """Where function calls that are groups stand outside of some spans; `first` is the number of the first token.

        Of one inside of another, Spark sees the outer one.
        """
        words, found = self._words[first : first + len(tokens)], dict[Span, str]()
        for call in sorted(self._calls, key=len, reverse=True):
            for start in range(len(words) - len(call) + 1):
                span = start, start + len(call) - 1
                is_one = tuple(words[start : span[1] + 1]) == call and words[start - 1 : start] != ["."]
                if is_one and not any(begin <= start <= end for begin, end in (*spans, *found)):
                    found[span] = self._calls[call]
        return found

    def _column(self, node: exp.Column, names: Mapping[str, str]) -> str:
        name, column = node.name.lower(), self._scope.name_of(node)
        if column in self._sets:
            return self._sets[column]
        if node.table or self._scope.has(name) or name not in names:
            raise NotIncremental("a name that is not that of a column of the sets")
        return f"({names[name]})"

    def _span(self, column: exp.Column, first: int) -> Span:
        """Where a column is named: the numbers of its tokens among those from `first` on."""
        numbers = [self._at.get(part.meta.get("start", -1)) for part in column.parts]
        found = [number - first for number in numbers if number is not None]
        if len(found) < len(numbers):
            raise NotIncremental("a column that is not found in the text")
        return min(found), max(found)

    def _written(self, group: exp.Expr) -> str:
        if not isinstance(group, exp.Column):
            return self._texts.text(group)
        start, end = self._span(group, 0)
        return text_of(self._sql, self._tokens[start : end + 1])


def _start_of_select(tokens: Sequence[Token]) -> int:
    """The number of the token SELECT, with which the query begins, or which follows WITH. Raises NotIncremental."""
    clauses = (TokenType.SELECT, TokenType.FROM)
    start = next(each for each in outside_of_parentheses(tokens) if tokens[each].token_type in clauses)
    if tokens[start].token_type is not TokenType.SELECT:  # Spark also takes FROM before it
        raise NotIncremental("a query that does not begin with SELECT")
    return start


def _without_having(tokens: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token]]:
    """The tokens before HAVING, and those after it."""
    for number in outside_of_parentheses(tokens):
        if tokens[number].token_type is TokenType.HAVING:
            return tokens[:number], tokens[number + 1 :]
    return tokens, ()


def _is_level(call: str) -> bool:
    """Whether a stored value tells the sets apart."""
    return call.split("(")[0].strip().lower() in _GROUPING

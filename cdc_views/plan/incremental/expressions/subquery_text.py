"""Subqueries that an internal view may store: what they consist of, and where the view's text has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from cdc_views.plan.facts.keys import makes_rows, nested_queries, own_nodes
from cdc_views.views.join_parentheses import without_parentheses
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import closing

_OF_TABLE: Final = frozenset({"this", "db", "alias"})


@dataclass(frozen=True)
class WantedSubquery:
    """A subquery over the inputs `sources` that no internal view stores yet: `text[start:end]` of the view.

    `sql` is the SELECT of its internal view. `select` and `after` stand around the relation of the stored rows in its
    place. `is_relation`: it stands in FROM.
    """

    sources: tuple[str, ...]
    start: int
    end: int
    sql: str
    select: str
    after: str
    is_relation: bool


@dataclass(frozen=True)
class StoredSubquery:
    """An internal view with the rows of a subquery: its name, and the Arrow types of its columns, in order.

    The rest is that of `wanted`.
    """

    name: str
    types: Mapping[str, str]
    wanted: WantedSubquery

    @property
    def sql(self) -> str:
        """Its SELECT."""
        return self.wanted.sql

    @property
    def start(self) -> int:
        """Where the subquery begins in the text of the outer view."""
        return self.wanted.start

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.wanted.end

    @property
    def select(self) -> str:
        """What stands before the relation of the stored rows, in place of the subquery."""
        return self.wanted.select

    @property
    def after(self) -> str:
        """What stands after it."""
        return self.wanted.after

    @property
    def is_relation(self) -> bool:
        """Whether it stands in FROM."""
        return self.wanted.is_relation


def is_over_tables(select: exp.Select, clauses: frozenset[str]) -> bool:
    """Whether a SELECT has only these clauses, its FROM only names relations, and no subquery or window is in it."""
    return all(map(_is_plain, relations_of(select))) and is_of_rows(select, clauses)


def is_of_rows(select: exp.Select, clauses: frozenset[str]) -> bool:
    """Whether a SELECT has only these clauses, its FROM has names and subqueries, and its expressions no subquery or
    window.
    """
    relations = relations_of(select)
    return (
        bool(relations)
        and all(_is_plain(each) or _is_derived(each) for each in relations)
        and not any(value for name, value in select.args.items() if name not in clauses)
        and not any(nested_queries(select))
        and not any(map(makes_rows, select.expressions))
        and not any(isinstance(node, exp.Window) for node in own_nodes(select))
    )


def relations_of(select: exp.Select) -> list[exp.Expr]:
    """What a FROM consists of, in the order of the text."""
    from_ = select.args.get("from_")
    return [from_.this, *(join.this for join in select.args.get("joins") or ())] if from_ is not None else []


def _is_plain(relation: exp.Expr) -> bool:
    """Whether it is a name, with or without another name for it."""
    is_name = isinstance(relation, exp.Table) and not relation.alias_column_names
    return is_name and not any(value for name, value in relation.args.items() if name not in _OF_TABLE)


def _is_derived(relation: exp.Expr) -> bool:
    """Whether it is a subquery, with or without a name for it."""
    is_query = isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query)
    return is_query and not any(value for name, value in relation.args.items() if name not in _OF_TABLE)


def span_of(query: ParsedQuery, select: exp.Select) -> tuple[int, int] | None:
    """The numbers of the first and the last token: those between the nearest parentheses that are parsed as it."""
    starts = {id(each.node): each.start for each in query.references}
    if not all(id(each) in starts for each in relations_of(select) if isinstance(each, exp.Table)):
        return None  # a CTE
    start = min((starts[id(table)] for table in select.find_all(exp.Table) if id(table) in starts), default=None)
    if start is None:
        return None
    at = next(number for number, token in enumerate(query.tokens) if token.start == start)
    for opening in _parentheses_around(query.tokens, at):
        first, last = opening + 1, closing(query.tokens, opening) - 1
        text = query.definition.sql[query.tokens[first].start : query.tokens[last].end + 1]
        try:
            if without_parentheses(sqlglot.parse_one(text, dialect="spark")) == select:
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

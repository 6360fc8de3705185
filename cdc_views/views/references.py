"""Which tables and views a SELECT reads, and where its text names them.

sqlglot parses the text; its trees are only read, never printed and run. A name in FROM is a reference unless a common
table expression (CTE) in scope has that name, or it is a function or a hint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import ParseError

from cdc_views.errors import BadView, UnsupportedView
from cdc_views.views.definition import ViewDefinition
from cdc_views.views.join_parentheses import without_parentheses
from cdc_views.views.nesting import naming_deep_nesting
from cdc_views.views.postgres_forms import refuse_postgres_forms
from cdc_views.views.text import closing, tokens_of

_TIME_WINDOW: Final = "write `window`(time, '5 minutes'), with backticks around the name of the function"


@dataclass(frozen=True)
class Reference:
    """One place where a SELECT names a table or view: `sql[start:end]`.

    `schema` is None for a name alone. `needs_alias`: the SELECT gives it no alias, so its columns may be qualified by
    the name itself.
    """

    schema: str | None
    name: str
    start: int
    end: int
    needs_alias: bool
    node: exp.Table


@dataclass(frozen=True)
class ParsedQuery:
    """A view's SELECT: its tree, its tokens (offsets are those in the definition's `sql`), its references."""

    definition: ViewDefinition
    tree: exp.Query
    tokens: Sequence[Token]
    references: tuple[Reference, ...]


def parse_query(definition: ViewDefinition) -> ParsedQuery:
    """Parse a view's SELECT and find what it reads. Raises BadView, UnsupportedView."""
    sql = definition.sql
    tokens = tokens_of(sql, definition.file, definition.first_line, definition.first_column)
    refuse_postgres_forms(definition, tokens)
    for token in tokens:
        if token.token_type is TokenType.PIPE_GT:  # sqlglot makes one SELECT of all steps, whatever their order
            raise UnsupportedView(
                f'{definition.place(token.start)}: "|>" is not supported', hint="write a subquery for each step"
            )
    try:
        with naming_deep_nesting(definition):
            tree = sqlglot.parse_one(sql, dialect="spark")
    except ParseError as error:
        raise _syntax_error(definition, tokens, error) from None
    if not isinstance(tree, exp.Query):
        first = tokens[0].text.upper() if tokens else ""
        raise UnsupportedView(f'{definition.place()}: found "{first}", wanted a SELECT')
    tree = without_parentheses(tree)
    references = (_reference(definition, table) for table in _tables(tree))
    return ParsedQuery(definition, tree, tokens, tuple(sorted(references, key=lambda found: found.start)))


def _tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Yield the tables that a query names. A loop, since a long chain of ORs is a deep tree."""
    pending: list[tuple[exp.Expr, frozenset[str]]] = [(tree, frozenset())]  # with the names of the CTEs in scope
    while pending:
        node, ctes = pending.pop()
        if isinstance(node, exp.Hint):
            continue
        if isinstance(node, exp.Table):
            is_cte = not node.args.get("db") and node.name.lower() in ctes
            if isinstance(node.this, exp.Identifier | exp.Dot) and not is_cte:
                yield node
        with_ = node.args.get("with_")
        if isinstance(with_, exp.With):
            if with_.recursive:
                ctes |= {cte.alias.lower() for cte in with_.expressions}
            for cte in with_.expressions:
                # A CTE that names itself means the table outside.
                pending.append((cte.this, ctes))
                ctes |= {cte.alias.lower()}
        pending += [(child, ctes) for child in node.iter_expressions() if child is not with_]


def _reference(definition: ViewDefinition, table: exp.Table) -> Reference:
    parts = table.parts
    names = [part.name for part in parts]
    start = _start(parts)
    if len(parts) > 2:
        raise UnsupportedView(
            f'{definition.place(start)}: table name "{".".join(names)}" has {len(parts)} parts, wanted schema.table',
            hint="write a name that holds a dot in backticks: `my.schema`.`my.table`",
        )
    if table.args.get("version"):
        raise UnsupportedView(
            f'{definition.place(start)}: table "{".".join(names)}" at another version or time',
            hint="a view equals its SELECT over the tables as they are at its epoch",
        )
    schema = names[0] if len(names) == 2 else None
    return Reference(schema, names[-1], start, parts[-1].meta["end"] + 1, not table.alias, table)


def _start(parts: Iterable[exp.Expr]) -> int:
    return min((int(part.meta["start"]) for part in parts if "start" in part.meta), default=0)


def _syntax_error(definition: ViewDefinition, tokens: Sequence[Token], error: ParseError) -> BadView:
    details = error.errors[0] if error.errors else {}
    description, found = str(details.get("description") or ""), str(details.get("highlight") or "")
    # Most of sqlglot's descriptions are about its own classes and tokens.
    wanted = f", wanted {description.removeprefix('Expecting ')}" if description.startswith("Expecting ") else ""
    offset = _offset(definition.sql, details)
    return BadView(
        f'{definition.place(offset)}: syntax error at or near "{found}"{wanted}',
        hint=_TIME_WINDOW if _is_in_window(tokens, offset) else "the language of views is Spark SQL",
    )


def _is_in_window(tokens: Sequence[Token], offset: int) -> bool:
    """Whether an offset is within a call of window(), which sqlglot takes for a WINDOW clause after GROUP BY."""
    at = sum(each.start < offset for each in tokens)
    return any(
        number < at <= closing(tokens, number + 1)
        for number, each in enumerate(tokens[:-1])
        if each.token_type is TokenType.WINDOW and tokens[number + 1].token_type is TokenType.L_PAREN
    )


def _offset(sql: str, details: dict[str, object]) -> int:
    """The offset at which sqlglot stopped: it gives the line, and the column at which the token ends."""
    line, column = int(str(details.get("line") or 1)), int(str(details.get("col") or 1))
    lines = sql.split("\n")
    before = sum(len(text) + 1 for text in lines[: line - 1])
    return max(0, min(len(sql), before + column - len(str(details.get("highlight") or ""))))

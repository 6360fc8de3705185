"""A view's text with every CTE written out where it is named, so that each leaf is named at a place of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import TokenType, exp

from cdc_views.plan.incremental.columns import Path, start_of
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import closing


@dataclass(frozen=True)
class LeafPlace:
    """Where the relation of a leaf is to be put; `after` follows it."""

    path: Path
    after: str


@dataclass(frozen=True)
class Edit:
    """`text[start:end]` becomes `after`."""

    start: int
    end: int
    after: str


@dataclass(frozen=True)
class Substitute:
    """`text[start:end]` becomes `before`, the relation of a leaf, and `after`. The path ends with `start`."""

    start: int
    end: int
    before: str
    after: str


@dataclass(frozen=True)
class _Definition:
    """A CTE in the text: its name, its column names, and its query between the parentheses."""

    name: str
    columns: tuple[str, ...]
    start: int
    end: int


def inlined(query: ParsedQuery, edits: Sequence[Edit | Substitute]) -> list[str | LeafPlace]:
    """The text as pieces. `edits` are made wherever the text that they are in is written.

    Of two that overlap, that which begins first is made; of an edit and a substitute that begin together, the latter.
    """
    return list(_Inliner(query, edits).pieces(0, len(query.definition.sql), ()))


class _Inliner:
    def __init__(self, query: ParsedQuery, edits: Sequence[Edit | Substitute]) -> None:
        self._sql = query.definition.sql
        self._tokens = query.tokens
        self._at = {token.start: number for number, token in enumerate(query.tokens)}
        self._ctes: dict[int, tuple[exp.Table, _Definition]] = {}  # by the offset of a reference
        self._events: list[tuple[int, int, Edit | Substitute | exp.Table | None]]
        self._events = [(each.start, each.end, each) for each in edits]
        self._leaves = {reference.start: reference for reference in query.references}
        self._collect(query.tree, {})
        self._events.sort(key=lambda event: (event[0], not isinstance(event[2], Substitute), event[1]))

    def pieces(self, start: int, end: int, path: Path) -> Iterator[str | LeafPlace]:
        position = start
        for begin, stop, event in self._events:
            if not position <= begin < end and not (begin == stop == end and isinstance(event, Edit)):
                continue
            yield self._sql[position:begin]
            position = stop
            if isinstance(event, Edit):
                yield event.after
            elif isinstance(event, Substitute):
                yield event.before
                yield LeafPlace((*path, begin), event.after)
            elif event is not None:
                yield from self._named(begin, path)
        yield self._sql[position:end]

    def _named(self, start: int, path: Path) -> Iterator[str | LeafPlace]:
        if start in self._leaves:
            reference = self._leaves[start]
            yield LeafPlace((*path, start), f" AS {quoted_name(reference.name)}" if reference.needs_alias else "")
            return
        table, cte = self._ctes[start]
        yield "(SELECT * FROM ("
        yield from self.pieces(cte.start, cte.end, (*path, start))
        # The line break ends a comment with which the query may end.
        names = f"({', '.join(map(quoted_name, cte.columns))})" if cte.columns else ""
        yield f"\n) AS {quoted_name(cte.name)}{names})"
        yield "" if table.alias else f" AS {quoted_name(table.name)}"

    def _collect(self, node: exp.Expr, ctes: Mapping[str, _Definition]) -> None:
        """Find what each name in FROM stands for, and the WITH clauses."""
        pending = [(node, ctes)]
        while pending:
            node, ctes = pending.pop()
            if isinstance(node, exp.Hint):
                continue
            if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier | exp.Dot):
                self._collect_table(node, ctes)
            with_ = node.args.get("with_")
            if isinstance(with_, exp.With):
                found = dict(ctes)
                for cte in with_.expressions:
                    pending.append((cte.this, dict(found)))
                    found[cte.alias.lower()] = self._definition(cte)
                self._collect_with(with_, found)
                ctes = found
            pending += [(child, ctes) for child in node.iter_expressions() if child is not with_]

    def _collect_table(self, table: exp.Table, ctes: Mapping[str, _Definition]) -> None:
        start = start_of(table)
        cte = ctes.get(table.name.lower()) if not table.args.get("db") else None
        if cte is not None:
            self._ctes[start] = table, cte
        if cte is not None or start in self._leaves:
            self._events.append((start, int(table.parts[-1].meta["end"]) + 1, table))

    def _collect_with(self, with_: exp.With, ctes: Mapping[str, _Definition]) -> None:
        first = self._at[_name_start(with_.expressions[0])] - 1
        last = ctes[with_.expressions[-1].alias.lower()]
        self._events.append((self._tokens[first].start, last.end + 1, None))

    def _definition(self, cte: exp.CTE) -> _Definition:
        index = self._at[_name_start(cte)] + 1
        if self._tokens[index].token_type is TokenType.L_PAREN:  # the names of its columns
            index = closing(self._tokens, index) + 1
        if self._tokens[index].text.upper() == "AS":
            index += 1
        columns = tuple(column.name for column in cte.args["alias"].columns)
        end = self._tokens[closing(self._tokens, index)].start
        return _Definition(cte.alias, columns, self._tokens[index].end + 1, end)


def _name_start(cte: exp.CTE) -> int:
    return int(cte.args["alias"].this.meta["start"])

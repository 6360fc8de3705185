"""Total order: an ORDER BY that decides about rows and may tie is completed by a key, or refused.

Rows that tie have no stored order, so row_number(), ntile(), lag(), lead(), first_value(), last_value(), nth_value(),
ROWS frames, LIMIT, OFFSET and listagg() would give one of several answers. The key of the rows is appended to their
ORDER BY in the text: `ORDER BY name` becomes `ORDER BY name, users.id`. If no key is known, the view is refused. The
order of rank functions and of RANGE frames is not changed, since there a tie means something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sqlglot import TokenType, exp

from cdc_views.errors import UnsupportedView
from cdc_views.plan.facts.joins import JoinFacts
from cdc_views.plan.facts.keys import Selected, own_nodes, windows
from cdc_views.plan.facts.relation import ColumnRef, FromClause, OutputColumn, RelationFacts, no_key
from cdc_views.views.expression_text import Texts
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import has_collation

# What a function over a window needs of its order. "any": nothing. "ties": rows that tie must still tie. "completed": a
# total order; each total order gives an answer that the ties allow. "total": a total order, but an appended key would
# change the frame.
_Need = Literal["any", "ties", "completed", "total"]

_RANKS: Final = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
_BY_POSITION: Final = frozenset({"row_number", "ntile", "lag", "lead"})
_FIRST: Final = frozenset({"first", "first_value", "any_value"})
_LAST: Final = frozenset({"last", "last_value", "nth_value"})
_ORDERED_SETS: Final = frozenset({"percentile_cont", "percentile_disc", "mode"})
_ENDS_ORDER: Final = frozenset(
    (TokenType.LIMIT, TokenType.OFFSET, TokenType.ROWS, TokenType.RANGE, TokenType.WINDOW, TokenType.SORT_BY,
     TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.SEMICOLON)
)  # fmt: skip


@dataclass(frozen=True)
class Completion:
    """Columns to append to an ORDER BY, which ends at the offset `end` of the view's text."""

    end: int
    columns: tuple[str, ...]


@dataclass(frozen=True)
class _Window:
    """A window, what it partitions by, and one function over it for each need."""

    definition: exp.Window
    partition: list[exp.Expr]
    functions: dict[_Need, str]


class OrderCompletion:
    """Collects the completions of a query: pass `visit` to derive_key, then call `completions`."""

    def __init__(self, query: ParsedQuery) -> None:
        self._query = query
        self._seen: set[int] = set()
        self._found: dict[int, Completion] = {}
        self._ends: dict[int, int] = {}  # the ORDER BY that ends at an offset
        # Under a collation, rows that tie in all columns may still differ.
        self._has_collation = has_collation(query.tokens)
        self._texts = Texts(query)

    def visit(self, query: exp.Expr, selected: Selected) -> None:
        """Take in a SELECT, set operation or query in parentheses.

        Raises UnsupportedView if an order may tie and cannot be completed.
        """
        self._seen.add(id(query))
        self._limit(query, selected)
        if isinstance(query, exp.Select):
            self._windows(query, selected)
            self._collections(query, selected)

    def completions(self) -> tuple[Completion, ...]:
        """Return the completions in text order; nothing is known about queries that were not visited. Raises like
        `visit`.
        """
        sources, frame = FromClause({}, has_more=True), JoinFacts(None, False, "unknown")
        unknown = Selected(sources, frame, [OutputColumn("", is_many=True)], no_key("unknown"), None)
        for query in self._query.tree.find_all(exp.Select, exp.SetOperation, exp.Subquery):
            if id(query) not in self._seen:
                self.visit(query, unknown)
        return tuple(sorted(self._found.values(), key=lambda completion: completion.end))

    def _limit(self, query: exp.Expr, selected: Selected) -> None:
        limit, order = query.args.get("limit"), query.args.get("order")
        takes_all = limit is None or limit.expression.name.upper() == "ALL"
        if order is None or (takes_all and query.args.get("offset") is None):
            return
        missing = self._missing_of_result(query, order, selected)
        if missing is None:
            raise self._refusal(order, "LIMIT returns any of the rows that tie")
        self._append(order, missing)

    def _windows(self, select: exp.Select, selected: Selected) -> None:
        found: dict[int, _Window] = {}
        for window, base, parts in windows(select):
            holder = base if base is not None and window.args.get("order") is None else window
            frame, name = window.args.get("spec") or holder.args.get("spec"), _function(window.this)
            need = _need(name, frame, is_ordered=holder.args.get("order") is not None)
            found.setdefault(id(holder), _Window(holder, parts, {})).functions.setdefault(need, name)
        for each in found.values():
            self._window(select, each, selected)

    def _window(self, select: exp.Select, found: _Window, selected: Selected) -> None:
        window, functions = found.definition, found.functions
        wanting = functions.get("completed") or functions.get("total")
        if wanting is None:
            return
        order = window.args.get("order")
        if order is None:
            # Spark itself requires an order for other functions.
            raise self._refusal(window, f"{wanting}() over a ROWS frame depends on the order of rows")
        missing = self._missing_of_rows(select, selected, [*found.partition, *_ordered(order)], of_groups=True)
        if missing is None:
            raise self._refusal(order, f"{wanting}() depends on the order of rows that tie")
        if missing and "total" in functions:
            problem = f"{functions['total']}() over a RANGE frame returns any of the rows that tie"
            raise self._refusal(order, problem, missing)
        if missing and "ties" in functions:
            problem = (
                f"{wanting}() needs an order without ties, {functions['ties']}() over the same window one with ties"
            )
            raise self._refusal(order, problem, missing)
        self._append(order, missing)

    def _collections(self, select: exp.Select, selected: Selected) -> None:
        for node in own_nodes(select):
            if isinstance(node, exp.GroupConcat) and isinstance(node.this, exp.Order):
                order, value = node.this, node.this.this
            elif isinstance(node, exp.WithinGroup) and _function(node.this) not in _ORDERED_SETS:
                order, value = node.expression, None
            else:
                continue
            ordered = _ordered(order)
            is_value = isinstance(value, exp.Distinct) or any(self._texts.are_same(value, each) for each in ordered)
            if is_value and not self._has_collation:
                continue  # rows that tie have the same text
            missing = self._missing_of_rows(select, selected, [*ordered, *(selected.groups or ())], of_groups=False)
            if missing is None:
                raise self._refusal(order, "the order of a list depends on rows that tie")
            self._append(order, missing)

    def _missing_of_result(self, query: exp.Expr, order: exp.Expr, selected: Selected) -> tuple[str, ...] | None:
        """The columns that make the order of a query's rows total; () if it is total, None if they are not known."""
        ordered, outputs, rows = _ordered(order), selected.outputs, selected.rows
        names = [output.name.lower() for output in outputs]
        if any(isinstance(each, exp.Var) and each.name.upper() == "ALL" for each in ordered) and "all" not in names:
            return ()
        places = {place for each in ordered if (place := _place(each, names)) is not None}
        of_rows = [
            each for each in ordered if _place(each, names) is None and _is_of_rows(each, outputs, selected.sources)
        ]
        origins = {outputs[place].origin for place in places} | {selected.sources.resolve(each) for each in of_rows}
        covered = _Covered((origin for origin in origins if origin is not None), selected.sources, selected.frame)
        uncovered = [
            name
            for place, (name, output) in enumerate(zip(names, outputs, strict=True))
            if not (
                place in places
                or output.origin in covered
                or any(self._texts.are_same(output.value, each) for each in of_rows)
            )
        ]
        is_known = not self._has_collation and not any(output.is_many for output in outputs)
        if is_known and not uncovered:
            return ()
        choices: list[tuple[str, ...] | None] = []
        if rows.key is not None:
            covered_names = set(names) - set(uncovered)
            left = [name for name in rows.key if name not in covered_names]
            is_clear = all(names.count(name) <= 1 for name in left)
            choices.append(tuple(quoted_name(rows.spelling.get(name, name)) for name in left) if is_clear else None)
        if isinstance(query, exp.Select) and not query.args.get("distinct"):
            missing = self._missing_of_rows(query, selected, [*of_rows, *_values(outputs, places)], of_groups=True)
            # `t.id` is the field of a selected struct "t".
            choices.append(None if missing and selected.sources.rows.keys() & {*names} else missing)
        if is_known and all(names) and len(set(names)) == len(names):
            choices.append(tuple(quoted_name(rows.spelling.get(name, name)) for name in uncovered))
        # If one of them finds nothing missing, the order is total.
        return () if () in choices else next((choice for choice in choices if choice is not None), None)

    def _missing_of_rows(
        self, select: exp.Select, selected: Selected, ordered: Sequence[exp.Expr], *, of_groups: bool
    ) -> tuple[str, ...] | None:
        """The same for the rows of a SELECT's FROM, or with `of_groups` for its groups, if it has any."""
        sources, frame, groups = selected.sources, selected.frame, selected.groups
        columns = {source for each in ordered if (source := sources.resolve(each)) is not None}
        covered = _Covered(columns, sources, frame)
        if of_groups and groups is not None:
            left = [group for group in groups if not any(self._texts.are_same(group, each) for each in ordered)]
            found = [sources.resolve(group) for group in left]
            missing = [source for source in found if source is None or source not in covered]
            known = [source for source in missing if source is not None]
            return tuple(_written(sources, source) for source in known) if len(known) == len(missing) else None
        if frame.key is not None:
            return tuple(_written(sources, column) for column in frame.key if column not in covered)
        used = None if self._has_collation else _used_columns(select, sources)
        return () if used is not None and all(column in covered for column in used) else None

    def _append(self, order: exp.Expr, columns: tuple[str, ...]) -> None:
        if not columns:
            return
        end = self._end(order)
        if self._ends.setdefault(end, id(order)) != id(order):
            raise self._refusal(order, "an order within an order may tie", columns)
        self._found[end] = Completion(end, columns)

    def _end(self, order: exp.Expr) -> int:
        """The offset at which the text of an ORDER BY ends."""
        tokens = self._query.tokens
        depth = 0
        for index in range(self._begin(order) + 2, len(tokens)):
            kind = tokens[index].token_type
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(kind, 0)
            if depth < 0 or (not depth and kind in _ENDS_ORDER):
                return tokens[index - 1].end + 1
        return tokens[-1].end + 1

    def _begin(self, order: exp.Expr) -> int:
        """The index of the token ORDER BY: the last one before what it orders by."""
        starts = [node.meta["start"] for item in order.expressions for node in item.walk() if "start" in node.meta]
        first = min(starts, default=-1)
        found = [
            index
            for index, token in enumerate(self._query.tokens)
            if token.token_type is TokenType.ORDER_BY and token.start < first
        ]
        if not found:
            raise UnsupportedView(
                f"{self._query.definition.place()}: ORDER BY without a column returns arbitrary rows",
                hint="order by columns in which no two rows tie",
            )
        return found[-1]

    def _refusal(self, node: exp.Expr, problem: str, columns: Sequence[str] = ()) -> UnsupportedView:
        is_order = isinstance(node, exp.Order)
        starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        start = self._query.tokens[self._begin(node)].start if is_order else min(starts, default=0)
        what = f"end ORDER BY with {', '.join(columns)}" if columns else "end ORDER BY with columns that identify a row"
        return UnsupportedView(
            f"{self._query.definition.place(start)}: {problem}",
            hint=what if is_order else "add ORDER BY with columns that identify a row",
        )


class _Covered:
    """The columns of a FROM that have one value among rows that tie in some columns."""

    def __init__(self, columns: Iterable[ColumnRef], sources: FromClause, frame: JoinFacts) -> None:
        self._columns = set(columns)
        self._frame = frame
        self._whole: set[str] = set()  # relations of which the rows that tie have one row
        while found := {alias for alias, rows in sources.rows.items() if self._is_fixed(alias, rows)} - self._whole:
            self._whole |= found

    def _is_fixed(self, alias: str, rows: RelationFacts) -> bool:
        return rows.key is not None and not rows.nullable and all((alias, name) in self for name in rows.key)

    def __contains__(self, column: ColumnRef | None) -> bool:
        if column is None:
            return False
        return any(same in self._columns or same[0] in self._whole for same in self._frame.equal_to(column))


def _place(ordered: exp.Expr, names: Sequence[str]) -> int | None:
    """The output column that an ORDER BY item names: Spark prefers these to the columns of FROM."""
    if isinstance(ordered, exp.Literal) and not ordered.is_string and ordered.name.isdigit():
        place = int(ordered.name) - 1
        return place if 0 <= place < len(names) else None
    return names.index(ordered.name.lower()) if _is_name(ordered) and ordered.name.lower() in names else None


def _is_name(ordered: exp.Expr) -> bool:
    return isinstance(ordered, exp.Column) and not ordered.table


def _is_of_rows(ordered: exp.Expr, outputs: Sequence[OutputColumn], sources: FromClause) -> bool:
    """Whether an item of ORDER BY surely means columns of FROM: Spark prefers those of the result, and their fields.

    A name that Spark makes up may be any.
    """
    for column in ordered.find_all(exp.Column):
        first = column.parts[0].name.lower()
        origin = sources.resolve(column)
        same = [output for output in outputs if output.name.lower() in ("", first)]
        if any(output.origin is None or output.origin != origin for output in same):
            return False
    return True


def _values(outputs: Sequence[OutputColumn], places: Iterable[int]) -> list[exp.Expr]:
    return [value for place in places if (value := outputs[place].value) is not None]


def _used_columns(select: exp.Select, sources: FromClause) -> list[ColumnRef] | None:
    """The columns of FROM that a SELECT uses: rows that are equal in them cannot be told apart."""
    found: list[ColumnRef] = []
    for node in own_nodes(select):
        if isinstance(node, exp.Query) or (isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count)):
            return None
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
            source = sources.resolve(node)
            if source is None:
                return None
            found.append(source)
    return None if sources.has_more else found


def _need(name: str, frame: exp.WindowSpec | None, *, is_ordered: bool) -> _Need:
    kind = str(frame.args.get("kind")).upper() if frame is not None else ""
    is_whole = frame is not None and _is_unbounded(frame, "start") and _is_unbounded(frame, "end")
    if name in _RANKS:
        return "ties"
    if name in _BY_POSITION:
        return "completed"
    if name in _FIRST:
        return "completed" if kind in ("", "ROWS") or _is_unbounded(frame, "start") else "total"
    if name in _LAST:
        return "completed" if kind == "ROWS" or is_whole else "total"
    if is_whole or not (is_ordered or kind == "ROWS"):
        return "any"
    return "completed" if kind == "ROWS" else "ties"


def _is_unbounded(frame: exp.WindowSpec | None, side: str) -> bool:
    return frame is not None and str(frame.args.get(side)).upper() == "UNBOUNDED"


def _function(node: exp.Expr) -> str:
    """The name of a function over a window, whatever surrounds it."""
    while isinstance(node, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        node = node.this
    if isinstance(node, exp.Dot):
        node = node.expression
    return node.name.lower() if isinstance(node, exp.Anonymous) or not isinstance(node, exp.Func) else _name(node)


def _name(function: exp.Func) -> str:
    return function.sql_name().lower()


def _ordered(order: exp.Expr) -> list[exp.Expr]:
    return [item.this if isinstance(item, exp.Ordered) else item for item in order.expressions]


def _written(sources: FromClause, column: ColumnRef) -> str:
    alias, name = column
    spelled = quoted_name(sources.rows[alias].spelling.get(name, name))
    return f"{quoted_name(alias)}.{spelled}" if alias else spelled

"""Computed values that an internal view stores: while a plan is made, each is a column of a leaf of its own.

The leaf of a table with stored values is planned as an inner join with the leaf of the internal view, by the primary
key of the table. All rules of the operators then hold as they are: a demand for some values is a lookup in the internal
view, then one in the table by the keys found. The text that runs names the table alone.

That join changes nothing: the internal view has, for each row of the table, one row with the values of that row (for a
time window, one row for each window that the row is in, like `GROUP BY window(...)`). So it gives the rows of the
table, each with its values. A query over it that computes the same value passes this column on. Whatever changes a
value changes the row that it is computed from, in a column that the view names: changes of the internal view itself
need not be looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.keys import is_time_window, makes_rows
from cdc_views.plan.incremental.columns import Column, Leaf, LeafColumn, Path
from cdc_views.plan.incremental.expressions.derived_table import (
    StoredDerivedTable,
    WantedTable,
    first_rows,
    tokens_of_table,
)
from cdc_views.plan.incremental.expressions.one_row import StoredRow, WantedRow, one_row
from cdc_views.plan.incremental.expressions.select_text import text_of
from cdc_views.plan.incremental.expressions.written import Identity, WrittenExpression, offset, written
from cdc_views.plan.incremental.operators import Equality, InnerJoin, Operator, Scan
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.references import ParsedQuery

NO_COLUMNS: Final[Mapping[str, frozenset[str]]] = MappingProxyType({})
_STORED: Final = -1  # in the path of the leaf of an internal view, after the path of its table's leaf
_TIME_WINDOW: Final = "window"
# Spark makes rows of them, or refuses them beside another such function.
_NOT_INSIDE: Final = frozenset({_TIME_WINDOW, "session_window", "window_time"})
_START: Final = (("word", "."), ("word", "start"))


@dataclass(frozen=True)
class StoredValues:
    """An internal view: for each row of a table, its key and the values of some expressions.

    `start` is the offset at which the outer view names the table. `key` are columns of both, `values` the column of
    each expression, `types` the Arrow types of all columns. `sql` is its SELECT.
    """

    name: str
    sql: str
    start: int
    key: tuple[str, ...]
    values: Mapping[Identity, str]
    types: Mapping[str, str]


@dataclass(frozen=True)
class Wanted:
    """Expressions over one table whose values no internal view stores yet; `alias` stands for the table in them."""

    source: str
    alias: str
    start: int
    expressions: dict[Identity, WrittenExpression] = field(default_factory=dict)


class Expressions:
    """The computed values of one view: those that are stored, and after the plan is made those that it `wanted`.

    `constants` are the leaves of the subqueries whose stored row the plan uses, by their paths; of those in
    `existences` it is a count, and matters only if it is 0. `without_null` are columns that the plan takes to hold no
    NULL.
    """

    def __init__(
        self,
        query: ParsedQuery,
        stored: Iterable[StoredValues | StoredRow | StoredDerivedTable] = (),
        not_null: Mapping[str, Collection[str]] = NO_COLUMNS,
        appended: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        """`not_null` are columns that the source declares so, by table; `appended` is what makes the orders of the
        query total, by offset.
        """
        self._appended = appended
        stored = tuple(stored)
        self._query = query
        self._stored = {each.start: each for each in stored if isinstance(each, StoredValues)}
        self._rows = {each.start: each for each in stored if isinstance(each, StoredRow)}
        self._tables = {each.start: each for each in stored if isinstance(each, StoredDerivedTable)}
        self._columns: dict[tuple[Leaf, Identity], Column] = {}
        self._used: dict[str, StoredRow | StoredDerivedTable] = {}
        self.wanted: dict[int, Wanted | WantedRow | WantedTable] = {}
        self.constants: dict[Path, Leaf] = {}
        self.existences: set[Leaf] = set()
        self.without_null: set[LeafColumn] = set()
        self._not_null = not_null

    def scanned(self, leaf: Leaf) -> Operator:
        """The operator that reads a leaf, together with its stored values."""
        stored = self._stored.get(leaf.path[-1])
        if stored is None:
            return Scan(leaf)
        values = Leaf((*leaf.path, _STORED), stored.name, stored.types, is_internal=True)
        for identity, name in stored.values.items():
            self._columns[leaf, identity] = Column(name, frozenset({LeafColumn(values, name)}))
        key = tuple(
            Equality(frozenset({LeafColumn(leaf, each)}), frozenset({LeafColumn(values, each)})) for each in stored.key
        )
        return InnerJoin((Scan(leaf), Scan(values)), key)

    def column(self, node: exp.Expr, scope: Scope) -> Column | None:
        """The column with the values of an expression over a FROM, if they are stored."""
        return None if is_time_window(node) else self._column(node, scope)

    def window_start(self, node: exp.Expr, groups: Sequence[exp.Expr], scope: Scope) -> Column | None:
        """The column of the only `window(...)` in GROUP BY, or of `window.start`, which Spark makes of it."""
        windows = [each for each in groups if is_time_window(each)]
        is_start = isinstance(node, exp.Column) and (node.table.lower(), node.name.lower()) == (_TIME_WINDOW, "start")
        if len(windows) != 1 or not (node is windows[0] or is_start) or scope.has(_TIME_WINDOW):
            return None
        return self._column(windows[0], scope)

    def want(self, nodes: Iterable[exp.Expr], scope: Scope, groups: Sequence[exp.Expr] = ()) -> None:
        """Remember expressions without which a group, or a join, has no column by which it is looked up.

        A time window is one only as one of the `groups` of GROUP BY.
        """
        possible = (node for node in nodes if not is_time_window(node) or any(node is each for each in groups))
        for leaf, found in filter(None, (self._found(node, scope) for node in possible)):
            start = leaf.path[-1]
            wanted = self.wanted.setdefault(start, Wanted(leaf.source, scope.alias_of(leaf) or "", start))
            assert isinstance(wanted, Wanted)  # a subquery begins with SELECT, at another place
            wanted.expressions[found.identity] = found

    def has_row(self, select: exp.Expr, scope: Scope, leaves: Sequence[Leaf], path: Path) -> bool:
        """Whether the row of a subquery is stored. If it could be, it is remembered as wanted.

        `scope` is that of its FROM, which reads `leaves`; `path` leads to the query around it.
        """
        wanted = one_row(self._query, select, scope, leaves, self._appended)
        if wanted is None:
            return False
        stored = self._rows.get(wanted.start)
        if stored is None:
            self.wanted[wanted.start] = wanted
            return False
        self._used[stored.name] = stored
        place = (*path, stored.start)
        self.constants[place] = leaf = Leaf(place, stored.name, stored.values, is_internal=True)
        if stored.is_existence:
            self.existences.add(leaf)
        return True

    def table(self, select: exp.Expr, path: Path) -> tuple[Leaf, int] | None:
        """The leaf that has the rows of a derived table, if they are stored, and how many of its columns these have.

        `path` leads to the query around it, or to the place that names it as a CTE.
        """
        tokens = tokens_of_table(self._query, select) if self._tables else None
        stored = self._tables.get(tokens[0].start) if tokens is not None else None
        if stored is None:
            return None
        self._used[stored.name] = stored
        return Leaf((*path, stored.start), stored.name, stored.types), len(stored.columns)

    def rows_of(self, wanted: WantedTable) -> tuple[Leaf, tuple[str, ...]] | None:
        """The leaf that has the rows of a query, and its key, if they are stored; if not, they are wanted."""
        stored = self._tables.get(wanted.start)
        if stored is None:
            self.wanted[wanted.start] = wanted
            return None
        self._used[stored.name] = stored
        return Leaf((stored.start,), stored.name, stored.types), stored.key

    def want_table(self, select: exp.Expr, source: str) -> None:
        """Remember a derived table over a table, if an internal view may store it."""
        tokens = tokens_of_table(self._query, select)
        if tokens is not None:
            start, text = tokens[0].start, text_of(self._query.definition.sql, tokens)
            self.wanted[start] = WantedTable((source,), start, start + len(text), text)

    def want_first_rows(self, select: exp.Expr, leaves: Sequence[Leaf], columns: Sequence[Column]) -> None:
        """Remember a query with ORDER BY and LIMIT over these leaves, if an internal view may store its `columns`."""
        wanted = first_rows(self._query, select, leaves, columns, self._appended)
        if wanted is not None:
            self.wanted[wanted.start] = wanted

    def have_values(self, columns: Iterable[LeafColumn]) -> bool:
        """Whether columns are declared NOT NULL. If so, the plan takes them to hold no NULL."""
        columns = frozenset(columns)
        if not columns or any(each.name not in self._not_null.get(each.leaf.source, ()) for each in columns):
            return False
        self.without_null |= columns
        return True

    @property
    def columns_without_null(self) -> tuple[LeafColumn, ...]:
        """The columns of `without_null` in the order of the text."""
        return tuple(sorted(self.without_null, key=lambda each: (each.leaf.path, each.name)))

    def stored_subqueries(self) -> list[StoredRow | StoredDerivedTable]:
        """The stored subqueries that the plan uses."""
        return list(self._used.values())

    def _column(self, node: exp.Expr, scope: Scope) -> Column | None:
        found = self._found(node, scope) if self._columns else None
        return None if found is None else self._columns.get((found[0], found[1].identity))

    def _found(self, node: exp.Expr, scope: Scope) -> tuple[Leaf, WrittenExpression] | None:
        """The leaf that an expression is computed from, row by row, and its text; None for any other expression."""
        parts = list(_columns(node))
        columns = [scope.resolve(each) for each in parts]
        origins = {each for column in columns if column is not None for each in column.origin}
        leaves = {each.leaf for each in origins}
        if isinstance(node, exp.Column) or len(leaves) != 1 or not _is_of_one_row(node):
            return None
        leaf = leaves.pop()
        if scope.alias_of(leaf) is None or not _mean_the_same_alone(parts, columns):
            return None
        names = {
            offset(part): each.name
            for part, column in zip(parts, columns, strict=True)
            for each in (column.origin if column is not None else ())
        }
        found = written(self._query, node, names)
        if found is None:
            return None
        words = [word.strip("`").lower() for _, word in found.identity]
        if is_time_window(node):
            found = WrittenExpression(f"{found.text}.start", (*found.identity, *_START), is_time_window=True)
            words = words[1:]
        return None if _NOT_INSIDE & set(words) else (leaf, found)


def _columns(node: exp.Expr) -> Iterator[exp.Column]:
    return node.find_all(exp.Column)


def _mean_the_same_alone(parts: Sequence[exp.Column], columns: Sequence[Column | None]) -> bool:
    """Whether the names are those of the columns in their table: a subquery, or an alias, may have renamed one."""
    return all(
        column is not None and [each.name.lower() for each in column.origin] == [part.name.lower()]
        for part, column in zip(parts, columns, strict=True)
    )


def _is_of_one_row(node: exp.Expr) -> bool:
    if makes_rows(node) or any(node.find_all(exp.Query, exp.AggFunc, exp.Window, exp.Star)):
        return False
    # `a = b < c` is `(a = b) < c` for Spark, but not for sqlglot. In parentheses there is no doubt.
    return not isinstance(node, exp.Predicate | exp.Connector | exp.Not | exp.Escape)

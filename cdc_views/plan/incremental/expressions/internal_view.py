"""Internal views: what the engine keeps beside the user's views, so that computed values can be looked up.

    SELECT o.id, date_trunc('day', o.ordered_at) AS value_1 FROM public.orders AS o

is the internal view of a view that groups orders by that day. It is compiled and maintained like any view, by the
primary key of its table. Others store the row of a subquery (one_row.py), the rows of a derived table
(derived_table.py), or the groups of grouping sets (stored_groups.py). One that would be FULL may have internal views of
its own, as the first rows of groups need all groups; these have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from cdc_views.base.names import HIDDEN, TableName, is_table
from cdc_views.errors import BadView
from cdc_views.plan.compiled import CompiledView, compile_view, fingerprint_with
from cdc_views.plan.incremental.columns import is_exact, is_looked_up
from cdc_views.plan.incremental.expressions.derived_table import StoredDerivedTable, WantedTable
from cdc_views.plan.incremental.expressions.known import StoredValues, Wanted
from cdc_views.plan.incremental.expressions.one_row import StoredRow, WantedRow
from cdc_views.plan.incremental.expressions.select_text import VALUE
from cdc_views.plan.incremental.expressions.written import Identity
from cdc_views.views.definition import ViewDefinition
from cdc_views.views.graph import ViewGraph
from cdc_views.views.kinds import DEFAULT_KIND
from cdc_views.views.quoting import quoted_name


@dataclass(frozen=True)
class InternalView:
    """An internal view of a user's view: itself, and which values it stores. See StoredValues."""

    compiled: CompiledView
    start: int
    key: tuple[str, ...]
    values: Mapping[Identity, str]

    @property
    def name(self) -> str:
        """Its name in the manifest. No view of the user has one that begins so."""
        return self.compiled.definition.name

    def is_usable(self, types: Mapping[str, str], strategy: str) -> bool:
        """Whether its values can be looked up; `types` are the Arrow types of its columns, `strategy` is its own."""
        return all(is_looked_up(types[name]) for name in self.values.values())

    def stored(self, types: Mapping[str, str]) -> StoredValues:
        """What it stores, for a plan; `types` are the Arrow types of its columns."""
        return StoredValues(self.name, self.compiled.definition.sql, self.start, self.key, self.values, types)


@dataclass(frozen=True)
class InternalRow:
    """An internal view with the row of a subquery. See StoredRow."""

    compiled: CompiledView
    wanted: WantedRow

    @property
    def name(self) -> str:
        """Its name in the manifest. No view of the user has one that begins so."""
        return self.compiled.definition.name

    def is_usable(self, types: Mapping[str, str], strategy: str) -> bool:
        """Whether it costs less than the view that needs it; see `InternalView.is_usable`."""
        return strategy == "ADD" or (strategy != "FULL" and self.wanted.kind == "value")

    def stored(self, types: Mapping[str, str]) -> StoredRow:
        """What it stores, for a plan; `types` are the Arrow types of its columns."""
        return StoredRow(self.name, types, self.wanted)


@dataclass(frozen=True)
class InternalGroups:
    """An internal view with the rows of a derived table. See StoredTable."""

    compiled: CompiledView
    wanted: WantedTable

    @property
    def name(self) -> str:
        """Its name in the manifest. No view of the user has one that begins so."""
        return self.compiled.definition.name

    def is_usable(self, types: Mapping[str, str], strategy: str) -> bool:
        """Whether it costs less than the view that needs it, and stores the values as they are.

        See `InternalView.is_usable`.
        """
        if self.compiled.key is None and not self.wanted.may_repeat:
            return False
        if self.wanted.is_of_totals:  # only averages are floats then, and these have one form each
            return strategy == "ADD"
        return strategy != "FULL" and all(map(is_exact, types.values()))

    def stored(self, types: Mapping[str, str]) -> StoredDerivedTable:
        """What it stores, for a plan; `types` are the Arrow types of its columns."""
        return StoredDerivedTable(self.name, types, self.wanted, self.compiled.key or ())


Internal = InternalView | InternalRow | InternalGroups


def internal_views(
    view: CompiledView,
    wanted: Sequence[Wanted | WantedRow | WantedTable],
    types: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
) -> Iterator[Internal]:
    """Yield an internal view for each subquery, and for each table with wanted expressions that has a primary key.

    `types` describe the inputs of the view, `keys` are their keys, as far as they are known.
    """
    for number, each in enumerate(wanted, start=1):
        name = f"{HIDDEN}{view.definition.name}_{number}"
        try:
            if isinstance(each, WantedTable):
                yield _internal_groups(view, name, each, types, keys)
            elif isinstance(each, WantedRow):
                yield _internal_row(view, name, each, types, keys)
            elif is_table(each.source) and _is_identified(each.source, types, keys):
                yield _internal_view(view, name, each, types[each.source], keys[each.source])
        except BadView:
            continue  # then the view is FULL


def _is_identified(source: str, types: Mapping[str, Mapping[str, str]], keys: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether a table has a key that lookups find as it is."""
    key = keys.get(source, ())
    return bool(key) and all(is_exact(types[source][column]) for column in key)


def _internal_row(
    view: CompiledView,
    name: str,
    wanted: WantedRow,
    types: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
) -> InternalRow:
    definition = ViewDefinition(name, wanted.columns, DEFAULT_KIND, {}, wanted.sql, view.definition.file, 1, 1)
    return InternalRow(_compiled(view, definition, {source: types[source] for source in wanted.sources}, keys), wanted)


def _internal_groups(
    view: CompiledView,
    name: str,
    wanted: WantedTable,
    types: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
) -> InternalGroups:
    definition = ViewDefinition(name, None, DEFAULT_KIND, {}, wanted.sql, view.definition.file, 1, 1)
    of_sources = {source: view.schemas.get(source, types[source]) for source in wanted.sources}
    return InternalGroups(_compiled(view, definition, of_sources, keys), wanted)


def _compiled(
    view: CompiledView,
    definition: ViewDefinition,
    types: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
) -> CompiledView:
    """Compile an internal view of `view`, over the tables and views with these columns."""
    tables = {source: columns for source, columns in types.items() if is_table(source)}
    graph = ViewGraph([definition], [TableName.parse(source) for source in tables], types.keys() - tables.keys())
    known = {source: keys[source] for source in types if keys.get(source)}
    compiled = compile_view(definition, graph, tables, known)
    if len(tables) == len(types):
        return compiled
    # Its rows are those of a view with this text, whose fingerprint includes that of the views below.
    return replace(compiled, fingerprint=fingerprint_with([compiled.fingerprint, view.fingerprint]))


def _internal_view(
    view: CompiledView, name: str, wanted: Wanted, types: Mapping[str, str], key: tuple[str, ...]
) -> InternalView:
    table = TableName.parse(wanted.source)
    free = map(VALUE, count(1))
    taken = {column.lower() for column in key}
    columns = {identity: next(column for column in free if column not in taken) for identity in wanted.expressions}
    alias = quoted_name(wanted.alias)
    selected = [
        *(f"{alias}.{quoted_name(column)}" for column in key),
        *(f"{found.text} AS {columns[identity]}" for identity, found in wanted.expressions.items()),
    ]
    sql = f"SELECT {', '.join(selected)} FROM {quoted_name(table.schema)}.{quoted_name(table.table)} AS {alias}"
    definition = ViewDefinition(name, None, DEFAULT_KIND, {}, sql, view.definition.file, 1, 1)
    compiled = _compiled(view, definition, {wanted.source: types}, {wanted.source: key})
    if any(each.is_time_window for each in wanted.expressions.values()):
        compiled = replace(compiled, key=(*key, *columns.values()))  # a row may be in several windows
    return InternalView(compiled, wanted.start, key, columns)

"""Internal views: what the engine keeps beside the user's views, so that computed values can be looked up.

    SELECT o.id, date_trunc('day', o.ordered_at) AS value_1 FROM public.orders AS o

is the internal view of a view that groups orders by that day. It is compiled and maintained like any view, by the
primary key of its table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from cdc_views.base.names import HIDDEN, TableName
from cdc_views.errors import BadView
from cdc_views.plan.compiled import CompiledView, compile_view
from cdc_views.plan.incremental.columns import is_exact
from cdc_views.plan.incremental.expressions.known import StoredValues, Wanted
from cdc_views.plan.incremental.expressions.written import Identity
from cdc_views.views.definition import ViewDefinition
from cdc_views.views.graph import ViewGraph
from cdc_views.views.kinds import DEFAULT_KIND
from cdc_views.views.text import quoted_name

_VALUE: Final = "value_"


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

    def stored(self, types: Mapping[str, str]) -> StoredValues:
        """What it stores, for a plan; `types` are the Arrow types of its columns."""
        return StoredValues(self.name, self.compiled.definition.sql, self.start, self.key, self.values, types)


def internal_views(
    view: CompiledView,
    wanted: Sequence[Wanted],
    types: Mapping[str, Mapping[str, str]],
    keys: Mapping[str, tuple[str, ...]],
) -> Iterator[InternalView]:
    """Yield an internal view for each table with wanted expressions that has a primary key.

    `types` describe the inputs of the view, `keys` are the primary keys of the mirrors among them.
    """
    for number, each in enumerate(wanted, start=1):
        key = keys.get(each.source, ())
        if key and all(is_exact(types[each.source][column]) for column in key):
            try:
                yield _internal_view(view, f"{HIDDEN}{view.definition.name}_{number}", each, types[each.source], key)
            except BadView:
                continue  # then the view is FULL


def _internal_view(
    view: CompiledView, name: str, wanted: Wanted, types: Mapping[str, str], key: tuple[str, ...]
) -> InternalView:
    table = TableName.parse(wanted.source)
    free = (f"{_VALUE}{number}" for number in count(1))
    taken = {column.lower() for column in key}
    columns = {identity: next(column for column in free if column not in taken) for identity in wanted.expressions}
    alias = quoted_name(wanted.alias)
    selected = [
        *(f"{alias}.{quoted_name(column)}" for column in key),
        *(f"{found.text} AS {columns[identity]}" for identity, found in wanted.expressions.items()),
    ]
    sql = f"SELECT {', '.join(selected)} FROM {quoted_name(table.schema)}.{quoted_name(table.table)} AS {alias}"
    definition = ViewDefinition(name, None, DEFAULT_KIND, {}, sql, view.definition.file, 1, 1)
    compiled = compile_view(definition, ViewGraph([definition], [table]), {wanted.source: types}, {wanted.source: key})
    if any(each.is_time_window for each in wanted.expressions.values()):
        compiled = replace(compiled, key=(*key, *columns.values()))  # a row may be in several windows
    return InternalView(compiled, wanted.start, key, columns)

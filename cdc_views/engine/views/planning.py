"""The plan of a view, from the tables that Spark's analyser has found for it and for its inputs.

A view that is declared strict is refused here, because the types of its inputs can decide its strategy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cdc_views.engine.views.saved.searches import BY_TERMS, is_saved
from cdc_views.engine.views.view_tables import column_types, is_hidden, own_columns
from cdc_views.errors import StrictViewIsFull
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.expressions.internal_view import Internal, internal_views
from cdc_views.plan.incremental.maintenance import Maintenance, StoredPart, maintenance
from cdc_views.store.warehouse import TableSpec


def plan_of(view: CompiledView, specs: Mapping[str, TableSpec]) -> Maintenance:
    """Choose the strategy of a view; `specs` describe its table, its inputs, and its internal views."""
    plan_without, possible = _plan_without(view, specs)
    internal = [each for each in possible if each.name in specs]
    if not internal:
        return plan_without
    plan = _maintenance(view, specs, [each.stored(column_types(specs[each.name])) for each in internal])
    used = (each.compiled for each in internal if each.name in plan.internal_views)
    return replace(plan, below=tuple(_stored_below(used, specs)))


def _stored_below(internal: Iterable[CompiledView], specs: Mapping[str, TableSpec]) -> Iterator[StoredPart]:
    """What the internal views of internal views store."""
    for each in internal:
        yield from plan_of(each, specs).stored


def possible_internal_views(view: CompiledView, specs: Mapping[str, TableSpec]) -> list[Internal]:
    """The internal views with which a view that is FULL may be KEYS; `specs` describe its table and its inputs."""
    return _plan_without(view, specs)[1]


def _plan_without(view: CompiledView, specs: Mapping[str, TableSpec]) -> tuple[Maintenance, list[Internal]]:
    """The plan of a view without internal views, and those that it lacks."""
    if is_saved(view):
        return BY_TERMS, []
    plan = _maintenance(view, specs)
    given = [specs[source] for source in view.inputs]
    keys = {spec.name: spec.key for spec in given if not any(is_hidden(spec.path, column) for column in spec.key)}
    return plan, list(internal_views(view, plan.wanted, _types(view, specs), keys))


def _types(view: CompiledView, specs: Mapping[str, TableSpec]) -> dict[str, dict[str, str]]:
    return {source: column_types(specs[source]) for source in view.inputs}


def _columns(view: CompiledView, specs: Mapping[str, TableSpec]) -> dict[str, str]:
    spec = specs[view.definition.name]
    return {name: str(spec.schema.field(name).type) for name in own_columns(view, spec)}


def _maintenance(view: CompiledView, specs: Mapping[str, TableSpec], stored: Sequence[StoredPart] = ()) -> Maintenance:
    row_keys = {source: specs[source].key for source in view.inputs}
    not_null = {source: specs[source].not_null for source in view.inputs}
    return maintenance(view, _types(view, specs), _columns(view, specs), row_keys, stored, not_null)


def require_strict(view: CompiledView, maintained: Maintenance) -> None:
    """Raise StrictViewIsFull if a view is declared strict and its strategy is FULL."""
    if view.definition.is_strict and maintained.strategy == "FULL":
        raise StrictViewIsFull(
            f'{view.definition.name_place}: view "{view.definition.name}" is strict, but its strategy would be FULL: '
            f"{maintained.reason}",
            hint='docs/views.md says what to write instead of what is FULL; or remove the option "strict"',
        )

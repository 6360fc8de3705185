"""The plan of a view, from the tables that Spark's analyser has found for it and for its inputs.

A view that is declared strict is refused here, because the types of its inputs can decide its strategy.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdc_views.engine.views.view_tables import column_types, own_columns
from cdc_views.errors import StrictViewIsFull
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.maintenance import Maintenance, maintenance
from cdc_views.store.warehouse import TableSpec


def plan_of(view: CompiledView, specs: Mapping[str, TableSpec]) -> Maintenance:
    """Choose the strategy of a view; `specs` describe its table and its inputs."""
    types = {source: column_types(specs[source]) for source in view.inputs}
    spec = specs[view.definition.name]
    columns = {name: str(spec.schema.field(name).type) for name in own_columns(view, spec)}
    return maintenance(view, types, columns, {source: specs[source].key for source in view.inputs})


def require_strict(view: CompiledView, maintained: Maintenance) -> None:
    """Raise StrictViewIsFull if a view is declared strict and its strategy is FULL."""
    if view.definition.is_strict and maintained.strategy == "FULL":
        raise StrictViewIsFull(
            f'{view.definition.name_place}: view "{view.definition.name}" is strict, but its strategy would be FULL: '
            f"{maintained.reason}",
            hint='docs/views.md says what to write instead of what is FULL; or remove the option "strict"',
        )

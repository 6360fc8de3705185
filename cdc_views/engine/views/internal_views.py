"""The tables of internal views: each stores computed values by which the rows of one user's view are looked up.

A view needs none to be right: wherever one is missing or has failed, the view is computed in full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdc_views.engine.views.analysis import AnalysedView, Shapes, TextColumns, analyse_view
from cdc_views.engine.views.planning import plan_of, possible_internal_views, require_strict
from cdc_views.errors import BadView, UnsupportedType
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.columns import is_exact
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.store.control import INTERNAL_VIEW_FOLDER
from cdc_views.store.warehouse import TableSpec


@dataclass(frozen=True)
class InternalTable:
    """An internal view, and its table."""

    view: CompiledView
    spec: TableSpec


def internal_tables(
    shapes: Shapes, specs: Mapping[str, TableSpec], texts: Mapping[str, TextColumns], view: CompiledView
) -> list[InternalTable]:
    """The internal views that a view needs to be KEYS; none if it is so already, or is FULL with them, too.

    `specs` describe its table and its inputs, `texts` the text columns of the inputs.
    """
    found = []
    for internal in possible_internal_views(view, specs):
        try:
            analysed = analyse_view(shapes, specs, texts, internal.compiled)
        except (BadView, UnsupportedType):  # Spark cannot compute the value where the table stands alone, or store it
            continue
        if not all(is_exact(str(analysed.spec.schema.field(name).type)) for name in internal.values.values()):
            continue
        found.append(InternalTable(internal.compiled, _spec(internal.compiled, analysed)))
    if not found:
        return []
    plan = plan_of(view, {**specs, **{each.spec.name: each.spec for each in found}})
    used = plan.keys.internal_views if plan.keys is not None else ()
    return [each for each in found if each.spec.name in used]


def plan_with_internal_views(
    shapes: Shapes, specs: Mapping[str, TableSpec], texts: Mapping[str, TextColumns], view: CompiledView
) -> Maintenance:
    """The plan of a view with its internal views. Raises StrictViewIsFull.

    `specs` describe its table and its inputs, `texts` the text columns of the inputs.
    """
    internal = {each.spec.name: each.spec for each in internal_tables(shapes, specs, texts, view)}
    plan = plan_of(view, {**specs, **internal})
    require_strict(view, plan)
    return plan


def _spec(view: CompiledView, analysed: AnalysedView) -> TableSpec:
    path = f"{INTERNAL_VIEW_FOLDER}{view.definition.name}/{view.fingerprint}"
    return replace(analysed.spec, path=path)

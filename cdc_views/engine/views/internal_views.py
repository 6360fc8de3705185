"""The tables of internal views: each stores computed values by which the rows of one user's view are looked up.

A view needs none to be right: wherever one is missing or has failed, the view is computed in full. So a table that is
lost, or that another program has written to, stops nothing. It is replaced by a new one, which the next epoch fills.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from deltalake.exceptions import DeltaError

from cdc_views.base.names import HIDDEN
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.analysis import AnalysedView, Shapes, TextColumns, analyse_view
from cdc_views.engine.views.planning import plan_of, possible_internal_views, require_strict
from cdc_views.engine.views.saved.searches import is_saved
from cdc_views.engine.views.view_tables import column_types
from cdc_views.errors import BadView, ForeignCommit, TableUnavailable, UnsupportedType, WrongFeatures
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.maintenance import Maintenance, in_full
from cdc_views.store.control import INTERNAL_VIEW_FOLDER
from cdc_views.store.warehouse import TableSpec

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class InternalTable:
    """An internal view, and its table. `is_below`: another internal view needs it."""

    view: CompiledView
    spec: TableSpec
    is_below: bool = False


def internal_tables(
    shapes: Shapes, specs: Mapping[str, TableSpec], texts: Mapping[str, TextColumns], view: CompiledView
) -> list[InternalTable]:
    """The internal views that a view needs to be KEYS; none if it is so already, or is FULL with them, too.

    Before each stand those that it needs itself; these need no others. `specs` describe the view's table and its
    inputs, `texts` the text columns of the inputs.
    """
    found: dict[str, list[InternalTable]] = {}
    is_internal = view.definition.name.startswith(HIDDEN)
    for internal in possible_internal_views(view, specs):
        try:
            analysed = analyse_view(shapes, specs, texts, internal.compiled)
        except (BadView, UnsupportedType):  # Spark cannot compute the value where the table stands alone, or store it
            continue
        spec = _spec(internal.compiled, analysed)
        own = {**specs, spec.name: spec}
        below = [] if is_internal else internal_tables(shapes, own, texts, internal.compiled)
        strategy = plan_of(internal.compiled, {**own, **_specs(below)}).strategy
        if internal.is_usable(column_types(spec), strategy):
            found[spec.name] = [*below, InternalTable(internal.compiled, spec, is_below=is_internal)]
    if not found:
        return []
    used = plan_of(view, {**specs, **_specs(chain.from_iterable(found.values()))}).internal_views
    return [each for name, tables in found.items() if name in used for each in tables]


def levels_of(tables: Iterable[InternalTable]) -> list[list[CompiledView]]:
    """The internal views in the order in which they are maintained: those that others need come first."""
    below, above = list[CompiledView](), list[CompiledView]()
    for each in tables:
        (below if each.is_below else above).append(each.view)
    return [level for level in (below, above) if level]


def plan_with_internal_views(
    shapes: Shapes,
    specs: Mapping[str, TableSpec],
    texts: Mapping[str, TextColumns],
    view: CompiledView,
    *,
    is_local: bool,
) -> Maintenance:
    """The plan of a view with its internal views. Raises StrictViewIsFull.

    `specs` describe its table and its inputs, `texts` the text columns of the inputs; `is_local`: whether the tasks of
    Spark run on this machine. If not, every view is computed in full.
    """
    if not is_local and not is_saved(view):
        plan = in_full("the Spark master is not local, and only tasks on this machine get the rows that are looked up")
        require_strict(view, plan)
        return plan
    plan = plan_of(view, {**specs, **_specs(internal_tables(shapes, specs, texts, view))})
    require_strict(view, plan)
    return plan


def add_internal_table(tables: Tables, spec: TableSpec) -> None:
    """Add the table of an internal view; a new one if that of the last epoch cannot be used."""
    try:
        tables.add(spec)
    except (ForeignCommit, WrongFeatures, TableUnavailable, DeltaError, ValueError) as error:
        tables.add(spec, at_new_path=True)
        _say_renewed(tables, spec.name, str(error))


def renew_internal_table(tables: Tables, name: str) -> None:
    """Replace the table of an internal view, which is lost or has versions of another program. The next epoch fills it.

    No attempt may be under way.
    """
    tables.renew(name)
    _say_renewed(tables, name, "it was removed or damaged, or another program has written to it")


def _say_renewed(tables: Tables, name: str, problem: str) -> None:
    path = tables.specs[name].path
    _LOGGER.warning('internal view "%s": the table cannot be used: %s; computing it again in "%s"', name, problem, path)


def _specs(tables: Iterable[InternalTable]) -> dict[str, TableSpec]:
    return {each.spec.name: each.spec for each in tables}


def _spec(view: CompiledView, analysed: AnalysedView) -> TableSpec:
    path = f"{INTERNAL_VIEW_FOLDER}{view.definition.name}/{view.fingerprint}"
    return replace(analysed.spec, path=path)

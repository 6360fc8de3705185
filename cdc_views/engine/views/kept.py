"""How views are kept, as the takeover of an engine records it for readers."""

from __future__ import annotations

from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.explain import explain
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.store.control import KeptView


def kept_view(view: CompiledView, plan: Maintenance) -> KeptView:
    """The facts of a view and its plan."""
    definition, found = view.definition, explain(view, plan)
    start, end = definition.written
    return KeptView(
        definition=definition.sql[start:end],
        sql=found.sql,
        strategy=found.strategy,
        reason=found.reason,
        key=found.key,
        key_reason=found.key_reason,
        inputs=found.inputs,
        options=dict(definition.options),
        steps=found.steps,
        internal=dict(found.internal),
        lookups=found.lookups,
    )

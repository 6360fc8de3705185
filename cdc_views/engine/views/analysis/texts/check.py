"""Checks one view: returns which of its own columns are text columns, or refuses the view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from cdc_views.engine.views.analysis.plan_tree import AnalysedPlan
from cdc_views.engine.views.analysis.texts.plans import Plans
from cdc_views.engine.views.analysis.texts.tags import Tag, TextColumns
from cdc_views.engine.views.analysis.texts.values import OTHER, ProblemFound, TextProblem
from cdc_views.errors import UnsupportedView
from cdc_views.plan.compiled import CompiledView


def check_text_columns(
    view: CompiledView, plan: AnalysedPlan, relations: Mapping[str, str], inputs: Mapping[str, TextColumns]
) -> dict[int, Tag]:
    """The view's columns, by number, that hold text columns of its inputs unchanged.

    `relations` maps each input to its name in the plan; `inputs` maps each input to its text columns. Raises
    UnsupportedView with file, line and column.
    """
    plans = Plans(plan, {relation: inputs.get(source, {}) for source, relation in relations.items()})
    try:
        outputs = plans.outputs(plan.root)
    except ProblemFound as found:
        _refuse(view, plan, relations, found.problem)
    tags = ((number, plans.values.get(output, OTHER).tag) for number, output in enumerate(outputs))
    return {number: tag for number, tag in tags if tag is not None}


def _refuse(view: CompiledView, plan: AnalysedPlan, relations: Mapping[str, str], problem: TextProblem) -> NoReturn:
    place, fragment = view.fragment(relations, plan.span(problem.node))
    text = problem.text
    subject = f'column "{text.column}" of "{text.table}"'
    hint = text.type.write.format(column=text.column)
    if text.is_element:
        subject = f"each element of {subject}"
        hint = f"in transform({text.column}, x -> ...) {text.type.write.format(column='x')}"
    elif text.type.setting:
        hint = f"{hint}, or {text.type.setting.format(place=f'{text.table}.{text.column}')}"
    raise UnsupportedView(
        f'{place}: {subject} is {text.type.name} in Postgres and text here, and "{fragment}" {problem.why}', hint=hint
    )

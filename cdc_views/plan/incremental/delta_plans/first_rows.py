"""The plan of a view that keeps the first rows of a whole query: ORDER BY ... LIMIT k.

It is the rule of top_rows.py with one partition, which is the whole view: its stored rows are the first k rows of J, or
all of them if they are fewer. Where the first rows do not follow from these and the rows that are added, no lookup
finds the next ones, and the epoch is FULL.

    SELECT id, name, price FROM products ORDER BY price DESC LIMIT 10

The order is total, or rows that tie in it are equal in all columns (plan/facts/order.py). So which of them are stored
does not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.keys import windows
from cdc_views.plan.incremental.build import LeafOf, build, build_from
from cdc_views.plan.incremental.delta_plans.linear import require_multilinear, require_only
from cdc_views.plan.incremental.delta_plans.top_rows import PatchPlan, merged_plan, require_rows
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.strategy import outputs_of
from cdc_views.views.references import ParsedQuery

_OF_SELECT: Final = frozenset({"expressions", "from_", "joins", "where", "order", "limit"})


def first_rows_plan(
    query: ParsedQuery,
    leaf_of: LeafOf,
    columns: Mapping[str, str],
    row_keys: Mapping[str, Sequence[str]],
) -> PatchPlan:
    """Plan a view; the arguments are as for `add_plan`. Raises NotIncremental with the reason for FULL."""
    select = query.tree
    if not isinstance(select, exp.Select):
        raise NotIncremental("a set operation")
    require_only(select, _OF_SELECT)
    require_rows(select)
    if any(windows(select)) or not select.args.get("order"):
        raise NotIncremental("a window, or no order")
    operator, _ = build_from(select, leaf_of, Expressions(query))
    require_multilinear(operator)
    built = build(select, leaf_of, Expressions(query))
    outputs = outputs_of(built, columns, are_renamed=query.definition.columns is not None)
    return merged_plan(operator, outputs, _most(select), row_keys)


def _most(select: exp.Select) -> int:
    limit = select.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    if not isinstance(number, exp.Literal) or not number.is_int or int(number.name) < 1:
        raise NotIncremental("no fixed LIMIT")
    return int(number.name)

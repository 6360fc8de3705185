"""Views that are maintained by lookups: from the SQL of a view to what is looked up for a change. No Spark here.

columns.py       leaves and columns, and where a column's values come from
restrictions.py  demands on an operator's output, and the lookups that they become
operators/       one file for each kind of operator, with its rules and their proof
exact_types.py   types of exact numbers, and what Spark makes of several
precedence.py    operators that Spark and sqlglot group in different ways: such a view is FULL
scope.py         what names stand for in a FROM
build/           from the syntax tree to the operators
strategy.py      the plan of a view for KEYS, or the reason why it has none
delta_plans/     the plans of views for ADD and PATCH, or the reason why they have none
expressions/     computed values that internal views store
inlined.py       the view's text with a place for each leaf
maintenance.py   the strategy of a view, with the reason
leaf_names.py    what `explain` calls the leaves of a view
"""

from __future__ import annotations

from cdc_views.plan.incremental.columns import Leaf, LeafColumn, Path
from cdc_views.plan.incremental.delta_plans.additive import AddPlan, add_plan
from cdc_views.plan.incremental.delta_plans.averages import Average
from cdc_views.plan.incremental.delta_plans.extremes import Distinct, Extreme
from cdc_views.plan.incremental.delta_plans.group_totals import GroupPlan, group_plan
from cdc_views.plan.incremental.delta_plans.ordered_lists import OrderedList
from cdc_views.plan.incremental.delta_plans.shown_columns import ShownColumns
from cdc_views.plan.incremental.delta_plans.top_rows import OrderColumn, PatchPlan, patch_plan
from cdc_views.plan.incremental.delta_plans.totals import Total
from cdc_views.plan.incremental.inlined import Edit, LeafPlace, inlined
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Values
from cdc_views.plan.incremental.strategy import Handle, HandlePart, KeysPlan, keys_plan

__all__ = [
    "AddPlan",
    "Average",
    "Distinct",
    "Edit",
    "Extreme",
    "GroupPlan",
    "Handle",
    "HandlePart",
    "KeysPlan",
    "Leaf",
    "LeafColumn",
    "LeafPlace",
    "Lookup",
    "NotIncremental",
    "OrderColumn",
    "OrderedList",
    "PatchPlan",
    "Path",
    "ShownColumns",
    "Total",
    "Values",
    "add_plan",
    "group_plan",
    "inlined",
    "keys_plan",
    "patch_plan",
]

"""The operators of a query, each with its rules: demand going down, keys going up (docs/decisions has the invariant).

The docstring of each module has a view, and below it the lookups that a change causes, as `explain` shows them.

operator.py       what every operator says about itself
scan.py           reads a table; rows that no table decides
grouping.py       GROUP BY, DISTINCT, windows, LIMIT
equalities.py     the equalities of joins
inner_join.py     inner joins of any number of inputs
outer_join.py     left and right joins
full_join.py      full joins
dependent.py      subqueries in expressions, semi and anti joins, LATERAL
set_operation.py  UNION, INTERSECT, EXCEPT, with and without ALL

Filters, projections and functions that make rows (explode) have no operator: they keep, change and multiply rows one by
one, so both rules pass through them. Only the columns that they pass on unchanged matter, and these are known by their
origin at a leaf.
"""

from __future__ import annotations

from cdc_views.plan.incremental.operators.dependent import Dependent
from cdc_views.plan.incremental.operators.equalities import Equality
from cdc_views.plan.incremental.operators.full_join import FullJoin
from cdc_views.plan.incremental.operators.grouping import Grouping, same_values
from cdc_views.plan.incremental.operators.inner_join import InnerJoin
from cdc_views.plan.incremental.operators.operator import Operator, named_leaves
from cdc_views.plan.incremental.operators.outer_join import OuterJoin
from cdc_views.plan.incremental.operators.scan import Constant, Scan
from cdc_views.plan.incremental.operators.set_operation import SetOperation

__all__ = [
    "Constant",
    "Dependent",
    "Equality",
    "FullJoin",
    "Grouping",
    "InnerJoin",
    "Operator",
    "OuterJoin",
    "Scan",
    "SetOperation",
    "named_leaves",
    "same_values",
]

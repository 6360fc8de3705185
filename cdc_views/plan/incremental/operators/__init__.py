"""The operators of a query, each with its rules: demand going down, keys going up (docs/decisions has the invariant).

operator.py       what every operator says about itself
scan.py           reads a table; rows that no table decides
grouping.py       GROUP BY, DISTINCT, windows, LIMIT
join.py           inner joins, outer joins, full joins
dependent.py      subqueries in expressions, semi and anti joins, LATERAL
set_operation.py  UNION, INTERSECT, EXCEPT, with and without ALL

Filters, projections and functions that make rows (explode) have no operator: they keep, change and multiply rows one by
one, so both rules pass through them. Only the columns that they pass on unchanged matter, and these are known by their
origin at a leaf.
"""

from __future__ import annotations

from cdc_views.plan.incremental.operators.dependent import Dependent
from cdc_views.plan.incremental.operators.grouping import Grouping, same_values
from cdc_views.plan.incremental.operators.join import Equality, FullJoin, InnerJoin, OuterJoin
from cdc_views.plan.incremental.operators.operator import Operator
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
    "same_values",
]

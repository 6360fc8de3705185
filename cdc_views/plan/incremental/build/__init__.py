"""From the syntax tree of a view to its operators.

Each SELECT becomes, from the bottom: the joins of its FROM; its subqueries; GROUP BY; windows; DISTINCT; LIMIT. A CTE
is built again for each place that names it, so that each place can be reduced by its own demand.

context.py      where a query stands, and what is made of it
from_clause.py  FROM and WHERE
subqueries.py   the subqueries of expressions
query.py        SELECTs and set operations
"""

from __future__ import annotations

from cdc_views.plan.incremental.build.context import Built, LeafOf
from cdc_views.plan.incremental.build.query import build, build_from

__all__ = ["Built", "LeafOf", "build", "build_from"]

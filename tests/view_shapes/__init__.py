"""The fifty named shapes of views, as data: their tables, their SQL, and the strategy that each must get.

tables.py     the tables that all shapes read, with few values per column, so that ties and NULLs are common
shape.py      a shape, a view of it, and whether an explained strategy is good enough
rows.py       filters, projections, set operations, lists and documents
joins.py      joins, semi-joins, anti-joins and subqueries
groups.py     aggregates, windows of rows and of time
nested.py     top-k, views over views, CTEs, and nested shapes
changes.py    random transactions over the tables
check.py      plays a history, and compares every view with its SQL after every epoch
sizes.py      tables of a given size, and the small changes whose cost must not grow with it
costs.py      compares the cost of a change at two sizes
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.view_shapes.groups import GROUPS
from tests.view_shapes.joins import JOINS
from tests.view_shapes.nested import NESTED
from tests.view_shapes.rows import ROWS
from tests.view_shapes.shape import Shape, View
from tests.view_shapes.tables import DDL, TABLES

SHAPES: Final[tuple[Shape, ...]] = tuple(
    sorted((*ROWS, *JOINS, *GROUPS, *NESTED), key=lambda shape: (shape.number, shape.name))
)
# Every view by name. Within it, the views that a view reads come first.
VIEWS: Final[Mapping[str, View]] = {view.name: view for shape in SHAPES for view in shape.views}

__all__ = ["DDL", "SHAPES", "TABLES", "VIEWS", "Shape", "View"]

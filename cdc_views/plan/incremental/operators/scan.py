"""Scan: reads a table or view.

Restrict: a lookup by the columns of one restriction gives all rows that meet it: for floats, all that Spark treats as
equal to one of the values. The restriction with the most columns is used, the first of several. The others are dropped.
A column that must equal two values (`a.x = b.y AND a.x = b.z`) is looked up by the first of them.
Find: the changed rows are given.

    SELECT id, name FROM users WHERE country = 'NL'

    a change of public.users affects (id)
    the rows of affected (id) are computed again from
      public.users by (id) from (id) of the affected keys
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_views.plan.incremental.columns import Column, Leaf, LeafColumn, Origin, is_looked_up
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Restriction


@dataclass(frozen=True)
class Scan:
    """Reads one leaf."""

    leaf: Leaf

    @property
    def leaves(self) -> frozenset[Leaf]:
        return frozenset({self.leaf})

    @property
    def columns(self) -> list[Column]:
        """The columns of the table."""
        leaf = self.leaf
        return [Column(name, frozenset({LeafColumn(leaf, name)}), name in leaf.never_null) for name in leaf.types]

    def passable(self) -> list[frozenset[Origin]]:
        return [frozenset(column.origin for column in self.columns if is_looked_up(self.leaf.types[column.name]))]

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        if not restrictions:
            raise NotIncremental(f'table "{self.leaf}" would be read whole')
        chosen = max((each.once() for each in restrictions), key=lambda each: len(each.columns))
        return [Lookup(self.leaf, tuple(column.name for (column,) in chosen.columns), chosen.values)]

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        return []


@dataclass(frozen=True)
class Constant:
    """Rows that no table decides: VALUES, a function in FROM, or a SELECT without FROM."""

    @property
    def leaves(self) -> frozenset[Leaf]:
        return frozenset()

    def passable(self) -> list[frozenset[Origin]]:
        return [frozenset()]

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        return []

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        return []

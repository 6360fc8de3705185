"""UNION, INTERSECT, EXCEPT: each output row is decided by the rows of all branches that are equal to it.

Restrict: rows that are equal have equal columns, so a restriction by any columns keeps or drops all copies in all
branches. It is applied in each branch, to the branch's own columns. UNION ALL needs less, and its rule is the same.
Find: a changed row of a branch changes the output rows equal to it; their columns are those of the branch.

    SELECT id FROM users EXCEPT SELECT author_id FROM posts

    a change of public.users affects (id)
    a change of public.posts affects (id)
    the rows of affected (id) are computed again from
      public.users by (id) from (id) of the affected keys
      public.posts by (author_id) from (id) of the affected keys, NULL matches NULL
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.operator import Operator, passes
from cdc_views.plan.incremental.restrictions import Lookup, Restriction, within


@dataclass(frozen=True)
class SetOperation:
    """`outputs` are the columns that are plain in every branch, each with its origins in all branches."""

    branches: tuple[Operator, ...]
    outputs: frozenset[Origin]

    @cached_property
    def leaves(self) -> frozenset[Leaf]:
        return frozenset(leaf for branch in self.branches for leaf in branch.leaves)

    def passable(self) -> list[frozenset[Origin]]:
        return [frozenset(origin for origin in self.outputs if all(passes(each, origin) for each in self.branches))]

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        return [
            lookup
            for branch in self.branches
            for lookup in branch.restrict(within(restrictions, branch.leaves), finding=finding)
        ]

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        branch = next(each for each in self.branches if leaf in each.leaves)
        parts = (frozenset(column for column in origin if column.leaf in branch.leaves) for origin in needed)
        return branch.find(leaf, [part for part in parts if part])

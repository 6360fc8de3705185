"""Full joins.

Restrict: one side by its own columns, then the other by the equalities. Rows of the restricted side have all matches. A
looked-up row of the other side may seem to have no match, where ON has further conditions: its output row has NULL in
all columns of the restricted side, so it does not meet a restriction by values other than NULL. NULL as a value would
need all rows of the other side that have no match, so a change is not maintained by keys if it affects a key of NULLs
(engine/views/strategies/keys.py). Both sides are never restricted each by its own columns: a row whose match is left
out would seem to have none. A column that USING merges does restrict both sides, since rows that match are equal in it,
and NULL is a value like others, provided that each side passes it: a side that is an outer join may have rows where it
is NULL for want of a match.
Find: a changed row changes its own output rows, and those of the rows that it joins. So changed output rows are looked
for by the columns of each side: two alternatives.

    SELECT u.id, p.id AS post_id FROM users u FULL JOIN posts p ON p.author_id = u.id

    a change of public.users affects (id)
      look up public.posts by (author_id) from (id) of public.users
    a change of public.posts affects (id)
      look up public.users by (id) from (author_id) of public.posts
    the rows of affected (id) are computed again from
      public.users by (id) from (id) of the affected keys
      public.posts by (author_id) from (id) of public.users
    a change of public.users affects (post_id)
      look up public.posts by (author_id) from (id) of public.users
    a change of public.posts affects (post_id)
      look up public.users by (id) from (author_id) of public.posts
    the rows of affected (post_id) are computed again from
      public.posts by (id) from (post_id) of the affected keys
      public.users by (id) from (author_id) of public.posts
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.equalities import Equality, of_child, sideways, turned
from cdc_views.plan.incremental.operators.operator import Operator, passes
from cdc_views.plan.incremental.restrictions import Lookup, Restriction, only, within


@dataclass(frozen=True)
class FullJoin:
    """A full join; `merged` are the columns that USING merges from both sides."""

    left: Operator
    right: Operator
    equalities: tuple[Equality, ...]
    merged: frozenset[Origin] = frozenset()

    @cached_property
    def leaves(self) -> frozenset[Leaf]:
        return self.left.leaves | self.right.leaves

    def passable(self) -> list[frozenset[Origin]]:
        if self.merged:
            return [frozenset(each for each in self.merged if passes(self.left, each) and passes(self.right, each))]
        return [*self.left.passable(), *self.right.passable()]

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        if merged := only(restrictions, self.merged):
            left, right = within(merged, self.left.leaves), within(merged, self.right.leaves)
            return [*self.left.restrict(left, finding=finding), *self.right.restrict(right, finding=finding)]
        left, right = within(restrictions, self.left.leaves), within(restrictions, self.right.leaves)
        if left:
            found = self.left.restrict(left, finding=finding)
            return [*found, *self.right.restrict(list(sideways(self.equalities)), finding=finding)]
        found = self.right.restrict(right, finding=finding)
        return [*found, *self.left.restrict(list(sideways(turned(self.equalities))), finding=finding)]

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        wanted = frozenset(needed)
        changed, other, equalities = self.left, self.right, self.equalities
        if leaf in self.right.leaves:
            changed, other, equalities = self.right, self.left, turned(self.equalities)
        found = changed.find(leaf, of_child(wanted, changed) | {each.left for each in equalities})
        return [*found, *other.restrict(list(sideways(equalities)), finding=True)]

"""Left joins; a right join is the mirror image of one.

Restrict: the preserved side by its own columns, then the other side by the equalities. Each preserved row then has all
of its matches, so none is treated as unmatched.
Find: a row of the optional side changes the output rows of all preserved rows that it joins, also from (l, NULL) to
(l, r) and back. So its old and its new values lead to the preserved rows.

    SELECT u.id, p.id AS post_id FROM users u LEFT JOIN posts p ON p.author_id = u.id

    a change of public.users affects (id)
    a change of public.posts affects (id)
      look up public.users by (id) from (author_id) of public.posts
    the rows of affected (id) are computed again from
      public.users by (id) from (id) of the affected keys
      public.posts by (author_id) from (id) of public.users
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.equalities import Equality, of_child, sideways, touches, turned
from cdc_views.plan.incremental.operators.operator import Operator
from cdc_views.plan.incremental.restrictions import Lookup, Restriction, within


@dataclass(frozen=True)
class OuterJoin:
    """A left join: every row of `preserved` is in the output."""

    preserved: Operator
    optional: Operator
    equalities: tuple[Equality, ...]  # the preserved side's column first

    @cached_property
    def leaves(self) -> frozenset[Leaf]:
        return self.preserved.leaves | self.optional.leaves

    def passable(self) -> list[frozenset[Origin]]:
        return self.preserved.passable()

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        own = within(restrictions, self.preserved.leaves)
        if not own and finding:
            found = self.optional.restrict(within(restrictions, self.optional.leaves), finding=True)
            return [*found, *self.preserved.restrict(list(sideways(turned(self.equalities))), finding=True)]
        found = self.preserved.restrict(own, finding=finding)
        return [*found, *self.optional.restrict(list(sideways(self.equalities)), finding=finding)]

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        wanted = frozenset(needed)
        changed, other, equalities = self.preserved, self.optional, self.equalities
        if leaf in self.optional.leaves:
            changed, other, equalities = self.optional, self.preserved, turned(self.equalities)
        elif not touches(wanted, other):
            return changed.find(leaf, wanted)
        found = changed.find(leaf, of_child(wanted, changed) | {each.left for each in equalities})
        return [*found, *other.restrict(list(sideways(equalities)), finding=True)]

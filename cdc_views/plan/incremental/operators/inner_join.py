"""Inner joins of any number of inputs.

Restrict: rows that meet a restriction come from input rows that meet it. So the restricted inputs come first, and the
others follow by equalities: all rows that join those found. A further condition only removes rows of the output.
Find: a changed row is part of the output rows that join it. So the inputs whose columns are needed are looked up from
it, equality by equality.

    SELECT i.order_id, i.line, p.sku FROM order_items i JOIN products p ON p.id = i.product_id

    a change of public.order_items affects (order_id, line)
    a change of public.products affects (order_id, line)
      look up public.order_items by (product_id) from (id) of public.products
    the rows of affected (order_id, line) are computed again from
      public.order_items by (order_id, line) from (order_id, line) of the affected keys
      public.products by (id) from (product_id) of public.order_items
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.equalities import Equality, of_child, sideways, touches, turned
from cdc_views.plan.incremental.operators.operator import Operator
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Restriction, within


@dataclass(frozen=True)
class InnerJoin:
    """Joins any number of inputs by equalities between two of them each."""

    children: tuple[Operator, ...]
    equalities: tuple[Equality, ...]

    @cached_property
    def leaves(self) -> frozenset[Leaf]:
        return frozenset(leaf for child in self.children for leaf in child.leaves)

    def passable(self) -> list[frozenset[Origin]]:
        found: list[frozenset[Origin]] = [frozenset()]
        for child in self.children:
            found = [before | each for before in found for each in child.passable()]
        return found

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        lookups: list[Lookup] = []
        done: list[Operator] = [child for child in self.children if not child.leaves]
        for child in self.children:
            own = within(restrictions, child.leaves)
            if own and (found := _tried(child, own, finding=finding)) is not None:
                lookups += found
                done.append(child)
        if not lookups:
            raise NotIncremental("its columns do not restrict a table of the join")
        return [*lookups, *self._reach(done, self.children, finding=finding)]

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        changed = next(child for child in self.children if leaf in child.leaves)
        wanted = frozenset(needed)
        targets = [child for child in self.children if child is not changed and touches(wanted, child)]
        route = self._route(changed, targets)
        used = {each.left for child in route for each in self._from_to([changed], child)}
        lookups = changed.find(leaf, of_child(wanted, changed) | used)
        return [*lookups, *self._reach([changed], route, finding=True)]

    def _reach(self, done: Sequence[Operator], children: Sequence[Operator], *, finding: bool) -> list[Lookup]:
        """Look up the inputs that are left, each from those that are done."""
        lookups: list[Lookup] = []
        reached = list(done)
        pending = [child for child in children if child not in reached]
        while pending:
            for child in pending:
                found = _tried(child, list(sideways(self._from_to(reached, child))), finding=finding)
                if found is not None:
                    break
            else:
                names = ", ".join(
                    f'"{leaf}"' for child in pending for leaf in sorted(child.leaves, key=lambda x: x.path)
                )
                raise NotIncremental(f"no equality of columns joins {names} to the rest")
            lookups += found
            reached.append(child)
            pending.remove(child)
        return lookups

    def _route(self, start: Operator, targets: Sequence[Operator]) -> list[Operator]:
        """The inputs through which equalities lead from `start` to the targets, the targets included."""
        came_from: dict[int, Operator | None] = {id(start): None}
        queue = [start]
        for child in queue:
            for other in self.children:
                if id(other) not in came_from and self._from_to([child], other):
                    came_from[id(other)] = child
                    queue.append(other)
        wanted: list[Operator] = []
        for target in targets:
            step: Operator | None = target
            if id(target) not in came_from and target.leaves:
                raise NotIncremental(f'no equality of columns joins "{min(target.leaves, key=lambda x: x.path)}"')
            while step is not None and step is not start:
                if step not in wanted:
                    wanted.append(step)
                step = came_from.get(id(step))
        return wanted

    def _from_to(self, known: Sequence[Operator], child: Operator) -> list[Equality]:
        """The equalities between these inputs and `child`: the known column first."""
        both = (*self.equalities, *turned(self.equalities))
        return [
            each for each in both
            if _is_in(each.right, child) and any(_is_in(each.left, other) for other in known)
        ]  # fmt: skip


def _tried(child: Operator, restrictions: list[Restriction], *, finding: bool) -> list[Lookup] | None:
    if not restrictions:
        return None
    try:
        return child.restrict(restrictions, finding=finding)
    except NotIncremental:
        return None


def _is_in(origin: Origin, child: Operator) -> bool:
    return all(column.leaf in child.leaves for column in origin)

"""Inner joins, outer joins and full joins, by equalities of columns.

A lookup through an equality finds, for all rows found on one side, all rows of the other side that they join.

Inner join. Restrict: rows that meet a restriction come from input rows that meet it; the restricted inputs come first,
the others follow by equalities, and any further condition only removes rows. Find: a changed row is part of the output
rows that join it, so the inputs whose columns are needed are looked up from it, equality by equality.

Left join (a right join is its mirror image). Restrict: the preserved side by its own columns, then the other side by
the equalities: each preserved row then has all of its matches, so none is taken for unmatched. Find: a row of the
optional side changes the output rows of all preserved rows that it joins, also from (l, NULL) to (l, r) and back.

Full join. Restrict: one side by its own columns, then the other by the equalities. Rows of the restricted side have all
matches. A looked-up row of the other side may seem to have no match, where ON has further conditions: its output row
has NULL in all columns of the restricted side, so it does not meet a restriction by values other than NULL. NULL as a
value would need all rows of the other side that have no match, so a change is not maintained by keys if it affects a
key of NULLs (engine/views/strategies/keys.py). Both sides are never restricted each by its own columns: a row whose
match is left out would seem to have none. A column that USING merges does restrict both sides, since rows that match
are equal in it, and NULL is a value like others, provided that each side passes it: a side that is an outer join may
have rows where it is NULL for want of a match. Find: a changed row changes its own output rows, and those of the rows
that it joins. So changed output rows are looked for by the columns of each side: two alternatives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.operator import Operator, passes
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Restriction, Values, only, within

Equality = tuple[Origin, Origin]


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
        targets = [child for child in self.children if child is not changed and _touches(wanted, child)]
        route = self._route(changed, targets)
        used = {origin for child in route for origin, _ in self._from_to([changed], child)}
        lookups = changed.find(leaf, _of(wanted, changed) | used)
        return [*lookups, *self._reach([changed], route, finding=True)]

    def _reach(self, done: Sequence[Operator], children: Sequence[Operator], *, finding: bool) -> list[Lookup]:
        """Look up the inputs that are left, each from those that are done."""
        lookups: list[Lookup] = []
        reached = list(done)
        pending = [child for child in children if child not in reached]
        while pending:
            for child in pending:
                found = _tried(child, list(_sideways(self._from_to(reached, child))), finding=finding)
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
        both = (*self.equalities, *((right, left) for left, right in self.equalities))
        return [
            (left, right) for left, right in both
            if _is_in(right, child) and any(_is_in(left, each) for each in known)
        ]  # fmt: skip


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
            return [*found, *self.preserved.restrict(list(_sideways(_turned(self.equalities))), finding=True)]
        found = self.preserved.restrict(own, finding=finding)
        return [*found, *self.optional.restrict(list(_sideways(self.equalities)), finding=finding)]

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        wanted = frozenset(needed)
        changed, other, equalities = self.preserved, self.optional, self.equalities
        if leaf in self.optional.leaves:
            changed, other, equalities = self.optional, self.preserved, _turned(self.equalities)
        elif not _touches(wanted, other):
            return changed.find(leaf, wanted)
        found = changed.find(leaf, _of(wanted, changed) | {left for left, _ in equalities})
        return [*found, *other.restrict(list(_sideways(equalities)), finding=True)]


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
            return [*found, *self.right.restrict(list(_sideways(self.equalities)), finding=finding)]
        found = self.right.restrict(right, finding=finding)
        return [*found, *self.left.restrict(list(_sideways(_turned(self.equalities))), finding=finding)]

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        wanted = frozenset(needed)
        changed, other, equalities = self.left, self.right, self.equalities
        if leaf in self.right.leaves:
            changed, other, equalities = self.right, self.left, _turned(self.equalities)
        found = changed.find(leaf, _of(wanted, changed) | {left for left, _ in equalities})
        return [*found, *other.restrict(list(_sideways(equalities)), finding=True)]


def _turned(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    return tuple((right, left) for left, right in equalities)


def _sideways(equalities: Iterable[Equality]) -> Iterator[Restriction]:
    """Restrictions of the second columns to the values of the first; those of one leaf together."""
    by_leaf: dict[Leaf, list[Equality]] = {}
    for left, right in equalities:
        leaves = {column.leaf for column in left}
        if len(leaves) == 1:
            by_leaf.setdefault(leaves.pop(), []).append((left, right))
        else:
            yield Restriction((right,), Values(tuple((column,) for column in sorted(left, key=str))))
    for found in by_leaf.values():
        values = tuple(next(iter(left)) for left, _ in found)
        yield Restriction(tuple(right for _, right in found), Values((values,)))


def _tried(child: Operator, restrictions: list[Restriction], *, finding: bool) -> list[Lookup] | None:
    if not restrictions:
        return None
    try:
        return child.restrict(restrictions, finding=finding)
    except NotIncremental:
        return None


def _is_in(origin: Origin, child: Operator) -> bool:
    return all(column.leaf in child.leaves for column in origin)


def _touches(origins: Iterable[Origin], child: Operator) -> bool:
    return any(column.leaf in child.leaves for origin in origins for column in origin)


def _of(origins: Iterable[Origin], child: Operator) -> frozenset[Origin]:
    """The parts of the origins that are below `child`."""
    parts = (frozenset(column for column in origin if column.leaf in child.leaves) for origin in origins)
    return frozenset(part for part in parts if part)

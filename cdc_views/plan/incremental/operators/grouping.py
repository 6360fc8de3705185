"""GROUP BY, DISTINCT, windows and LIMIT: each output row is decided by a whole group of input rows.

Restrict: a restriction by columns that are equal in all rows of a group keeps or drops whole groups, so it can be
applied below. By other columns it would cut groups: those columns are left out. What is equal in a group: the columns
of GROUP BY; all selected columns for DISTINCT; the columns of PARTITION BY, of all windows at once; nothing for LIMIT
and for an aggregate over all rows.
Find: the output rows of the groups of changed input rows change. Their columns are those of the input rows where they
are equal in a group. A window also passes on other columns, of all rows of its partition: to know these, the whole
partitions are looked up, in all branches of a set operation below by the values of any of them. Not above a full join
with two alternatives: a partition's rows without the one side are not found by its columns.
With `finding`, a restriction by any column that is passed on finds the leaf rows of the rows that meet it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.operator import Operator
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Restriction, Values, only


@dataclass(frozen=True)
class Grouping:
    """`equal` are the columns that are equal in all rows of a group; `name` is for messages.

    `passes_rows`: the output has the rows of the input, with all their columns (a window, a LIMIT).
    """

    child: Operator
    equal: frozenset[Origin]
    name: str
    passes_rows: bool

    @property
    def leaves(self) -> frozenset[Leaf]:
        return self.child.leaves

    def passable(self) -> list[frozenset[Origin]]:
        return [each & self.equal for each in self.child.passable()]

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        kept = list(restrictions) if finding and self.passes_rows else only(restrictions, self.equal)
        if not kept:
            raise NotIncremental(self._reason())
        return self.child.restrict(kept, finding=finding)

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        wanted = frozenset(needed)
        if wanted <= self.equal:
            return self.child.find(leaf, wanted)
        alternatives = self.passable()
        if len(alternatives) > 1:
            raise NotIncremental(f"{self.name}: a full join below it has rows that only other columns find")
        (groups,) = alternatives
        if not groups:
            raise NotIncremental(self._reason())
        found = self.child.find(leaf, groups)
        return [*found, *self.child.restrict(same_values(groups))]

    def _reason(self) -> str:
        return f"{self.name}: each change may change all of its rows"


def same_values(columns: Iterable[Origin]) -> list[Restriction]:
    """Restrictions to the values that the rows found so far have in these columns.

    Columns that come from the same leaves, several of them below a set operation, are restricted together; their values
    are those in the rows of any of these leaves.
    """
    by_leaves: dict[tuple[Leaf, ...], list[Origin]] = {}
    for origin in sorted(columns, key=lambda each: sorted((column.leaf.path, column.name) for column in each)):
        leaves = sorted((column.leaf for column in origin), key=lambda each: each.path)
        by_leaves.setdefault(tuple(leaves), []).append(origin)
    return [
        Restriction(
            tuple(origins),
            Values(
                tuple(
                    tuple(next(column for column in origin if column.leaf == leaf) for origin in origins)
                    for leaf in leaves
                ),
                is_join=False,
            ),
        )
        for leaves, origins in by_leaves.items()
    ]

"""GROUP BY, DISTINCT, windows and LIMIT: each output row is decided by a whole group of input rows.

Restrict: a restriction by columns that are equal in all rows of a group keeps or drops whole groups, so it can be
applied below. By other columns it would cut groups: those columns are dropped. What is equal in a group: the columns
of GROUP BY; all selected columns for DISTINCT; the columns of PARTITION BY that windows share; nothing for LIMIT
and for an aggregate over all rows. Windows that share no column are one operator above the other: a window adds a
column to its rows, which no window beside it reads, so a query around it could have the next window.
Find: the output rows of the groups of changed input rows change. Their columns are those of the input rows where they
are equal in a group. A window also passes on other columns, of all rows of its partition: to know these, the whole
partitions are looked up, in all branches of a set operation below by the values of any of them. Not above a full join
with two alternatives: a partition's rows without the one side are not found by its columns.
Where a window's output must be restricted by other columns, whole partitions are demanded: the rows that meet the
restriction are looked up, and from them their partitions. That keeps more rows than the restriction asks for, but each
partition as a whole. A view that selects none of the columns of PARTITION BY is found in this way:

    SELECT id, rank() OVER (PARTITION BY stock ORDER BY price) AS place FROM products

    a change of public.products affects (id)
      look up public.products by (stock) from (stock) of public.products, NULL matches NULL
    the rows of affected (id) are computed again from
      public.products by (id) from (id) of the affected keys
      public.products by (stock) from (stock) of public.products, NULL matches NULL

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

    `passes_rows`: the output has the rows of the input, with all their columns (a window, a LIMIT). `by_rows`: these
    may be restricted by any column, by the groups of the rows that are found.
    """

    child: Operator
    equal: frozenset[Origin]
    name: str
    passes_rows: bool
    by_rows: bool = False

    @property
    def leaves(self) -> frozenset[Leaf]:
        return self.child.leaves

    def passable(self) -> list[frozenset[Origin]]:
        alternatives = [each & self.equal for each in self.child.passable()]
        if self.by_rows and self.passes_rows and len(alternatives) == 1 and alternatives[0]:
            return self.child.passable()
        return alternatives

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        kept = list(restrictions) if finding and self.passes_rows else only(restrictions, self.equal)
        if not kept and self.by_rows and self.passes_rows and restrictions:
            return [*self.child.restrict(restrictions, finding=True), *self._whole_groups()]
        if not kept:
            raise NotIncremental(self._reason())
        return self.child.restrict(kept, finding=finding)

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        wanted = frozenset(needed)
        if wanted <= self.equal:
            return self.child.find(leaf, wanted)
        return [*self.child.find(leaf, self._groups()), *self._whole_groups()]

    def _whole_groups(self) -> list[Lookup]:
        """The lookups from the rows that are found to all rows of their groups."""
        return self.child.restrict(same_values(self._groups()))

    def _groups(self) -> frozenset[Origin]:
        """The columns by which whole groups are looked up. Raises NotIncremental."""
        alternatives = [each & self.equal for each in self.child.passable()]
        if len(alternatives) > 1:
            raise NotIncremental(f"{self.name}: a full join below it has rows that only other columns find")
        if not alternatives[0]:
            raise NotIncremental(self._reason())
        return alternatives[0]

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

"""Equalities of columns, by which joins look up rows: for those found on one side, all of the other that they join.

NULL equals nothing, except by `<=>`, which looks it up like other values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.operator import Operator, passes
from cdc_views.plan.incremental.restrictions import Restriction, Values


@dataclass(frozen=True)
class Equality:
    """Two columns that are equal in each row of a join. `matches_null`: NULL equals NULL, as in `left <=> right`.

    Then both columns must have their values from a row of a table: NULL for want of a match would not be found.
    """

    left: Origin
    right: Origin
    matches_null: bool = False

    def turned(self) -> Equality:
        """The same with the sides exchanged."""
        return Equality(self.right, self.left, self.matches_null)

    def is_between(self, left: Operator, right: Operator) -> bool:
        """Whether it can be looked up in both directions between two inputs, the left column's first."""
        return not self.matches_null or (passes(left, self.left) and passes(right, self.right))


def turned(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    """The equalities with the sides exchanged."""
    return tuple(each.turned() for each in equalities)


def sideways(equalities: Iterable[Equality]) -> Iterator[Restriction]:
    """Restrictions of the second columns to the values of the first; those of one leaf together.

    If NULL equals NULL for one of them, rows with NULL in the others are looked up, too: the join drops these again.
    """
    by_leaf: dict[Leaf, list[Equality]] = {}
    for each in equalities:
        leaves = {column.leaf for column in each.left}
        if len(leaves) == 1:
            by_leaf.setdefault(leaves.pop(), []).append(each)
        else:
            columns = tuple((column,) for column in sorted(each.left, key=str))
            yield Restriction((each.right,), Values(columns, is_join=not each.matches_null))
    for found in by_leaf.values():
        values = tuple(next(iter(each.left)) for each in found)
        is_join = not any(each.matches_null for each in found)
        yield Restriction(tuple(each.right for each in found), Values((values,), is_join))


def touches(origins: Iterable[Origin], child: Operator) -> bool:
    """Whether one of the origins is below `child`."""
    return any(column.leaf in child.leaves for origin in origins for column in origin)


def of_child(origins: Iterable[Origin], child: Operator) -> frozenset[Origin]:
    """The parts of the origins that are below `child`."""
    parts = (frozenset(column for column in origin if column.leaf in child.leaves) for origin in origins)
    return frozenset(part for part in parts if part)

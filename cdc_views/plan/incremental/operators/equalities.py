"""Equalities of columns, by which joins look up rows: for those found on one side, all of the other that they join.

Here NULL equals nothing, as in the condition of a join.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.operators.operator import Operator
from cdc_views.plan.incremental.restrictions import Restriction, Values

Equality = tuple[Origin, Origin]


def turned(equalities: Iterable[Equality]) -> tuple[Equality, ...]:
    """The equalities with the sides exchanged."""
    return tuple((right, left) for left, right in equalities)


def sideways(equalities: Iterable[Equality]) -> Iterator[Restriction]:
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


def touches(origins: Iterable[Origin], child: Operator) -> bool:
    """Whether one of the origins is below `child`."""
    return any(column.leaf in child.leaves for origin in origins for column in origin)


def of_child(origins: Iterable[Origin], child: Operator) -> frozenset[Origin]:
    """The parts of the origins that are below `child`."""
    parts = (frozenset(column for column in origin if column.leaf in child.leaves) for origin in origins)
    return frozenset(part for part in parts if part)

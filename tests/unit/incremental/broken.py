"""Breaks a rule of an operator: its lookups give other rows, and no error.

A lookup has one equality too many, or its columns in another order, or is of the changed rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from cdc_views.plan.incremental.columns import LeafColumn
from cdc_views.plan.incremental.operators import Equality, Grouping, SetOperation
from cdc_views.plan.incremental.restrictions import Lookup, Restriction, within

Method = Callable[..., Any]


def one_equality_too_many(method: Method) -> Method:
    """Rows that are joined must have the same `id`, too."""

    def by_id(one: Equality) -> Equality:
        left, right = (frozenset(LeafColumn(each.leaf, "id") for each in side) for side in (one.left, one.right))
        return Equality(left, right)

    def broken(self: Any, *arguments: Any, **options: Any) -> Any:
        more = tuple(map(by_id, self.equalities))
        return method(replace(self, equalities=(*self.equalities, *more)), *arguments, **options)

    return broken


def columns_turned_round(restrict: Method) -> Method:
    """The values of the first column are looked up in the last one."""

    def broken(self: Any, restrictions: Sequence[Restriction], **options: Any) -> Any:
        turned = [replace(each, columns=each.columns[::-1]) for each in restrictions]
        return restrict(self, turned, **options)

    return broken


def last_branch_turned_round(restrict: Method) -> Method:
    """The same in the last branch of a set operation alone."""

    def broken(self: SetOperation, restrictions: Sequence[Restriction], **options: Any) -> list[Lookup]:
        *others, last = self.branches
        turned = [replace(each, columns=each.columns[::-1]) for each in within(restrictions, last.leaves)]
        found = [each for branch in others for each in branch.restrict(within(restrictions, branch.leaves), **options)]
        return [*found, *last.restrict(turned, **options)]

    return broken


def without_its_groups(method: Method) -> Method:
    """Rows are found and restricted one by one, as if no other row decided them."""

    def broken(self: Grouping, *arguments: Any, **options: Any) -> Any:
        return getattr(self.child, method.__name__)(*arguments, **options)

    return broken

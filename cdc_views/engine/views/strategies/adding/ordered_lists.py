"""The ordered lists of groups: the stored values, with those that a change adds, without those that it removes.

plan/incremental/delta_plans/ordered_lists.py says which values have an order that is the same here, and proves when the
first k values follow. The values of a stored list are not all converted: the places of the changed ones are searched.
"""

from __future__ import annotations

import operator
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from cdc_views.base.python_values import plain_values
from cdc_views.engine.views.strategies.incremental import TooMany
from cdc_views.plan.incremental import OrderedList

Order: TypeAlias = tuple[tuple[bool, object], ...]
"""A value by its place in Spark's ascending order: for each field whether it is not NULL, and its value."""

# To convert one value by itself takes as long as to convert this many of a whole list.
_SINGLE: Final = 64


@dataclass(frozen=True)
class ChangedRow:
    """The number of a row with the totals of a term, and whether these are added or subtracted."""

    is_added: bool
    number: int


@dataclass(frozen=True)
class Lists:
    """An ordered list of the stored rows, and that of the rows with the totals of terms."""

    plan: OrderedList
    stored: pa.ListArray
    found: pa.ListArray

    def merged(self, stored: int | None, changes: Iterable[ChangedRow]) -> pa.Array:
        """The new values of a group, whose stored row has this number. Raises TooMany if they do not follow."""
        values = self.found.values.slice(0, 0) if stored is None else self.stored[stored].values
        return _merged(self.plan, values, [_Changed(each.is_added, self.found[each.number].values) for each in changes])

    def column(self, values: Sequence[pa.Array]) -> pa.ListArray:
        """The new lists as a column."""
        ends = np.cumsum([0, *map(len, values)])
        all_values = pa.concat_arrays([self.found.values.slice(0, 0), *values])
        return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), all_values, type=self.found.type)


def lists_of(plan: OrderedList, stored: pa.Table, found: pa.Table) -> Lists:
    """An ordered list of stored rows of a view, and of rows with the totals of terms."""
    return Lists(plan, *(rows.column(plan.name).combine_chunks() for rows in (stored, found)))


@dataclass(frozen=True)
class _Changed:
    """The list over the rows that a term adds to a group, or over those that it removes."""

    is_added: bool
    values: pa.Array


@dataclass
class _Net:
    """How often a value is added, less how often it is removed, and its number among the changed values."""

    count: int
    number: int


@dataclass(frozen=True)
class _Bound:
    """The value up to which all values of the lists are known, itself included or not."""

    value: Order
    is_included: bool


class _Places:
    """The places of values in a sorted list."""

    def __init__(self, values: pa.Array, comes_before: Callable[[Order, Order], bool], searches: int) -> None:
        self._values, self._comes_before = values, comes_before
        converted = 2 * searches * len(values).bit_length()
        self._orders = _orders(values) if converted * _SINGLE > len(values) else None

    def first(self, value: Order) -> int:
        """The place of the first of the values that do not come before this one."""
        return self._first_where(lambda other: not self._comes_before(other, value))

    def after(self, value: Order) -> int:
        """The place of the first of the values that come after this one."""
        return self._first_where(lambda other: self._comes_before(value, other))

    def _first_where(self, matches: Callable[[Order], bool]) -> int:
        return bisect_left(range(len(self._values)), True, key=lambda place: matches(self._at(place)))

    def _at(self, place: int) -> Order:
        return self._orders[place] if self._orders is not None else _orders(self._values.slice(place, 1))[0]


def _merged(plan: OrderedList, stored: pa.Array, changes: Sequence[_Changed]) -> pa.Array:
    net, bound = _net(changes), _bound(plan, stored, changes)
    comes_before = operator.gt if plan.descends else operator.lt
    places = _Places(stored, comes_before, len(net) + 1)
    size = len(stored)
    if bound is not None:
        size = places.after(bound.value) if bound.is_included else places.first(bound.value)
    stays, at, added = np.ones(size, np.bool_), list[int](), list[int]()
    for value in sorted(net, reverse=plan.descends):
        is_last = bound is not None and value == bound.value
        if bound is not None and (comes_before(bound.value, value) or (is_last and not bound.is_included)):
            break
        count, first, end = net[value].count, places.first(value), places.after(value)
        if count < first - end and not is_last:
            raise TooMany(f'column "{plan.name}" lacks a value that is removed')
        if count < 0:
            stays[first : min(first - count, end)] = False
        at += [end] * count
        added += [len(stored) + net[value].number] * count
    numbers = np.insert(np.arange(size), np.array(at, np.int64), added)[np.insert(stays, np.array(at, np.int64), True)]
    if bound is not None and len(numbers) < (plan.most or 0):
        raise TooMany(f'the first values of column "{plan.name}" do not follow from the changed rows')
    every = pa.concat_arrays([stored, *(each.values for each in changes)])
    return every.take(pa.array(numbers[: plan.most], pa.int64()))


def _net(changes: Iterable[_Changed]) -> dict[Order, _Net]:
    found, number = dict[Order, _Net](), 0
    for change in changes:
        for value in _orders(change.values):
            found.setdefault(value, _Net(0, number)).count += 1 if change.is_added else -1
            number += 1
    return found


def _bound(plan: OrderedList, stored: pa.Array, changes: Iterable[_Changed]) -> _Bound | None:
    """The first of the last values of the lists that may have been cut; None if none was."""
    lists = [_Changed(True, stored), *changes]
    cut = [each for each in lists if plan.most is not None and len(each.values) >= plan.most]
    if not cut:
        return None
    lasts = [(_orders(each.values.slice(len(each.values) - 1))[0], each.is_added) for each in cut]
    value = (max if plan.descends else min)(last for last, _ in lasts)
    return _Bound(value, all(is_added for last, is_added in lasts if last == value))


def _orders(values: pa.Array) -> list[Order]:
    fields = values.flatten() if pa.types.is_struct(values.type) else [values]
    columns = [[(value is not None, value) for value in plain_values(field)] for field in fields]
    return list(zip(*columns, strict=True))

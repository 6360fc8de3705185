"""ADD for groups: add the totals over the rows that are added to the stored ones, and subtract those over rows removed.
PATCH merges ordered lists in the same way (ordered_lists.py).

plan/incremental/delta_plans/group_totals.py says which views have such totals, and proves that the terms below give
what changes: one for each changed leaf and side. One query computes the totals of all terms. Of a leaf, a term has its
changed rows, and of the others the rows that these join; no other row of an input is read, however large a group is. To
add twice would be wrong: the stored rows must be those of the old versions of the inputs, as they are for a live view.

A sum over no values is NULL. A new sum has values if no term removed one and there was one before or now, or if it is
not 0. Otherwise only a count of its values can decide. Where the view has none, KEYS computes the group again, as it
does if an extreme was removed, or if a list does not follow. Without a plan for KEYS, FULL computes the whole view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import Any

import pyarrow as pa

from cdc_views.base.python_values import plain_values
from cdc_views.engine.views.lookups import distinct
from cdc_views.engine.views.strategies.adding.add import DIGITS, column_of, zero_or_null
from cdc_views.engine.views.strategies.adding.averages import new_average
from cdc_views.engine.views.strategies.adding.extremes import new_extreme
from cdc_views.engine.views.strategies.adding.ordered_lists import ChangedRow, Lists, lists_of
from cdc_views.engine.views.strategies.adding.terms import Term, require_possible, terms_of_affected, terms_of_joins
from cdc_views.engine.views.strategies.difference import tuples
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.keys import Box, compared, recomputed, stored_with
from cdc_views.engine.views.view_tables import BOX
from cdc_views.plan.incremental import Extreme, GroupPlan, Total
from cdc_views.store.warehouse import Changes, TableSpec

Group = tuple[object, ...]
Totals = dict[str, Decimal]
"""The totals of a group that are not NULL, by column."""
GroupRow = dict[str, Any]
"""The new totals, averages, extremes and lists of a group, by column."""


@dataclass(frozen=True)
class _Change:
    """The totals over the rows that are added to a group, and over those that are removed; and the rows with these."""

    added: Totals = field(default_factory=dict)
    removed: Totals = field(default_factory=dict)
    rows: list[ChangedRow] = field(default_factory=list)


@dataclass(frozen=True)
class _Stored:
    """The number of the stored row of a group, None without one, and its totals."""

    number: int | None = None
    totals: Totals = field(default_factory=dict)


@dataclass(frozen=True)
class _Extremes:
    """An extreme of the stored rows, and that of the rows with the totals of terms, as plain values."""

    plan: Extreme
    stored: list[Any]
    found: list[Any]

    @classmethod
    def of(cls, plan: Extreme, stored: pa.Table, found: pa.Table) -> _Extremes:
        return cls(plan, *(plain_values(rows.column(plan.name)) for rows in (stored, found)))

    def new(self, stored: int | None, changes: Collection[ChangedRow], *, is_linear: bool) -> Any:
        """The new value of a group, whose stored row has this number. Raises ExtremeRemoved."""
        before = None if stored is None else self.stored[stored]
        added, removed = (
            [self.found[each.number] for each in changes if each.is_added == is_added] for is_added in (True, False)
        )
        return new_extreme(self.plan, before, added, removed, is_linear=is_linear)


def add_groups(work: Incremental[GroupPlan]) -> Changes | None:
    """Update the view; returns None if its rows are the same already. Raises TooMany where this does not give them."""
    affected = work.plan.affected
    terms = terms_of_joins(work) if affected is None else terms_of_affected(work, affected)
    if not terms:
        return None
    require_possible(work, [term.rows for term in terms])
    found = work.run([term.rows for term in terms])
    stored = stored_with(work, distinct(found.select(list(work.plan.found_by))))
    with localcontext() as context:
        context.prec = DIGITS
        rows, doubtful = _new_rows(work, stored, found, _changes(work.plan, terms, found))
    if doubtful.num_rows:
        rows = pa.concat_tables([rows, _computed_again(work, doubtful)])
    return compared(work, rows, stored)


def _computed_again(work: Incremental[GroupPlan], groups: pa.Table) -> pa.Table:
    """The new rows of some groups by KEYS. Raises TooMany if the view has no such plan."""
    keys = work.plan.keys
    if keys is None:
        raise TooMany("totals of a group do not follow from the changed rows", "sum not known")
    (handle,) = keys.handles
    work.warehouse.ways.took("view", work.spec.name, "keys")
    box = Box(handle, tuple(distinct(groups.select(list(part.names))) for part in handle.parts))
    rows, wanted = recomputed(work.by_keys(keys), [box]), set(_groups(work.plan, groups))
    return rows.filter(pa.array([group in wanted for group in _groups(work.plan, rows)], pa.bool_()))


def _changes(plan: GroupPlan, terms: list[Term], found: pa.Table) -> dict[Group, _Change]:
    """What changes in each group. Raises TooMany if a term has a group twice, which its key does not tell apart."""
    changes: defaultdict[Group, _Change] = defaultdict(_Change)
    groups, boxes = _groups(plan, found), found.column(BOX).to_pylist()
    if len({*zip(boxes, groups, strict=True)}) < len(groups):
        raise TooMany("two groups have the same key", "sum not known")
    are_added = [terms[number].is_added for number in boxes]
    rows = zip(groups, are_added, _totals(plan, found), strict=True)
    for number, (group, is_added, totals) in enumerate(rows):
        change = changes[group]
        _add(change.added if is_added else change.removed, totals)
        change.rows.append(ChangedRow(is_added, number))
    return changes


def _new_rows(
    work: Incremental[GroupPlan], stored: pa.Table, found: pa.Table, changes: Mapping[Group, _Change]
) -> tuple[pa.Table, pa.Table]:
    """The new rows of the groups; and the groups whose totals do not follow from the changed rows."""
    plan, spec = work.plan, work.spec
    lists = {each.name: lists_of(each, stored, found) for each in plan.lists}
    extremes = [_Extremes.of(each, stored, found) for each in plan.extremes]
    totals = zip(_groups(plan, stored), _totals(plan, stored), strict=True)
    before = {group: _Stored(number, row) for number, (group, row) in enumerate(totals)}
    groups = pa.concat_tables([each.select(list(plan.groups)) for each in (stored, found)])
    places = {group: place for place, group in enumerate(_groups(plan, groups)) if group in changes}
    after: dict[Group, GroupRow | None] = {}
    for group in places:
        with suppress(TooMany):
            after[group] = _row(plan, lists, extremes, before.get(group, _Stored()), changes[group])
    rows = {group: row for group, row in after.items() if row is not None}
    values, doubtful = (
        groups.take(pa.array([places[group] for group in chosen], pa.int64()))
        for chosen in (rows, places.keys() - after.keys())
    )
    columns = [
        lists[name].column([row[name] for row in rows.values()])
        if name in lists
        else _column(spec, name, values, list(rows.values()))
        for name in spec.schema.names
    ]
    return pa.table(columns, schema=spec.schema), doubtful


def _row(
    plan: GroupPlan, lists: Mapping[str, Lists], extremes: Iterable[_Extremes], stored: _Stored, change: _Change
) -> GroupRow | None:
    """The new row of a group; None if it has no rows any more. Raises TooMany if it does not follow from the change."""
    row: GroupRow = dict(_sum(plan, stored.totals, change))
    if plan.rows is not None and not row[plan.rows]:
        return None
    row |= {each.name: new_average(each, row) for each in plan.averages}
    is_linear = plan.affected is not None or len(plan.leaves) == 1
    row |= {each.plan.name: each.new(stored.number, change.rows, is_linear=is_linear) for each in extremes}
    row |= {name: each.merged(stored.number, change.rows) for name, each in lists.items()}
    if plan.rows is not None or any(len(row[name]) for name in lists):
        return row
    if not any(each.has_all_rows for each in plan.lists):
        raise TooMany("whether a group has rows does not follow from its lists, which drop NULL")
    return None


def _sum(plan: GroupPlan, stored: Totals, change: _Change) -> dict[str, Decimal | None]:
    """The new totals of a group: the counts first, which decide whether sums are NULL."""
    row: dict[str, Decimal | None] = {}
    for total in sorted(plan.totals, key=lambda each: (each.is_sum, each.name != plan.rows)):
        row[total.name] = _value(total, stored, change, row)
        if not total.is_sum and (row[total.name] or 0) < 0:
            raise TooMany(f'column "{total.name}" would be negative', "sum not known")
        if total.name == plan.rows and not row[total.name]:
            return row
        value = row[total.name]
        if value is not None and not all(type_.holds(value) for type_ in total.types):
            raise TooMany(f'a value of column "{total.name}" is beyond the range of its types', "number too large")
    return row


def _value(total: Total, stored: Totals, change: _Change, counts: Mapping[str, Decimal | None]) -> Decimal | None:
    """The new value of a total; `counts` are the new values of the counts."""
    name, removed = total.name, change.removed.get(total.name)
    value = stored.get(name, Decimal()) + change.added.get(name, Decimal()) - (removed or Decimal())
    if not total.is_sum or value:
        return value
    if removed is None:
        return value if name in stored or name in change.added else None
    return zero_or_null(total, counts)


def _add(totals: Totals, others: Totals) -> None:
    for name, value in others.items():
        totals[name] = totals.get(name, Decimal()) + value


def _groups(plan: GroupPlan, rows: pa.Table) -> list[Group]:
    return tuples(rows.select(list(plan.groups)))


def _totals(plan: GroupPlan, rows: pa.Table) -> list[Totals]:
    names = [total.name for total in plan.totals]
    return [
        {name: Decimal(value) for name, value in row.items() if value is not None}
        for row in rows.select(names).to_pylist()
    ]


def _column(spec: TableSpec, name: str, groups: pa.Table, rows: list[GroupRow]) -> pa.Array | pa.ChunkedArray:
    if name in groups.column_names:
        return groups.column(name)
    return column_of([row[name] for row in rows], spec.schema.field(name).type)

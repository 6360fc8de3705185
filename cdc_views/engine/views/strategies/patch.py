"""PATCH: merge the stored first rows of each affected partition with the rows that the epoch adds to it.

plan/incremental/delta_plans/top_rows.py says which views have such partitions, and proves when the merged rows are the
first ones. The view's own text does the merge: it runs over the leaf rows behind the stored and the added rows. So
Spark compares the rows as it always does, and numbers them. A whole partition is not read.

A partition that had k rows, lost one, and may have a better row than those that are left, is computed again by KEYS.
The lookups of the stored rows' own leaf rows are at the new version, so rows that are gone are not found.

A timeline has its order in columns of its own, so the driver merges it (timelines.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.engine.views.lookups import Rows, search
from cdc_views.engine.views.strategies.difference import tuples
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.keys import (
    Box,
    affected,
    at_new_version,
    compared,
    inside,
    one_per_key,
    recomputed,
    require_few,
    stored_rows,
)
from cdc_views.engine.views.strategies.shown import ShownChanges, without_shown
from cdc_views.engine.views.strategies.timelines import Timeline, timeline_of, united
from cdc_views.engine.views.view_tables import BOX
from cdc_views.plan.incremental import KeysPlan, Leaf, Lookup, OrderColumn, PatchPlan
from cdc_views.store.warehouse import Changes

Values: TypeAlias = tuple[object, ...]

# How many leaf rows are searched for the next rows of a view, in multiples of those that it keeps.
_STEPS: Final = (2, 16, 128)


def patch(work: Incremental[PatchPlan]) -> Changes | None:
    """Update the view; returns None if its rows are the same already. Raises TooMany, KeyNotUnique."""
    if work.plan.keys is None:
        return _patch_all(work)
    others, shown = without_shown(work)
    timeline = timeline_of(work.spec)
    changes = _patch_partitions(others, shown) if timeline is None else _patch_timeline(others, shown, timeline)
    return shown.added_to(work, changes)


def _patch_partitions(work: Incremental[PatchPlan], shown: ShownChanges) -> Changes | None:
    by_keys = _by_keys(work)
    boxes = affected(by_keys)
    if not boxes:
        return None
    (box,) = boxes
    stored = stored_rows(by_keys, boxes)
    rows = _merged(work, stored)
    return _patched(work, shown, box, rows.filter(inside(rows, box)), stored)


def _by_keys(work: Incremental[PatchPlan]) -> Incremental[KeysPlan]:
    assert work.plan.keys is not None, "it has partitions"
    return work.by_keys(work.plan.keys)


def _patch_timeline(work: Incremental[PatchPlan], shown: ShownChanges, timeline: Timeline) -> Changes | None:
    """Update a timeline. Of an owner who loses no entry, the stored rows are not read while there is room for more."""
    by_keys = _by_keys(work)
    boxes = affected(by_keys, only_removed=True)
    stored = stored_rows(by_keys, boxes) if boxes else work.spec.schema.empty_table()
    found = _found(work, stored)
    changes = []
    if boxes:
        (box,) = boxes
        is_inside = inside(found, box)
        rows = timeline.first_rows(found.filter(is_inside))
        changes.append(_patched(work, shown, box, rows, stored))
        found = found.filter(pc.invert(is_inside))
    changes.append(timeline.with_added(work, found))
    return united(work.spec, changes)


def _found(work: Incremental[PatchPlan], stored: pa.Table) -> pa.Table:
    """The rows behind the stored ones, and behind those that are added to each leaf, each once."""
    plan, sets = work.plan, _rows_behind(work, stored)
    if not sets:
        return stored
    # Not united: the rows of one join those of another, which may be very many.
    reduced = [{leaf.path: _united(work, leaf, [each[leaf]]) for leaf in plan.leaves} for each in sets]
    affected_rows = sum(rows.num_rows for each in reduced for rows in each.values())
    require_few(work, affected_rows, with_stored=not stored.num_rows)
    return one_per_key(work.run(reduced).drop_columns([BOX]), work.spec.key)


def _patched(
    work: Incremental[PatchPlan], shown: ShownChanges, box: Box, rows: pa.Table, stored: pa.Table
) -> Changes | None:
    """The changes from the stored rows of a box to the merged ones; partitions that do not follow are computed."""
    by_keys, names = _by_keys(work), box.values[0].column_names
    doubtful = _doubtful(work, shown.shown_in(stored), rows, names).select(names)
    if doubtful.num_rows:
        rows = _refilled(by_keys, box, doubtful, rows)
        work.warehouse.ways.took("view", work.spec.name, "keys")
    return compared(by_keys, rows, stored)


def _patch_all(work: Incremental[PatchPlan]) -> Changes | None:
    """Update a view that has the first rows of a whole query."""
    deltas = [work.delta(leaf) for leaf in work.plan.leaves]
    if not any(delta.old.num_rows or delta.new.num_rows for delta in deltas):
        return None
    if not work.warehouse.is_small(work.spec.path):
        raise TooMany("the view has more rows than the driver may hold")
    stored = work.warehouse.rows(work.spec, work.base)
    rows = _merged(work, stored) if work.plan.is_merged else None
    if rows is None or _doubtful(work, stored, rows, ()).num_rows:
        rows = _first_of_all(work)
    return compared(work, rows, stored)


def _first_of_all(work: Incremental[PatchPlan]) -> pa.Table:
    """The first of all rows. Raises TooMany."""
    order, leaf = work.plan.order, work.plan.leaves[0]
    found = _searched(work, order) if order is not None else None
    if found is not None:
        return found
    of = work.of(leaf)
    if not leaf.is_stored or not work.warehouse.is_small(of.spec.path):
        text = "of the first rows some were removed, and the first values of no column say which ones follow"
        raise TooMany(text, "first row removed")
    rows = work.warehouse.rows(of.spec, of.new)
    return work.run([{leaf.path: rows.select(sorted(work.used(leaf)))}]).drop_columns([BOX])


def _searched(work: Incremental[PatchPlan], order: OrderColumn) -> pa.Table | None:
    """The first of all rows, from the leaf rows with the first values of a column; None if these do not decide.

    Raises TooMany.
    """
    leaf, name = order.column.leaf, order.column.name
    for most in (step * (work.plan.offset + work.plan.most) for step in _STEPS):
        first = work.inputs.first_rows(work.of(leaf), name, most, work.used(leaf), is_largest=order.is_largest)
        if first is None:
            return None
        is_all = first.num_rows < most
        found = _look_up_all(work, work.plan.added[leaf.path], {leaf: first if is_all else _without_last(first, order)})
        reduced = {each.path: _united(work, each, [found[each]]) for each in work.plan.leaves}
        require_few(work, sum(each.num_rows for each in reduced.values()))
        rows = work.run([reduced]).drop_columns([BOX])
        if rows.num_rows == work.plan.most or (is_all and order.has_values):
            return rows
        if is_all:
            return None  # those with NULL follow
    return None


def _without_last(rows: pa.Table, order: OrderColumn) -> pa.Table:
    """The rows without those of the last value: more rows may have it."""
    values = rows.column(order.column.name)
    return rows.filter(pc.not_equal(values, pc.min(values) if order.is_largest else pc.max(values)))


def _merged(work: Incremental[PatchPlan], stored: pa.Table) -> pa.Table:
    """The first rows of each partition, of those that were stored and those that are added; others are not exact."""
    plan, found = work.plan, _rows_behind(work, stored)
    reduced = {leaf.path: _united(work, leaf, [each[leaf] for each in found if leaf in each]) for leaf in plan.leaves}
    require_few(work, sum(rows.num_rows for rows in reduced.values()))
    return work.run([reduced]).drop_columns([BOX])


def _rows_behind(work: Incremental[PatchPlan], stored: pa.Table) -> list[Rows]:
    """The rows of the leaves behind the stored rows, and behind those that are added to each leaf: one set for each."""
    plan = work.plan
    found = [_look_up_all(work, plan.kept, {plan.stored: stored})] if stored.num_rows else []
    for leaf in plan.leaves:
        if (added := work.delta(leaf).new).num_rows:
            found.append(_look_up_all(work, plan.added[leaf.path], {leaf: added}))
    return found


def _look_up_all(work: Incremental[PatchPlan], lookups: Iterable[Lookup], known: Rows) -> Rows:
    """The rows of the leaves at the new version that the lookups find, with all columns that matter."""
    return search(lookups, known, {leaf: work.used(leaf) for leaf in work.plan.leaves}, at_new_version(work))


def _united(work: Incremental[PatchPlan], leaf: Leaf, found: Iterable[pa.Table]) -> pa.Table:
    """The rows of a leaf, each once. Those that are only searched for come once, and may be equal."""
    schema = pa.schema([field for field in work.of(leaf).spec.schema if field.name in work.used(leaf)])
    tables = [rows.select(schema.names) for rows in found]
    rows = pa.concat_tables([schema.empty_table(), *tables])
    return one_per_key(rows, work.of(leaf).spec.key) if work.plan.kept else rows


def _doubtful(work: Incremental[PatchPlan], stored: pa.Table, rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """A stored row of each partition whose first rows do not follow from the stored and the added ones.

    `names` are the columns that partition the rows; without any, all rows are one partition.
    """
    most, kept = work.plan.most, _staying(work, stored)
    if kept.num_rows == stored.num_rows:
        return stored.slice(0, 0)
    before, staying, after = (_by_partition(work, each, names) for each in (stored, kept, rows))
    last = _by_partition(work, _at(work, rows, most), names)

    def is_certain(partition: Values) -> bool:
        total = before[partition].total()
        if total < most or total == staying[partition].total():
            return True
        # Of the stored rows that stay, one comes after all rows that are found, or is the last of them.
        is_passed = staying[partition] - after[partition] or staying[partition] & last[partition]
        return after[partition].total() == most and bool(is_passed)

    places = {partition: place for place, partition in enumerate(_partitions(stored, names))}
    doubtful = [place for partition, place in places.items() if not is_certain(partition)]
    return stored.take(pa.array(doubtful, pa.int64()))


def _partitions(rows: pa.Table, names: Sequence[str]) -> list[Values]:
    return tuples(rows.select(list(names))) if names else [()] * rows.num_rows


def _staying(work: Incremental[PatchPlan], stored: pa.Table) -> pa.Table:
    """The stored rows of which no leaf row was removed. A row that is missing here may stay, too."""
    kept = stored
    for leaf in work.plan.leaves:
        removed, carried = work.delta(leaf).old, work.plan.carried[leaf.path]
        if not removed.num_rows:
            continue
        if not carried:
            return kept.slice(0, 0)
        gone = set(tuples(removed.select([column for column, _ in carried])))
        stays = [row not in gone for row in tuples(kept.select([name for _, name in carried]))]
        kept = kept.filter(pa.array(stays, pa.bool_()))
    return kept


def _at(work: Incremental[PatchPlan], rows: pa.Table, place: int) -> pa.Table:
    """The rows with a number; none if the view does not have it."""
    if work.plan.place is None:
        return rows.slice(0, 0)
    return rows.filter(pc.equal(rows.column(work.plan.place), place))


def _by_partition(
    work: Incremental[PatchPlan], rows: pa.Table, names: Sequence[str]
) -> defaultdict[Values, Counter[Values]]:
    """The rows in their plain columns, by partition."""
    found: defaultdict[Values, Counter[Values]] = defaultdict(Counter)
    for partition, row in zip(_partitions(rows, names), tuples(rows.select(work.plan.plain)), strict=True):
        found[partition][row] += 1
    return found


def _refilled(work: Incremental[KeysPlan], box: Box, partitions: pa.Table, rows: pa.Table) -> pa.Table:
    """The rows of the box, those of some partitions computed again."""
    if work.view.key is None:
        return recomputed(work, [box])  # the hidden numbers of a bag's rows are those of one query
    again = Box(box.handle, (partitions,))
    others = rows.filter(pc.invert(inside(rows, again)))
    return pa.concat_tables([others, recomputed(work, [again])])

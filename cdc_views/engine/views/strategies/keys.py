"""KEYS: find the affected keys, recompute their rows, and compare these with the stored rows of the keys.

The lookups are planned once per view (plan/incremental). An affected key is a value of the view's handle. What changed
is looked for at both versions of every table that changed: the rows that a change removes join others of the old
version, the rows that it adds join others of the new one. To look for more than is needed is harmless, since keys are
computed again as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.engine.views.inputs import InputVersions
from cdc_views.engine.views.lookups import FindRows, Rows, as_compared, cast_keys, distinct, search, values_of
from cdc_views.engine.views.strategies.difference import difference, is_unique, tuples
from cdc_views.engine.views.strategies.guards import key_not_unique
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.results import changes_of
from cdc_views.engine.views.view_tables import BOX
from cdc_views.plan.incremental import Handle, KeysPlan, Leaf, Values
from cdc_views.store.warehouse import Changes, TableSpec

# Of the rows of all inputs. A whole recompute reads them faster than lookups find them.
_LARGE_SHARE: Final = 0.3
# Of one query. Each has a file, and each box another copy of the view's text.
MOST_RELATIONS: Final = 100

_SAME_HASH: Final = "two different rows have the same hash"


@dataclass(frozen=True)
class Box:
    """Affected keys: for each part of a handle, the values of its columns. A row is affected if all parts match."""

    handle: Handle
    values: tuple[pa.Table, ...]


def keys(work: Incremental[KeysPlan]) -> Changes | None:
    """Update the view; returns None if its rows are the same already. Raises TooMany, KeyNotUnique."""
    _require_same_constants(work)
    require_values(work)
    if not work.plan.handles:
        return _of_all_rows(work)
    boxes = affected(work)  # find
    if not boxes:
        return None
    rows = recomputed(work, boxes)  # recompute
    return compared(work, rows, stored_rows(work, boxes))  # diff


def _of_all_rows(work: Incremental[KeysPlan]) -> Changes | None:
    """Compute the view from all rows of its leaves, of which there are few, if one of them has changed."""
    if not any(rows.num_rows for leaf in work.plan.leaves for rows in (work.delta(leaf).old, work.delta(leaf).new)):
        return None
    versions = {leaf.path: work.of(leaf) for leaf in work.plan.leaves}
    found = work.run([{path: work.warehouse.rows(of.spec, of.new) for path, of in versions.items()}])
    return compared(work, found.drop_columns([BOX]), work.warehouse.rows(work.spec, work.base))


def _require_same_constants(work: Incremental[KeysPlan]) -> None:
    """Raise TooMany if a subquery has another row: each row of the view may depend on it."""
    for leaf in work.plan.constants:
        of = work.of(leaf)
        old, new = (_constant(work, leaf, version) for version in (of.old, of.new))
        if len(new) > 1 or old != new:
            raise TooMany(f'the row of the subquery that "{leaf}" stores has changed', "subquery changed")


def _constant(work: Incremental[KeysPlan], leaf: Leaf, version: int) -> list[str]:
    """What the view depends on of the stored rows of a subquery."""
    rows = tuples(work.warehouse.rows(work.of(leaf).spec, version).select(list(leaf.types)))
    # As text: 0.0 is another value than -0.0, and NaN the same as NaN.
    return [repr(row > (0,) if leaf in work.plan.existences else row) for row in rows]


def require_values(work: Incremental[KeysPlan]) -> None:
    """Raise TooMany if a column holds NULL that the plan takes to hold none, before or after the epoch."""
    for source, name in dict.fromkeys((each.leaf.source, each.name) for each in work.plan.without_null):
        of = work.versions[source]
        null = pa.table({name: pa.nulls(1, of.spec.schema.field(name).type)})
        for version in sorted({of.old, of.new}):
            counts = work.warehouse.counts(of.spec, version, null)
            if counts is None:
                raise TooMany(f'column "{name}" of "{source}" cannot be searched for NULL in the driver')
            if counts[0]:
                raise TooMany(f'column "{name}" of "{source}" holds NULL', "NULL in NOT IN")


def compared(work: Incremental[Any], rows: pa.Table, stored: pa.Table) -> Changes | None:
    """The changes from the stored rows of some boxes to their new rows; None without one.

    Raises TooMany, KeyNotUnique.
    """
    if not is_unique(rows, work.spec.key):
        if work.view.key is None:
            raise TooMany(_SAME_HASH, "equal hashes")
        raise key_not_unique(work.spec.key)
    deleted, upserts = difference(rows, stored, work.spec.key)
    if work.view.key is None:
        _require_own_numbers(work, upserts, stored)
    return changes_of(deleted, upserts)


def affected(work: Incremental[KeysPlan], *, only_removed: bool = False) -> list[Box]:
    """The boxes that the changes of the epoch affect, one for each handle with one part. Raises TooMany.

    With `only_removed`, those that lose rows of the leaves; others may only gain some.
    """
    boxes = []
    for leaf in work.plan.leaves:
        delta = work.delta(leaf)
        changed = delta.old if only_removed else pa.concat_tables([delta.old, delta.new])
        if changed.num_rows:
            boxes += [box for handle in work.plan.handles if (box := _found(work, handle, leaf, changed))]
    if len(work.plan.handles) > 1 and any(_has_nulls(values) for box in boxes for values in box.values):
        text = "an affected key of NULLs, which the rows without a match in a full join have too"
        raise TooMany(text, "key of NULLs")
    return list(_merged(boxes))


def _has_nulls(values: pa.Table) -> bool:
    """Whether a row has NULL in all columns."""
    return bool(pc.any(reduce(pc.and_, (pc.is_null(column) for column in values.columns))).as_py())


def _found(work: Incremental[KeysPlan], handle: Handle, leaf: Leaf, changed: pa.Table) -> Box | None:
    """The affected keys of one handle by the changed rows of one leaf; None if there are none."""

    def find(other: Leaf, wanted: pa.Table, names: Collection[str]) -> pa.Table:
        of = work.of(other)
        found = [look_up(work, of, version, wanted, names) for version in sorted({of.old, of.new})]
        return pa.concat_tables(found)

    known = search(handle.find[leaf.path], {leaf: changed}, handle.sought, find)
    values = tuple(values_of(Values(part.origins, is_join=False), known, part.names) for part in handle.parts)
    return Box(handle, values) if all(each.num_rows for each in values) else None


def _merged(boxes: Sequence[Box]) -> Iterable[Box]:
    """One box for each handle of one part, where the union of values is exact; other boxes as they are."""
    for handle in dict.fromkeys(id(box.handle) for box in boxes):
        of_handle = [box for box in boxes if id(box.handle) == handle]
        if len(of_handle[0].values) == 1:
            united = zip(*(box.values for box in of_handle), strict=True)
            yield Box(of_handle[0].handle, tuple(_united(each) for each in united))
        else:
            yield from of_handle


def _united(values: Sequence[pa.Table]) -> pa.Table:
    # Branches of a set operation may have whole numbers of several widths.
    return distinct(pa.concat_tables(values, promote_options="permissive"))


def recomputed(work: Incremental[KeysPlan], boxes: Sequence[Box]) -> pa.Table:
    """The new rows of the view that are in one of the boxes, with the view's columns and types. Raises TooMany."""
    if len(boxes) * len(work.plan.leaves) > MOST_RELATIONS:
        raise TooMany(f"{len(boxes)} sets of keys are affected, each with {len(work.plan.leaves)} tables to reduce")
    find = at_new_version(work)
    of_boxes = [{leaf.path: rows for leaf, rows in reduced(work, box, find).items()} for box in boxes]
    require_few(work, sum(rows.num_rows for each in of_boxes for rows in each.values()) // len(boxes))
    versions = {leaf.path: work.of(leaf) for leaf in work.plan.constants}
    constants = {path: work.warehouse.rows(of.spec, of.new) for path, of in versions.items()}
    found = work.run([{**each, **constants} for each in of_boxes])
    rows, numbers = found.drop_columns([BOX]), found.column(BOX)
    # Only the rows of its own box are exact. A row that is in several boxes is taken from the first.
    first = pa.chunked_array([pa.array([-1] * rows.num_rows, pa.int32())])
    for number in reversed(range(len(boxes))):
        first = pc.if_else(inside(rows, boxes[number]), pa.scalar(number, pa.int32()), first)
    return rows.filter(pc.equal(first, numbers))


def reduced(work: Incremental[KeysPlan], box: Box, find: FindRows) -> dict[Leaf, pa.Table]:
    """The rows of each leaf that decide the rows of the box. Raises TooMany."""
    plan = work.plan
    used = {**box.handle.sought, **{leaf: work.used(leaf) for leaf in plan.leaves}}
    parts = {part.keys: values for part, values in zip(box.handle.parts, box.values, strict=True)}
    found: Rows = search(box.handle.recompute, parts, used, find)
    return {leaf: found[leaf] for leaf in plan.leaves}


def at_old_version(work: Incremental[Any]) -> FindRows:
    """Finds rows of the leaves as they were before the epoch. Raises TooMany."""
    return at_versions(work, lambda _, of: of.old)


def at_new_version(work: Incremental[Any]) -> FindRows:
    """Finds rows of the leaves as the epoch leaves their inputs. Raises TooMany."""
    return at_versions(work, lambda _, of: of.new)


def at_versions(work: Incremental[Any], version: Callable[[Leaf, InputVersions], int]) -> FindRows:
    """Finds rows of each leaf at a version of its own. Raises TooMany."""

    def find(leaf: Leaf, wanted: pa.Table, names: Collection[str]) -> pa.Table:
        of = work.of(leaf)
        return look_up(work, of, version(leaf, of), wanted, names)

    return find


def look_up(
    work: Incremental[Any], of: InputVersions, version: int, wanted: pa.Table, names: Collection[str]
) -> pa.Table:
    """The rows of an input that have the values of one of the rows of `wanted`. Raises TooMany."""
    wanted = distinct(cast_keys(wanted, pa.schema([of.spec.schema.field(name) for name in wanted.column_names])))
    return _required(work.inputs.lookup(of, version, wanted, names), of.spec)


def _required(found: pa.Table | None, spec: TableSpec) -> pa.Table:
    """The rows that a lookup found. Raises TooMany where the driver cannot look them up."""
    if found is None:
        raise TooMany(f'keys or rows to look up in "{spec.name}" are too many for the driver, or for its index')
    return found


def require_few(work: Incremental[Any], rows: int, *, with_stored: bool = False) -> None:
    """Raise TooMany if the whole query is cheaper than `rows` affected rows of the inputs.

    `with_stored`: the stored rows are not read here, and the whole query would be compared with all of them.
    """
    if rows <= work.warehouse.task_rows:
        return
    counts = [work.inputs.row_count(work.versions[source]) for source in work.view.inputs]
    if with_stored:
        counts.append(work.warehouse.row_count(work.spec.path))
    if None in counts:
        return
    all_rows = sum(count for count in counts if count is not None)
    if rows > _LARGE_SHARE * all_rows:
        raise TooMany(f"{rows} of {all_rows} rows of its inputs are affected")


def stored_rows(work: Incremental[KeysPlan], boxes: Sequence[Box]) -> pa.Table:
    """The stored rows that are in one of the boxes. Raises TooMany."""
    found = []
    for box in boxes:
        rows = stored_with(work, min(box.values, key=lambda values: values.num_rows))
        found.append(rows.filter(inside(rows, box)))
    return found[0] if len(found) == 1 else one_per_key(pa.concat_tables(found), work.spec.key)


def stored_with(work: Incremental[Any], values: pa.Table) -> pa.Table:
    """The stored rows that have one of the values of some columns. Raises TooMany."""
    schema = pa.schema([work.spec.schema.field(name) for name in values.column_names])
    return _required(work.warehouse.find(work.spec, work.base, cast_keys(values, schema)), work.spec)


def inside(rows: pa.Table, box: Box) -> pa.ChunkedArray:
    """Whether each row has one of the values of every part of a box."""
    return reduce(pc.and_, (_has_one_of(rows, values) for values in box.values))


def _has_one_of(rows: pa.Table, values: pa.Table) -> pa.ChunkedArray:
    names = values.column_names
    wanted = cast_keys(values, pa.schema([rows.schema.field(name) for name in names]))
    if len(names) == 1:
        return pc.is_in(as_compared(rows.column(names[0])), as_compared(wanted.column(0)).combine_chunks())
    own, sought = (pa.table([as_compared(each.column(name)) for name in names], names=names) for each in (rows, wanted))
    known = set(tuples(sought))
    return pa.chunked_array([pa.array([row in known for row in tuples(own)], pa.bool_())])


def one_per_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows, each key once: several boxes, or several lookups, may have the same row."""
    numbered = rows.append_column("_cv_row", pa.array(range(rows.num_rows), pa.int64()))
    first = numbered.group_by(list(key), use_threads=False).aggregate([("_cv_row", "min")])
    return rows.take(first["_cv_row_min"])


def _require_own_numbers(work: Incremental[KeysPlan], upserts: pa.Table, stored: pa.Table) -> None:
    """Raise TooMany if rows of other contents have the hash of a new row: only a whole recompute numbers these."""
    if not upserts.num_rows:
        return
    key = list(work.spec.key)
    taken = _required(work.warehouse.find(work.spec, work.base, upserts.select(key), key), work.spec)
    if not set(tuples(taken.select(key))) <= set(tuples(stored.select(key))):
        raise TooMany(_SAME_HASH, "equal hashes")

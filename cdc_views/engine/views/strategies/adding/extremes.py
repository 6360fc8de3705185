"""New extremes and numbers of different values; plan/incremental/delta_plans/extremes.py says when they follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.base.python_values import plain_values
from cdc_views.engine.views.lookups import Rows, values_of
from cdc_views.engine.views.strategies.adding.terms import Term, joined_at, of_set, require_possible
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.keys import Box, at_new_version, at_old_version, look_up, reduced
from cdc_views.plan.incremental import AddPlan, Distinct, Extreme, Handle, Leaf, LeafColumn, Path

# How many rows of each leaf are searched for the next extreme: first one, then more if WHERE or a join drops it.
_STEPS: Final = (1, 32, 1024)


class ExtremeRemoved(TooMany):
    """The stored extreme may have been removed, so that the changed rows do not say which value follows it."""


def new_extreme(extreme: Extreme, before: Any, added: Sequence[Any], removed: Sequence[Any], *, is_linear: bool) -> Any:
    """The new value, of the stored one and those over the rows added and removed, one of each term. None is NULL.

    A linear FROM has no term that adds what another one removes. Raises ExtremeRemoved.
    """
    most, gone = _most(extreme, added), _most(extreme, removed)
    stays = is_linear or gone is None or (most is not None and _is_beyond(extreme, most, gone))
    if most is not None and stays and (before is None or not _is_beyond(extreme, before, most)):
        return most
    if gone is None or (before is not None and _is_beyond(extreme, before, gone)):
        return before
    raise ExtremeRemoved(f'the value of column "{extreme.name}" was removed', "extreme removed")


def following(work: Incremental[AddPlan], extreme: Extreme) -> pa.ChunkedArray:
    """The extreme of the new rows, by the first rows in the order of its column. Raises TooMany."""
    for most in _STEPS if extreme.columns else ():
        rows, bounds = _first(work, extreme, most)
        require_possible(work, [rows])
        found = of_set(work.run([rows]), 0)
        (value,) = plain_values(found.column(extreme.name))
        if not bounds or (value is not None and not any(_is_beyond(extreme, each, value) for each in bounds)):
            return found.column(extreme.name)
    text = f'column "{extreme.name}" was removed, and the first other rows do not say which value follows it'
    raise TooMany(text, "extreme removed")


def _first(work: Incremental[AddPlan], extreme: Extreme, most: int) -> tuple[dict[Path, pa.Table], list[Any]]:
    """The rows of all leaves with the first values, and the last of these for each leaf that has more rows.

    Raises TooMany.
    """
    found: dict[Path, pa.Table] = {}
    bounds: list[Any] = []
    for column in extreme.columns:
        leaf = column.leaf
        rows = _first_rows(work, column, most, is_largest=extreme.is_largest)
        if rows.num_rows >= most:
            values = plain_values(rows.column(column.name))
            bounds.append(min(values) if extreme.is_largest else max(values))
        found |= joined_at(work, leaf, rows, is_new=True) if work.plan.joined else {leaf.path: rows}
    return found, bounds


def _first_rows(work: Incremental[AddPlan], column: LeafColumn, most: int, *, is_largest: bool) -> pa.Table:
    of, used = work.of(column.leaf), work.used(column.leaf)
    rows = work.inputs.first_rows(of, column.name, most, used, is_largest=is_largest)
    if rows is None:
        raise TooMany(f'"{column}" has too many rows to search for its first values', "extreme removed")
    return rows


def _most(extreme: Extreme, values: Iterable[Any]) -> Any:
    """The most extreme of some values; None without one."""
    chosen = max if extreme.is_largest else min
    return chosen((value for value in values if value is not None), default=None)


def _is_beyond(extreme: Extreme, one: Any, other: Any) -> bool:
    larger, smaller = (one, other) if extreme.is_largest else (other, one)
    return bool(larger > smaller)


def new_number(distinct: Distinct, stored: pa.Table, before: pa.Table, after: pa.Table) -> pa.ChunkedArray:
    """The new number of different values; `before` and `after` have those among the values of the changed rows."""
    old, gone, new = (each.column(distinct.name) for each in (stored, before, after))
    return pc.add(pc.subtract(old, gone), new)


def both_versions(
    work: Incremental[AddPlan], distinct: Distinct, terms: Sequence[Term]
) -> Iterator[dict[Path, pa.Table]]:
    """Yield the rows of all leaves with one of the values of the changed rows: of the old version, and of the new one.

    Raises TooMany.
    """
    changed = {leaf: pa.concat_tables([term.rows[leaf.path] for term in terms]) for leaf in work.plan.leaves}
    if distinct.handle is not None:
        yield from _of_values(work, distinct, distinct.handle, changed)
        return
    for is_new in (False, True):
        found: dict[Path, pa.Table] = {}
        for lookup in distinct.lookups:
            leaf, wanted = lookup.leaf, values_of(lookup.values, changed, lookup.columns)
            rows = _look_up(work, leaf, wanted, is_new=is_new)
            found |= joined_at(work, leaf, rows, is_new=is_new) if work.plan.joined else {leaf.path: rows}
        yield found


def _of_values(
    work: Incremental[AddPlan], distinct: Distinct, handle: Handle, changed: Rows
) -> Iterator[dict[Path, pa.Table]]:
    """The same by the lookups of a handle. Raises TooMany."""
    assert work.plan.affected is not None
    (part,) = handle.parts
    box = Box(handle, (values_of(distinct.values, changed, part.names),))
    for find in (at_old_version(work), at_new_version(work)):
        found = reduced(work.by_keys(work.plan.affected), box, find)
        yield {leaf.path: rows for leaf, rows in found.items()}


def _look_up(work: Incremental[AddPlan], leaf: Leaf, wanted: pa.Table, *, is_new: bool) -> pa.Table:
    of = work.of(leaf)
    return look_up(work, of, of.new if is_new else of.old, wanted, work.used(leaf))

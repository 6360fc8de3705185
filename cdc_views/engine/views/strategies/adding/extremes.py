"""New extremes and numbers of different values; plan/incremental/delta_plans/extremes.py says when they follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.engine.views.lookups import values_of
from cdc_views.engine.views.strategies.difference import tuples
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.keys import look_up
from cdc_views.plan.incremental import AddPlan, Distinct, Extreme, Path
from cdc_views.store.warehouse import RowsChanged


def new_extreme(extreme: Extreme, stored: pa.Table, added: pa.Table, removed: pa.Table) -> pa.ChunkedArray:
    """The new value, of the stored one and those over the rows added and removed. Raises TooMany."""
    before, plus, minus = (tuples(each.select([extreme.name]))[0][0] for each in (stored, added, removed))
    if plus is not None and (before is None or not _is_beyond(extreme, before, plus)):
        return added.column(extreme.name)
    if minus is None or (before is not None and _is_beyond(extreme, before, minus)):
        return stored.column(extreme.name)
    text = f'column "{extreme.name}" was removed, and only the other rows say which value follows it'
    raise TooMany(text, "extreme removed")


def _is_beyond(extreme: Extreme, one: object, other: object) -> bool:
    larger, smaller = (one, other) if extreme.is_largest else (other, one)
    return bool(larger > smaller)  # type: ignore[operator]  # numbers of one type


def new_number(distinct: Distinct, stored: pa.Table, before: pa.Table, after: pa.Table) -> pa.ChunkedArray:
    """The new number of different values; `before` and `after` have those among the values of the changed rows."""
    old, gone, new = (each.column(distinct.name) for each in (stored, before, after))
    return pc.add(pc.subtract(old, gone), new)


def both_versions(
    work: Incremental[AddPlan], distinct: Distinct, deltas: Mapping[Path, RowsChanged]
) -> Sequence[dict[Path, pa.Table]]:
    """The rows of all leaves with one of the values of the changed rows: at the old version, and at the new one.

    Raises TooMany.
    """
    changed = {leaf: pa.concat_tables([deltas[leaf.path].old, deltas[leaf.path].new]) for leaf in work.plan.leaves}
    found: tuple[dict[Path, pa.Table], dict[Path, pa.Table]] = ({}, {})
    for lookup in distinct.lookups:
        leaf = lookup.leaf
        of, wanted = work.of(leaf), values_of(lookup.values, changed, lookup.columns)
        for rows, version in zip(found, (of.old, of.new), strict=True):
            rows[leaf.path] = look_up(work, of, version, wanted, work.used(leaf))
    return found

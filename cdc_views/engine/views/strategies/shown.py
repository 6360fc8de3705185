"""Changes of columns that a view only shows: the stored rows get the new values, and nothing is ranked again.

plan/incremental/delta_plans/shown_columns.py says which columns these are, and proves that the view has the same rows.
Such a change is taken out of what has changed in its leaf, so the strategy does not see it. The rows that the strategy
computes have the new values anyway, since they are computed from the new rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.engine.views.strategies.difference import tuples
from cdc_views.engine.views.strategies.incremental import Incremental
from cdc_views.engine.views.strategies.keys import one_per_key, stored_with
from cdc_views.engine.views.strategies.results import changes_of
from cdc_views.plan.incremental import PatchPlan, ShownColumns
from cdc_views.store.warehouse import Changes, RowsChanged


@dataclass(frozen=True)
class ShownChanges:
    """The rows of leaves that changed in columns that are only shown, as they are now."""

    found: Sequence[tuple[ShownColumns, pa.Table]] = ()

    def shown_in(self, rows: pa.Table) -> pa.Table:
        """Rows of the view with the new values of these columns."""
        return reduce(lambda shown, each: _with_values(shown, *each), self.found, rows)

    def added_to(self, work: Incremental[PatchPlan], changes: Changes | None) -> Changes | None:
        """Changes of the view, together with those of the stored rows that they leave as they are. Raises TooMany."""
        if not self.found:
            return changes
        key = list(work.spec.key)
        stored = one_per_key(pa.concat_tables(self._stored(work)), key)
        if changes is None:
            return changes_of(stored.slice(0, 0).select(key), self.shown_in(stored))
        touched = set(tuples(changes.rows.select(key)))
        if changes.deleted is not None:
            touched.update(tuples(changes.deleted.select(key)))
        others = stored.filter(pa.array([row not in touched for row in tuples(stored.select(key))], pa.bool_()))
        if not others.num_rows:
            return changes
        rows = pa.concat_tables([changes.rows, self.shown_in(others)])
        return replace(changes, rows=rows, all_new=False)

    def _stored(self, work: Incremental[PatchPlan]) -> Iterator[pa.Table]:
        """The stored rows that show one of the changed rows. Raises TooMany."""
        for shown, rows in self.found:
            keys, names = zip(*shown.key, strict=True)
            yield stored_with(work, rows.select(list(keys)).rename_columns(list(names)))


def without_shown(work: Incremental[PatchPlan]) -> tuple[Incremental[PatchPlan], ShownChanges]:
    """The view to update without the changes of columns that it only shows; and these. Raises TooMany."""
    deltas, found = dict(work.deltas), []
    for leaf in work.plan.leaves:
        shown = work.plan.shown.get(leaf.path)
        delta = work.delta(leaf)
        if shown is None or not delta.old.num_rows or not delta.new.num_rows:
            continue
        others = [name for name in delta.new.column_names if name not in dict(shown.columns)]
        old, new = (tuples(rows.select(others)) for rows in (delta.old, delta.new))
        both = {*old} & {*new}  # one row of each, as the key is among these columns
        if both:
            were, are = (np.fromiter((row in both for row in rows), np.bool_, len(rows)) for rows in (old, new))
            deltas[leaf.path] = RowsChanged(delta.old.filter(pa.array(~were)), delta.new.filter(pa.array(~are)))
            found.append((shown, delta.new.filter(pa.array(are))))
    return replace(work, deltas=deltas), ShownChanges(found)


def _with_values(rows: pa.Table, shown: ShownColumns, changed: pa.Table) -> pa.Table:
    """The rows of a view, those of the changed rows of a leaf with their values."""
    keys, names = zip(*shown.key, strict=True)
    places = {key: place for place, key in enumerate(tuples(changed.select(list(keys))))}
    found = pa.array([places.get(key) for key in tuples(rows.select(list(names)))], pa.int64())
    if found.null_count == len(found):
        return rows
    for column, name in shown.columns:
        new = pc.if_else(pc.is_valid(found), changed.column(column).take(found), rows.column(name))
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), new)
    return rows

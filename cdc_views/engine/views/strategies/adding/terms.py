"""The terms of a change: sets of rows over which a view's text gives what is added to its totals, or subtracted.

Over a linear FROM there are two: the rows added to all leaves, and those removed. Over inner joins, each changed leaf
has one of either kind: its changed rows, with the rows that they join (plan/incremental/delta_plans/group_totals.py).
Over any other FROM there are two: the rows of the affected keys after the change, and those before it
(plan/incremental/delta_plans/affected_rows.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.engine.views.inputs import InputVersions
from cdc_views.engine.views.lookups import search
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.keys import (
    MOST_RELATIONS,
    affected,
    at_new_version,
    at_old_version,
    at_versions,
    reduced,
    require_few,
    require_values,
)
from cdc_views.engine.views.view_tables import BOX
from cdc_views.plan.incremental import AddPlan, GroupPlan, KeysPlan, Leaf, Path

Adding = TypeVar("Adding", AddPlan, GroupPlan)

_ADDED: Final = True
_REMOVED: Final = False


@dataclass(frozen=True)
class Term:
    """The rows of each leaf, and whether the totals over them are added or subtracted."""

    is_added: bool
    rows: Mapping[Path, pa.Table]


def terms_of_leaves(work: Incremental[AddPlan]) -> list[Term]:
    """The terms of a linear FROM; none if no leaf changed. Raises TooMany."""
    deltas = {leaf.path: work.delta(leaf) for leaf in work.plan.leaves}
    if not any(delta.old.num_rows or delta.new.num_rows for delta in deltas.values()):
        return []
    added = Term(_ADDED, {path: delta.new for path, delta in deltas.items()})
    return [added, Term(_REMOVED, {path: delta.old for path, delta in deltas.items()})]


def terms_of_joins(work: Incremental[Adding]) -> list[Term]:
    """The terms of inner joins; none if the changed rows join nothing. Raises TooMany."""
    return list(_terms_of_joins(work))


def _terms_of_joins(work: Incremental[Adding]) -> Iterator[Term]:
    for leaf in work.plan.leaves:
        delta = work.delta(leaf)
        for is_added, changed in ((_ADDED, delta.new), (_REMOVED, delta.old)):
            rows = _joined_in_order(work, leaf, changed) if changed.num_rows else {}
            if rows and all(each.num_rows for each in rows.values()):
                yield Term(is_added, rows)


def _joined_in_order(work: Incremental[Adding], changed: Leaf, rows: pa.Table) -> dict[Path, pa.Table]:
    """Changed rows of a leaf, with the rows of the other leaves that they join.

    The leaves before it are at the new version, those after it at the old one.
    """

    def version(leaf: Leaf, of: InputVersions) -> int:
        return of.new if leaf.path < changed.path else of.old

    return _joined(work, changed, rows, version)


def joined_at(work: Incremental[AddPlan], start: Leaf, rows: pa.Table, *, is_new: bool) -> dict[Path, pa.Table]:
    """Rows of a leaf, with the rows of the other leaves that they join, all of the new version or of the old one."""
    return _joined(work, start, rows, lambda leaf, of: of.new if is_new else of.old)


def _joined(
    work: Incremental[Adding], start: Leaf, rows: pa.Table, version: Callable[[Leaf, InputVersions], int]
) -> dict[Path, pa.Table]:
    used = {leaf: work.used(leaf) for leaf in work.plan.leaves}
    found = search(work.plan.joined[start.path], {start: rows}, used, at_versions(work, version))
    return {leaf.path: found[leaf] for leaf in used}


def terms_of_affected(work: Incremental[Adding], plan: KeysPlan) -> list[Term]:
    """The terms of any other FROM: the affected rows at both versions; none if none is affected. Raises TooMany."""
    by_keys = work.by_keys(plan)
    require_values(by_keys)
    terms = []
    for box in affected(by_keys):
        for is_added, find in ((_ADDED, at_new_version(work)), (_REMOVED, at_old_version(work))):
            rows = reduced(by_keys, box, find)
            terms.append(Term(is_added, {leaf.path: found for leaf, found in rows.items()}))
    return terms


def require_possible(work: Incremental[Adding], sets: Collection[Mapping[Path, pa.Table]]) -> None:
    """Raise TooMany if the sets of rows, or their rows, are too many for one small query."""
    if len(sets) * len(work.plan.leaves) > MOST_RELATIONS:
        raise TooMany(f"{len(sets)} sets of rows, each with {len(work.plan.leaves)} tables")
    require_few(work, sum(rows.num_rows for each in sets for rows in each.values()))


def of_set(found: pa.Table, number: int) -> pa.Table:
    """The only row of a view that a query found over one of its sets of rows. Raises TooMany."""
    return one_row(found.filter(pc.equal(found.column(BOX), number)).drop_columns([BOX]))


def one_row(rows: pa.Table) -> pa.Table:
    """The rows, which must be one. Raises TooMany."""
    if rows.num_rows != 1:
        raise TooMany(f"{rows.num_rows} rows of totals, wanted 1", "sum not known")
    return rows

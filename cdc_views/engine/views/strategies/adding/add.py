"""ADD: add the totals over the rows that are added to the stored ones, and subtract those over the rows removed.

plan/incremental/delta_plans/additive.py says which views have such totals, and proves that this gives the new row. One
query computes the totals over the rows added and over the rows removed; no other row of an input is read, but those
that count(DISTINCT) looks up (extremes.py). To add twice would be wrong: the stored row must be that of the old
versions of the inputs, as it is for a live view (engine/tables.py).

A sum over no values is NULL. Let S be the stored sum, A and R the sums over the rows added and removed. The new sum
has values if A has one, since added rows stay; if R is NULL and S has one, since none is removed; and if S + A - R is
not 0, since that is the sum of the values that are left. Otherwise it is 0 or NULL, and only a count can decide: that
of the values, or that of all rows if it is 0. That a column of the source is NOT NULL does not help: the source may
drop that constraint, and no change says so.

Where a total over the changed rows alone overflows, Spark raises its error here, and the view is updated by FULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal, localcontext
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.engine.views.strategies.adding.averages import new_average
from cdc_views.engine.views.strategies.adding.extremes import both_versions, new_extreme, new_number
from cdc_views.engine.views.strategies.difference import difference
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.keys import MOST_RELATIONS, require_few
from cdc_views.engine.views.strategies.results import changes_of
from cdc_views.engine.views.view_tables import BOX
from cdc_views.plan.incremental import AddPlan, Total
from cdc_views.store.warehouse import Changes

DIGITS: Final = 80  # enough for an exact sum of numbers of 38 digits with any scales

Row = dict[str, Decimal | None]


def add(work: Incremental[AddPlan]) -> Changes | None:
    """Update the view; returns None if its row is the same already. Raises TooMany where only FULL gives the row."""
    deltas = {leaf.path: work.delta(leaf) for leaf in work.plan.leaves}
    if not any(delta.old.num_rows or delta.new.num_rows for delta in deltas.values()):
        return None
    stored = work.warehouse.rows(work.spec, work.base)
    added = {path: delta.new for path, delta in deltas.items()}
    removed = {path: delta.old for path, delta in deltas.items()}
    others = [rows for each in work.plan.distincts for rows in both_versions(work, each, deltas)]
    sets = [added, removed, *others]
    if len(sets) * len(work.plan.leaves) > MOST_RELATIONS:
        raise TooMany(f"{len(sets)} sets of rows, each with {len(work.plan.leaves)} tables")
    require_few(work, sum(rows.num_rows for each in others for rows in each.values()))
    rows = _new_row(work, stored, work.run(sets))
    return changes_of(*difference(rows, stored, work.spec.key))


def _new_row(work: Incremental[AddPlan], stored: pa.Table, found: pa.Table) -> pa.Table:
    """The new row of the view, of the stored one and those over each set of rows. Raises TooMany."""
    plan, spec = work.plan, work.spec
    _require_one(stored)
    added, removed, *others = (_of_set(found, number) for number in range(2 + 2 * len(plan.distincts)))
    with localcontext() as context:
        context.prec = DIGITS
        row = _sum(plan, *(_totals(plan, rows) for rows in (stored, added, removed)))
    columns = {name: column_of([value], spec.schema.field(name).type) for name, value in row.items()}
    columns |= {each.name: new_average(each, row, spec.schema.field(each.name).type) for each in plan.averages}
    columns |= {each.name: new_extreme(each, stored, added, removed) for each in plan.extremes}
    both = zip(others[::2], others[1::2], strict=True)
    columns |= {each.name: new_number(each, stored, *rows) for each, rows in zip(plan.distincts, both, strict=True)}
    return pa.table([columns[name] for name in spec.schema.names], schema=spec.schema)


def _of_set(found: pa.Table, number: int) -> pa.Table:
    rows = found.filter(pc.equal(found.column(BOX), number)).drop_columns([BOX])
    _require_one(rows)
    return rows


def _require_one(rows: pa.Table) -> None:
    if rows.num_rows != 1:
        raise TooMany(f"{rows.num_rows} rows of totals, wanted 1", "sum not known")


def _totals(plan: AddPlan, rows: pa.Table) -> Row:
    """The totals in the only row of a table."""
    found = {total.name: rows.column(total.name)[0].as_py() for total in plan.totals}
    return {name: None if value is None else Decimal(value) for name, value in found.items()}


def _sum(plan: AddPlan, stored: Row, added: Row, removed: Row) -> Row:
    """The new totals: the counts first, which decide whether sums are NULL."""
    row: Row = {}
    for total in sorted(plan.totals, key=lambda each: each.is_sum):
        value = _value(total, stored[total.name], added[total.name], removed[total.name], row)
        if value is not None and not all(type_.holds(value) for type_ in total.types):
            raise TooMany(f'the value of column "{total.name}" is beyond the range of its types', "number too large")
        row[total.name] = value
    return row


def _value(
    total: Total, stored: Decimal | None, added: Decimal | None, removed: Decimal | None, counts: Row
) -> Decimal | None:
    """The new value of a total; `counts` are the new values of the counts."""
    if removed is None and (added is None or stored is None):
        return added if stored is None else stored
    if stored is None:
        raise TooMany(f'column "{total.name}" is NULL, but has values to remove', "sum not known")
    value = stored + (added or Decimal()) - (removed or Decimal())
    return value if added is not None or value else zero_or_null(total, counts)


def zero_or_null(total: Total, counts: Mapping[str, Decimal | None]) -> Decimal | None:
    """A sum that is 0, or NULL over no values, by the new counts of the view. Raises TooMany if these cannot tell."""
    if total.values is not None:
        return Decimal() if counts[total.values] else None
    if total.rows is not None and not counts[total.rows]:
        return None
    raise TooMany(f'whether column "{total.name}" is 0 or NULL does not follow from the changed rows', "sum not known")


def column_of(values: Iterable[Decimal | None], type_: pa.DataType) -> pa.Array:
    """Totals as a column of their type."""
    is_whole = pa.types.is_integer(type_)
    return pa.array([int(value) if value is not None and is_whole else value for value in values], type_)

"""ADD: add the totals over the rows that are added to the stored ones, and subtract those over the rows removed.

plan/incremental/delta_plans/additive.py says which views have such totals, and proves that this gives the new row. One
query computes the totals over the rows added and over the rows removed, or over each term of a join (terms.py); no
other row of an input is read, but those that count(DISTINCT) looks up, and those that follow a removed extreme
(extremes.py). To add twice would be wrong: the stored row must be that of the old versions of the inputs, as it is for
a live view (engine/tables.py).

A sum over no values is NULL. Let S be the stored sum, A and R the sums over the rows added and removed. The new sum
has values if R is NULL and S or A has one, since none is removed; if S + A - R is not 0, since that is the sum of the
values that are left; and over a linear FROM if A has one, since added rows stay. (Of a join, a term may add a row that
another one removes.) Otherwise it is 0 or NULL, and only a count can decide: that of the values, or that of all rows if
it is 0. That a column of the source is NOT NULL does not help: the source may drop that constraint, and no change says
so.

Where a total over the changed rows alone overflows, Spark raises its error here, and the view is updated by FULL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any, Final

import pyarrow as pa

from cdc_views.base.python_values import plain_values
from cdc_views.engine.views.strategies.adding.averages import new_average
from cdc_views.engine.views.strategies.adding.extremes import (
    ExtremeRemoved,
    both_versions,
    following,
    new_extreme,
    new_number,
)
from cdc_views.engine.views.strategies.adding.terms import (
    Term,
    of_set,
    one_row,
    require_possible,
    terms_of_affected,
    terms_of_joins,
    terms_of_leaves,
)
from cdc_views.engine.views.strategies.difference import difference
from cdc_views.engine.views.strategies.incremental import Incremental, TooMany
from cdc_views.engine.views.strategies.results import changes_of
from cdc_views.plan.incremental import AddPlan, Extreme, Total
from cdc_views.store.warehouse import Changes

DIGITS: Final = 80  # enough for an exact sum of numbers of 38 digits with any scales

Row = dict[str, Decimal | None]


def add(work: Incremental[AddPlan]) -> Changes | None:
    """Update the view; returns None if its row is the same already. Raises TooMany where only FULL gives the row."""
    terms = _terms(work)
    if not terms:
        return None
    stored = one_row(work.warehouse.rows(work.spec, work.base))
    others = [rows for each in work.plan.distincts for rows in both_versions(work, each, terms)]
    sets = [*(term.rows for term in terms), *others]
    require_possible(work, sets)
    found = work.run(sets)
    each_set = [of_set(found, number) for number in range(len(sets))]
    added = [rows for term, rows in zip(terms, each_set, strict=False) if term.is_added]
    removed = [rows for term, rows in zip(terms, each_set, strict=False) if not term.is_added]
    rows = _new_row(work, _ViewRows(stored, added, removed, each_set[len(terms) :]))
    return changes_of(*difference(rows, stored, work.spec.key))


def _terms(work: Incremental[AddPlan]) -> list[Term]:
    if work.plan.affected is not None:
        return terms_of_affected(work, work.plan.affected)
    return terms_of_joins(work) if work.plan.joined else terms_of_leaves(work)


@dataclass(frozen=True)
class _ViewRows:
    """Rows of the view: the stored one, those over the sets of rows that are added, and that are removed.

    `others` has two for each number of different values: over the rows with these values before the change, and after.
    """

    stored: pa.Table
    added: Sequence[pa.Table]
    removed: Sequence[pa.Table]
    others: Sequence[pa.Table]


def _new_row(work: Incremental[AddPlan], rows: _ViewRows) -> pa.Table:
    """The new row of the view. Raises TooMany."""
    plan, spec, stored = work.plan, work.spec, rows.stored
    with localcontext() as context:
        context.prec = DIGITS
        before, added, removed = (_totals(plan, each) for each in ([stored], rows.added, rows.removed))
        row = _sum(plan, before, added, removed)
    values = {**row, **{each.name: new_average(each, row) for each in plan.averages}}
    columns = {name: column_of([value], spec.schema.field(name).type) for name, value in values.items()}
    columns |= {each.name: _extreme(work, rows, each) for each in plan.extremes}
    both = zip(rows.others[::2], rows.others[1::2], strict=True)
    columns |= {each.name: new_number(each, stored, *pair) for each, pair in zip(plan.distincts, both, strict=True)}
    return pa.table([columns[name] for name in spec.schema.names], schema=spec.schema)


def _extreme(work: Incremental[AddPlan], rows: _ViewRows, extreme: Extreme) -> pa.Array | pa.ChunkedArray:
    """The new value of an extreme, as a column. Raises TooMany."""

    def values(tables: Iterable[pa.Table]) -> list[Any]:
        return [value for each in tables for value in plain_values(each.column(extreme.name))]

    (before,) = values([rows.stored])
    try:
        value = new_extreme(extreme, before, values(rows.added), values(rows.removed), is_linear=not work.plan.joined)
    except ExtremeRemoved:
        return following(work, extreme)
    return column_of([value], work.spec.schema.field(extreme.name).type)


def _totals(plan: AddPlan, tables: Iterable[pa.Table]) -> Row:
    """The sums of the totals in tables of one row: None if they are NULL in each."""
    sums: Row = dict.fromkeys((total.name for total in plan.totals), None)
    for rows in tables:
        for name, known in sums.items():
            value = rows.column(name)[0].as_py()
            if value is not None:
                sums[name] = (known or Decimal()) + Decimal(value)
    return sums


def _sum(plan: AddPlan, stored: Row, added: Row, removed: Row) -> Row:
    """The new totals: the counts first, which decide whether sums are NULL."""
    row: Row = {}
    for total in sorted(plan.totals, key=lambda each: each.is_sum):
        name = total.name
        value = _value(total, stored[name], added[name], removed[name], row, is_linear=not plan.joined)
        if not total.is_sum and (value or 0) < 0:
            raise TooMany(f'column "{name}" would be negative', "sum not known")
        if value is not None and not all(type_.holds(value) for type_ in total.types):
            raise TooMany(f'the value of column "{name}" is beyond the range of its types', "number too large")
        row[name] = value
    return row


def _value(
    total: Total,
    stored: Decimal | None,
    added: Decimal | None,
    removed: Decimal | None,
    counts: Row,
    *,
    is_linear: bool,
) -> Decimal | None:
    """The new value of a total; `counts` are the new values of the counts."""
    if removed is None and (added is None or stored is None):
        return added if stored is None else stored
    if stored is None and is_linear:
        raise TooMany(f'column "{total.name}" is NULL, but has values to remove', "sum not known")
    value = (stored or Decimal()) + (added or Decimal()) - (removed or Decimal())
    has_values = not total.is_sum or bool(value) or removed is None or (added is not None and is_linear)
    return value if has_values else zero_or_null(total, counts)


def zero_or_null(total: Total, counts: Mapping[str, Decimal | None]) -> Decimal | None:
    """A sum that is 0, or NULL over no values, by the new counts of the view. Raises TooMany if these cannot tell."""
    if total.values is not None:
        return Decimal() if counts[total.values] else None
    if total.rows is not None and not counts[total.rows]:
        return None
    raise TooMany(f'whether column "{total.name}" is 0 or NULL does not follow from the changed rows', "sum not known")


def column_of(values: Iterable[Any], type_: pa.DataType) -> pa.Array:
    """Totals, averages or extremes as a column of their type."""
    is_whole = pa.types.is_integer(type_)
    return pa.array([int(value) if value is not None and is_whole else value for value in values], type_)

"""The average over all rows, beside the sum and the number of the same values (additive.py).

Spark divides the sum by the number of the values, and rounds: to four more digits after the point than the values have,
or for whole numbers to a double. Both are kept by adding. So the new average is that of the new sum and the new number.

    SELECT avg(price) AS average, sum(price) AS total, count(price) AS priced FROM products

Spark adds whole numbers as doubles for this. That is exact as long as no sum of some of them can reach 2^53, which the
number of the values says if they have 32 bits: beyond that, the epoch is FULL. For values of 64 bits, the view is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.delta_plans.totals import Aggregate, aggregate_of
from cdc_views.plan.incremental.exact_types import ExactType, of_arrow, of_expression
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.expression_text import Texts

_MOST_BITS: Final = 32
_MOST_DIGITS: Final = 37  # of a sum: with 38, it does not tell the digits of its values


@dataclass(frozen=True)
class Average:
    """A column with the average of the values that `total` adds and `count` counts.

    `scale` is its number of digits after the point; None for a double, whose values are whole numbers of `bits`.
    """

    name: str
    total: str
    count: str
    scale: int | None
    bits: int = 0


def averages_and_totals(
    items: Mapping[str, exp.Expr], columns: Mapping[str, str], scope: Scope, texts: Texts
) -> tuple[tuple[Average, ...], dict[str, Aggregate]]:
    """The averages, and the counts and sums, among the columns of a view with their Arrow types.

    Raises NotIncremental.
    """
    found = {name: call for name, item in items.items() if (call := _average(item)) is not None}
    totals = {name: aggregate_of(name, item) for name, item in items.items() if name not in found}
    averages = []
    for name, (value, condition) in found.items():
        of_values = [
            (each, total.is_sum)
            for each, total in totals.items()
            if texts.are_same(total.argument, value) and texts.are_same(total.filter, condition) and not total.casts
        ]
        sums, counts = ([each for each, is_sum in of_values if is_sum == wanted] for wanted in (True, False))
        if not sums or not counts:
            raise NotIncremental(f'column "{name}" is an average, and the view lacks the sum or count of its values')
        scale = _scale(name, columns[name], of_arrow(columns[sums[0]]))
        bits = 0 if scale is not None else _bits(name, of_expression(value, scope))
        averages.append(Average(name, sums[0], counts[0], scale, bits))
    return tuple(averages), totals


def _average(item: exp.Expr) -> tuple[exp.Expr, exp.Expr | None] | None:
    """The values and the FILTER of a column that is an average."""
    node, condition = item.unalias(), None
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    is_plain = type(node) is exp.Avg and not isinstance(node.this, exp.Distinct)
    return (node.this, condition) if is_plain else None


def _bits(name: str, value: ExactType | None) -> int:
    if value is None or not 0 < value.bits <= _MOST_BITS:
        found = "not known" if value is None else value
        raise NotIncremental(f'column "{name}" is an average of values of type {found}, which Spark may add inexactly')
    return value.bits


def _scale(name: str, type_: str, total: ExactType | None) -> int | None:
    """The digits after the point of an average, if its type is that which Spark makes of these sums."""
    average = of_arrow(type_)
    if total is not None and average is None and type_ == "double" and not total.scale:
        return None
    if total is None or average is None or average.bits or total.bits or total.digits > _MOST_DIGITS:
        raise NotIncremental(f'column "{name}" is an average of type {type_}, whose rounding is not known')
    if (average.digits, average.scale) != (total.digits - 6, total.scale + 4):
        raise NotIncremental(f'column "{name}" is an average of type {type_}, of sums of type {total}')
    return average.scale

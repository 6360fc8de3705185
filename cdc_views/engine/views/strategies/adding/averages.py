"""New averages, of the new sums and counts; plan/incremental/delta_plans/averages.py says why these decide."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Final

from cdc_views.engine.views.strategies.incremental import TooMany
from cdc_views.plan.incremental import Average

_MOST_EXACT: Final = 1 << 53
_DIGITS: Final = 120
# Spark divides decimals to 38 digits after the point, and rounds that to the digits of the type.
_QUOTIENT: Final = Decimal(1).scaleb(-38)


def new_average(average: Average, totals: Mapping[str, Decimal | None]) -> Decimal | float | None:
    """The new value. Raises TooMany where Spark would not add the values exactly."""
    total, count = totals[average.total], totals[average.count]
    if total is None or not count:
        return None
    if average.scale is not None:
        with localcontext() as context:
            context.prec, context.rounding = _DIGITS, ROUND_HALF_UP
            return (total / count).quantize(_QUOTIENT).quantize(Decimal(1).scaleb(-average.scale))
    if int(count) << (average.bits - 1) >= _MOST_EXACT:  # Spark may add the largest of them first
        raise TooMany(f'the values of column "{average.name}" are too many for exact doubles', "number too large")
    return int(total) / int(count)

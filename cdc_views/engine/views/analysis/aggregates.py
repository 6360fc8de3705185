"""Whether an aggregate returns the same result for any order of its rows. Classes are those of Spark 4.2."""

from __future__ import annotations

import re
from typing import Any, Final

from cdc_views.engine.spark.catalyst import each_of, short_name, type_of
from cdc_views.engine.views.analysis.data_types import is_made_of_floats
from cdc_views.engine.views.analysis.known_classes import each, names
from cdc_views.plan import refusals
from cdc_views.plan.refusals import Refusal

_EXACT_AGGREGATES: Final = names(
    """
    BitAndAgg BitOrAgg BitXorAgg BitmapAndAgg BitmapConstructAgg BitmapOrAgg BoolAnd BoolOr Count CountIf Max Median
    Min Percentile PercentileCont PercentileDisc PivotFirst RegrCount
    """
)
_AGGREGATES: Final[dict[str, Refusal]] = {
    **each(refusals.ONE_OF, "First Last AnyValue"),
    **each(refusals.TIES, "MaxBy MinBy MaxMinByK"),
    **each(refusals.MOMENTS, "StddevPop StddevSamp VariancePop VarianceSamp Skewness Kurtosis Corr CovPopulation"),
    **each(refusals.MOMENTS, "CovSample RegrAvgX RegrAvgY RegrIntercept RegrR2 RegrSlope RegrSXX RegrSXY RegrSYY"),
    **each(refusals.FLOATS, "VectorAvg VectorSum"),
    **each(refusals.OUTSIDE, "PythonUDAF"),
}
_OF_ORDERED_WINDOWS: Final = frozenset({"First", "Last", "AnyValue"})
# The comparison that Spark adds to an array_sort without one: only equal elements tie.
_DEFAULT_COMPARISON: Final = (
    "if ((isnull(lambda left) AND isnull(lambda right))) 0 else if (isnull(lambda left)) 1 else if (isnull(lambda right"
    ")) -1 else if ((lambda left < lambda right)) -1 else if ((lambda left > lambda right)) 1 else 0"
)


def refused_aggregate(function: Any, parent: Any) -> Refusal | None:
    """Why the result of an aggregate may depend on the order of its rows; None if it does not.

    `parent` is the expression around it.
    """
    name, around = short_name(function), short_name(parent)
    if name in _EXACT_AGGREGATES:
        return None
    if name in ("Sum", "Average"):
        return refusals.FLOATS if type_of(function.children().apply(0)) in ("double", "float") else None
    if name in ("CollectList", "CollectSet"):
        if around == "ArraySort" and not _has_default_comparison(parent):
            return refusals.COMPARATOR
        if around not in ("ArraySort", "SortArray"):
            return refusals.ORDER
        return refusals.SIGNED_ZEROS if is_made_of_floats(function.children().apply(0).dataType()) else None
    if name == "ListAgg":
        if function.orderExpressions().isEmpty():
            return refusals.TEXT_ORDER
        return refusals.SIGNED_ZEROS if _lists_floats_by_themselves(function) else None
    if name == "Mode":
        return None if function.reverseOpt().isDefined() else refusals.ONE_OF
    if name in _OF_ORDERED_WINDOWS and around == "WindowExpression":
        return refusals.WINDOW_ORDER if parent.windowSpec().orderSpec().isEmpty() else None
    return _AGGREGATES.get(name, refusals.APPROXIMATE)


def _lists_floats_by_themselves(function: Any) -> bool:
    """Whether listagg() orders floats by their value, which leaves 0.0 and -0.0 in any order."""
    listed = function.child()
    while short_name(listed) == "Cast":
        listed = listed.child()
    orders = (each.child() for each in each_of(function.orderExpressions()))
    return is_made_of_floats(listed.dataType()) and any(map(listed.semanticEquals, orders))


def _has_default_comparison(sort: Any) -> bool:
    return re.sub(r"#\d+", "", str(sort.function().function().toString())) == _DEFAULT_COMPARISON

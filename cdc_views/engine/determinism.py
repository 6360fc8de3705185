"""Whether a view is a function of its tables, decided from Spark's analysed plan.

Everything in the plan must be known: an operator or aggregate that is not listed here is refused, and so is a function
that is not Spark's own. What Spark itself calls deterministic does not suffice: its flag is set for the clock, the
session, and aggregates that depend on the order of rows. Names do not matter, so quotes and qualifiers hide nothing.
plan/support.py has refused the common cases before, with the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cdc_views.errors import UnsupportedView
from cdc_views.plan import refusals
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.refusals import Refusal

_BUILT_IN: Final = "org.apache.spark.sql.catalyst.expressions."
_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical."
_UNKNOWN: Final = Refusal("is not known to give the same result each time", "use other functions of Spark SQL")


def _names(classes: str) -> frozenset[str]:
    return frozenset(classes.split())


def _each(refused: Refusal, classes: str) -> dict[str, Refusal]:
    return dict.fromkeys(_names(classes), refused)


# Classes of Spark 4.2; expressions below _BUILT_IN, operators below _LOGICAL.
_EXPRESSIONS: Final[dict[str, Refusal]] = {
    **_each(refusals.CHANCE, "Rand Randn RandStr Uniform Uuid Shuffle AesEncrypt"),
    **_each(refusals.CLOCK, "Now CurrentTimestamp CurrentDate CurrentTime LocalTimestamp CurrentBatchTimestamp"),
    **_each(refusals.SESSION, "CurrentUser CurrentCatalog CurrentDatabase CurrentPath CurrentTimeZone SparkVersion"),
    **_each(refusals.SESSION, "VariableReference"),
    **_each(refusals.PHYSICAL, "MonotonicallyIncreasingID SparkPartitionID DirectShufflePartitionID"),
    **_each(refusals.PHYSICAL, "InputFileName InputFileBlockStart InputFileBlockLength DistributedSequenceID"),
    **_each(refusals.OUTSIDE, "CallMethodViaReflection TryReflect ScalaUDF PythonUDF PythonUDAF PythonUDTF"),
    **_each(refusals.OUTSIDE, "PrettyPythonUDF PythonFuncExpression ApplyFunctionExpression TransformExpression"),
}
_OPERATORS: Final = _names(
    """
    Aggregate CTERelationDef CTERelationRef Distinct Except Expand Filter Generate GlobalLimit Intersect Join
    LateralJoin LocalLimit LocalRelation Offset OneRowRelation Project Range RebalancePartitions Repartition
    RepartitionByExpression ResolvedHint Sort SubqueryAlias Union UnionLoop UnionLoopRef Window WithCTE
    org.apache.spark.sql.catalyst.analysis.ResolvedInlineTable
    """
)
_EXACT_AGGREGATES: Final = _names(
    """
    BitAndAgg BitOrAgg BitXorAgg BitmapAndAgg BitmapConstructAgg BitmapOrAgg BoolAnd BoolOr Count CountIf Max Median
    Min Percentile PercentileCont PercentileDisc PivotFirst RegrCount
    """
)
_AGGREGATES: Final[dict[str, Refusal]] = {
    **_each(refusals.ONE_OF, "First Last AnyValue"),
    **_each(refusals.TIES, "MaxBy MinBy MaxMinByK"),
    **_each(refusals.MOMENTS, "StddevPop StddevSamp VariancePop VarianceSamp Skewness Kurtosis Corr CovPopulation"),
    **_each(refusals.MOMENTS, "CovSample RegrAvgX RegrAvgY RegrIntercept RegrR2 RegrSlope RegrSXX RegrSXY RegrSYY"),
    **_each(refusals.FLOATS, "VectorAvg VectorSum"),
    **_each(refusals.OUTSIDE, "PythonUDAF"),
}
_OF_ORDERED_WINDOWS: Final = frozenset({"First", "Last", "AnyValue"})
_WINDOW_FUNCTIONS: Final = _names("CumeDist DenseRank Lag Lead NTile NthValue PercentRank Rank RowNumber")
# Between LIMIT and the Sort that orders its rows.
_KEEPS_ORDER: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Project"})

# A comparison of array_sort that Spark adds by itself: only equal elements tie.
_DEFAULT_COMPARISON: Final = (
    "if ((isnull(lambda left) AND isnull(lambda right))) 0 else if (isnull(lambda left)) 1 else if (isnull(lambda right"
    ")) -1 else if ((lambda left < lambda right)) -1 else if ((lambda left > lambda right)) 1 else 0"
)
_FUNCTION: Final = re.compile(r"(?:(?:`[^`]+`|\w+)\s*\.\s*)*(?:`([^`]+)`|(\w+))\s*\(")


def check_determinism(frame: DataFrame, view: CompiledView, relations: Mapping[str, str]) -> None:
    """Refuse a view whose result is not a function of its inputs; `frame` is its query over `relations`.

    Raises UnsupportedView with file, line and column.
    """
    java: Any = frame
    _Check(frame.sparkSession, view, relations).run(java._jdf.queryExecution().analyzed())


class _Check:
    """Walks the plan. With a stack: a long chain of ORs is a deep tree."""

    def __init__(self, session: SparkSession, view: CompiledView, relations: Mapping[str, str]) -> None:
        java: Any = session
        forName = java._jvm.java.lang.Class.forName  # noqa: N806
        self._replaceable = forName(f"{_BUILT_IN}RuntimeReplaceable")
        self._with_plan = forName(f"{_BUILT_IN}PlanExpression")
        self._view = view
        self._relations = relations
        self._names = frozenset(relations.values())
        self._traits: dict[str, tuple[bool, bool]] = {}
        self._operators: list[Any] = []
        # An expression, its parent, and whether it stands for a built-in function.
        self._expressions: list[tuple[Any, Any, bool]] = []

    def run(self, plan: Any) -> None:
        self._operators.append(plan)
        while self._operators:
            self._operator(self._operators.pop())
            while self._expressions:
                self._expression(*self._expressions.pop())

    def _operator(self, node: Any) -> None:
        name = _operator(node)
        if name == "View" and node.desc().identifier().table() in self._names:
            return
        if name == "Sample":
            raise self._refusal(node, "TABLESAMPLE", Refusal("returns other rows each time", "filter by a column"))
        if name == "ScriptTransformation":
            raise self._refusal(node, "TRANSFORM", refusals.OUTSIDE)
        if name not in _OPERATORS:
            raise self._refusal(node, str(node.nodeName()), _UNKNOWN)
        if name in ("GlobalLimit", "Offset") and not _is_ordered(node):
            word = "LIMIT" if name == "GlobalLimit" else "OFFSET"
            hint = "add an ORDER BY in which no two rows tie"
            raise self._refusal(node, word, Refusal("without ORDER BY returns arbitrary rows", hint))
        self._check_spelling(node, name)
        for expression in _each_of(node.expressions()):
            if not expression.deterministic():
                self._check_flags(expression)
            self._expressions.append((expression, node, False))
        self._operators.extend(_each_of(node.children()))

    def _check_spelling(self, node: Any, name: str) -> None:
        """Refuse to make values one that are equal and yet not the same."""
        compared: Iterable[Any] = ()
        if name == "Aggregate":
            compared = _each_of(node.groupingExpressions())
        elif name in ("Distinct", "Intersect", "Except"):
            compared = _each_of(node.output())
        for expression in compared:
            if _is_collated(expression):
                raise self._refusal(expression, "a collation", refusals.COLLATION)

    def _check_flags(self, expression: Any) -> None:
        """Refuse what Spark calls nondeterministic. Subqueries are looked at by themselves."""
        pending = [expression]
        while pending:
            node = pending.pop()
            is_replaceable, has_plan = self._traits_of(node)
            below = [child for child in self._below(node, is_replaceable) if not child.deterministic()]
            if not below and not has_plan:
                raise self._refusal(node, None, _EXPRESSIONS.get(_short(node), refusals.CHANCE))
            pending += below

    def _expression(self, node: Any, parent: Any, is_replacement: bool) -> None:
        name = _short(node)
        is_replaceable, has_plan = self._traits_of(node)
        if refused := _EXPRESSIONS.get(name) or self._unknown(node, name, is_replacement):
            raise self._refusal(node, None, refused)
        if has_plan:
            self._operators.append(node.plan())
        if name == "AggregateExpression":
            self._aggregate(node, parent)
            return
        if name == "WindowExpression":
            self._check_window(node.windowFunction())
        elif name == "Cast":
            self._check_cast(node)
        elif name in ("JsonToStructs", "CsvToStructs", "XmlToStructs"):
            self._check_parser(node)
        is_replacement = is_replacement or is_replaceable
        self._expressions += [(child, node, is_replacement) for child in self._below(node, is_replaceable)]

    def _unknown(self, node: Any, name: str, is_replacement: bool) -> Refusal | None:
        if not _class_of(node).startswith(_BUILT_IN):
            return refusals.OUTSIDE
        # Functions of a catalog appear as calls of Java methods; so do some of Spark's own, in their replacement.
        return _UNKNOWN if name.startswith("objects.") and not is_replacement else None

    def _check_window(self, function: Any) -> None:
        if _short(function) not in ("AggregateExpression", *_WINDOW_FUNCTIONS):
            raise self._refusal(function, None, _UNKNOWN)

    def _aggregate(self, node: Any, parent: Any) -> None:
        function = node.aggregateFunction()
        name = _short(function)
        if refused := self._why_not(function, name, parent):
            raise self._refusal(node, None, refused)
        children = [*_each_of(function.children()), *_each_of(node.filter())]
        # Texts that are counted, or only ordered, are not shown.
        shows_one = name not in ("Count", "CountIf") and (name != "ListAgg" or node.isDistinct())
        if shows_one and any(map(_is_collated, _each_of(function.children()))):
            raise self._refusal(node, None, refusals.COLLATION)
        self._expressions += [(child, function, False) for child in children]

    def _why_not(self, function: Any, name: str, parent: Any) -> Refusal | None:
        around = _short(parent)
        if name in _EXACT_AGGREGATES:
            return None
        if name in ("Sum", "Average"):
            return refusals.FLOATS if _type_of(function.children().apply(0)) in ("double", "float") else None
        if name in ("CollectList", "CollectSet"):
            if around == "ArraySort" and not _has_default_comparison(parent):
                return refusals.COMPARATOR
            return None if around in ("ArraySort", "SortArray") else refusals.ORDER
        if name == "ListAgg":
            return refusals.TEXT_ORDER if function.orderExpressions().isEmpty() else None
        if name == "Mode":
            return None if function.reverseOpt().isDefined() else refusals.ONE_OF
        if name in _OF_ORDERED_WINDOWS and around == "WindowExpression":
            return refusals.WINDOW_ORDER if parent.windowSpec().orderSpec().isEmpty() else None
        return _AGGREGATES.get(name, refusals.APPROXIMATE)

    def _check_cast(self, node: Any) -> None:
        """Refuse a text as a time where it may be the word "now", or a time of day: the day is the current one."""
        target, child = _type_of(node), node.child()
        if target not in ("timestamp", "timestamp_ntz", "date") or not _type_of(child).startswith("string"):
            return
        if child.foldable() and not _contains_clock(child):
            value = child.eval(None)
            if value is not None and refusals.CLOCK_TEXT.match(str(value.toString())):
                raise self._refusal(node, f"'{value.toString()}' as a time", refusals.CLOCK)
        elif target == "timestamp":
            raise self._refusal(node, "a text as a timestamp", refusals.TIME_OF_TEXT)

    def _check_parser(self, node: Any) -> None:
        has_format = "timestampformat" in str(node.options().keys().mkString(" ")).lower()
        if re.search(r"\btimestamp\b", _type_of(node)) and not has_format:
            raise self._refusal(node, None, refusals.TIME_OF_TEXT)

    def _below(self, node: Any, is_replaceable: bool) -> Iterator[Any]:
        yield from _each_of(node.children())
        if is_replaceable:
            yield node.replacement()

    def _traits_of(self, node: Any) -> tuple[bool, bool]:
        """Whether Spark replaces the expression by another one, and whether it holds a query."""
        name = _class_of(node)
        if name not in self._traits:
            self._traits[name] = (self._replaceable.isInstance(node), self._with_plan.isInstance(node))
        return self._traits[name]

    def _refusal(self, node: Any, what: str | None, refused: Refusal) -> UnsupportedView:
        start = node.origin().startIndex()
        offset = self._view.offset_of(int(start.get()), self._relations) if start.isDefined() else 0
        if what is None:
            written = _FUNCTION.match(self._view.definition.sql, offset) if start.isDefined() else None
            what = f"{(written[1] or written[2]) if written else node.prettyName()}()"
        return UnsupportedView(f"{self._view.definition.place(offset)}: {what} {refused.why}", hint=refused.hint)


def _class_of(node: Any) -> str:
    return str(node.getClass().getName())


def _operator(node: Any) -> str:
    return _class_of(node).removeprefix(_LOGICAL)


def _short(node: Any) -> str:
    return _class_of(node).removeprefix(_BUILT_IN).removeprefix("aggregate.")


def _each_of(found: Any) -> Iterator[Any]:
    """The elements of a Seq or Option of Scala."""
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _type_of(node: Any) -> str:
    return str(node.dataType().simpleString())


def _is_collated(node: Any) -> bool:
    """Whether different values of the expression's type may be equal. The types of relations have no such texts."""
    return "string collate " in _type_of(node).lower()


def _is_ordered(limit: Any) -> bool:
    node = limit
    while _operator(node) in _KEEPS_ORDER:
        node = node.children().apply(0)
    return _operator(node) == "Sort" and bool(getattr(node, "global")())


def _has_default_comparison(sort: Any) -> bool:
    return re.sub(r"#\d+", "", str(sort.function().function().toString())) == _DEFAULT_COMPARISON


def _contains_clock(node: Any) -> bool:
    """Whether an expression that Spark calls constant cannot be evaluated yet."""
    pending = [node]
    while pending:
        found = pending.pop()
        if _short(found) in _EXPRESSIONS:
            return True
        pending += _each_of(found.children())
    return False

"""Checks that a view is a function of its inputs, in Spark's analysed plan.

Only what is known to be deterministic passes: operators and aggregates that are not listed are refused, and so are
functions that are not Spark's own. Spark's own `deterministic` flag is not enough, since it is set for the clock, for
facts of the session, and for aggregates that depend on the order of rows. The plan has classes and not names, so quoted
and qualified names are no way around the check. `plan/support.py` has refused the common cases earlier, with the same
messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from cdc_views.engine.spark.catalyst import BUILT_IN, class_of, each_of, operator_name, short_name, type_of
from cdc_views.engine.views.analysis.aggregates import refused_aggregate
from cdc_views.engine.views.analysis.data_types import contains_timestamp, reads_timestamps
from cdc_views.engine.views.analysis.known_classes import (
    KEEPS_ORDER,
    OPERATORS,
    REFUSED_EXPRESSIONS,
    UNKNOWN,
    WINDOW_FUNCTIONS,
)
from cdc_views.errors import UnsupportedView
from cdc_views.plan import refusals
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.refusals import Refusal
from cdc_views.views.text import has_collation, tokens_of

_PARSERS: Final = frozenset({"JsonToStructs", "CsvToStructs", "XmlToStructs", "variant.VariantGet"})
_TYPED_BY_TEXT: Final = _PARSERS | {"Collate"}  # and CAST, whose type is no text
_FUNCTION: Final = re.compile(r"(?:(?:`[^`]+`|\w+)\s*\.\s*)*(?:`([^`]+)`|(\w+))\s*\(")


def check_determinism(frame: DataFrame, view: CompiledView, relations: Mapping[str, str]) -> None:
    """Refuse a view whose result is not a function of its inputs. `frame` is its query over `relations`.

    Raises UnsupportedView with file, line and column.
    """
    java: Any = frame
    _Check(frame.sparkSession, view, relations).run(java._jdf.queryExecution().analyzed())


class _Check:
    """Walks the plan with a stack and without recursion, since a long chain of ORs is a deep tree."""

    def __init__(self, session: SparkSession, view: CompiledView, relations: Mapping[str, str]) -> None:
        java: Any = session
        forName = java._jvm.java.lang.Class.forName  # noqa: N806
        self._replaceable = forName(f"{BUILT_IN}RuntimeReplaceable")
        self._with_plan = forName(f"{BUILT_IN}PlanExpression")
        self._view = view
        self._relations = relations
        self._names = frozenset(relations.values())
        self._traits: dict[str, tuple[bool, bool]] = {}
        self._operators: list[Any] = []
        # An expression, its parent, and whether it is part of what Spark replaces a built-in function by.
        self._expressions: list[tuple[Any, Any, bool]] = []

    def run(self, plan: Any) -> None:
        self._operators.append(plan)
        while self._operators:
            self._operator(self._operators.pop())
            while self._expressions:
                self._expression(*self._expressions.pop())

    def _operator(self, node: Any) -> None:
        name = operator_name(node)
        if name == "View" and node.desc().identifier().table() in self._names:
            return
        if name == "Sample":
            raise self._refusal(node, "TABLESAMPLE", Refusal("returns other rows each time", "filter by a column"))
        if name == "ScriptTransformation":
            raise self._refusal(node, "TRANSFORM", refusals.OUTSIDE)
        if name not in OPERATORS:
            raise self._refusal(node, str(node.nodeName()), UNKNOWN)
        if name in ("GlobalLimit", "Offset") and not _is_ordered(node):
            word = "LIMIT" if name == "GlobalLimit" else "OFFSET"
            hint = "add an ORDER BY in which no two rows tie"
            raise self._refusal(node, word, Refusal("without ORDER BY returns arbitrary rows", hint))
        self._check_spelling(node, name)
        for expression in each_of(node.expressions()):
            if not expression.deterministic():
                self._check_flags(expression)
            self._expressions.append((expression, node, False))
        self._operators.extend(each_of(node.children()))

    def _check_spelling(self, node: Any, name: str) -> None:
        """Refuse to merge values that are equal under a collation but are not the same text."""
        compared: Iterable[Any] = ()
        if name == "Aggregate":
            compared = each_of(node.groupingExpressions())
        elif name in ("Distinct", "Intersect", "Except"):
            compared = each_of(node.output())
        for expression in compared:
            if _is_collated(expression):
                raise self._refusal(expression, "a collation", refusals.COLLATION)

    def _check_flags(self, expression: Any) -> None:
        """Refuse expressions that Spark calls nondeterministic. The plans of subqueries are checked separately."""
        pending = [expression]
        while pending:
            node = pending.pop()
            is_replaceable, has_plan = self._traits_of(node)
            below = [child for child in self._below(node, is_replaceable) if not child.deterministic()]
            if not below and not has_plan:
                raise self._refusal(node, None, REFUSED_EXPRESSIONS.get(short_name(node), refusals.CHANCE))
            pending += below

    def _expression(self, node: Any, parent: Any, is_replacement: bool) -> None:
        name = short_name(node)
        is_replaceable, has_plan = self._traits_of(node)
        if refused := REFUSED_EXPRESSIONS.get(name) or self._unknown(node, name, is_replacement):
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
        elif name in _PARSERS:
            self._check_parser(node)
        if name in _TYPED_BY_TEXT and _is_collated(node):
            self._check_collation(node)
        is_replacement = is_replacement or is_replaceable
        self._expressions += [(child, node, is_replacement) for child in self._below(node, is_replaceable)]

    def _unknown(self, node: Any, name: str, is_replacement: bool) -> Refusal | None:
        if not class_of(node).startswith(BUILT_IN):
            return refusals.OUTSIDE
        # Functions of a catalog appear as calls of Java methods. So do some of Spark's own, in their replacement.
        return UNKNOWN if name.startswith("objects.") and not is_replacement else None

    def _check_window(self, function: Any) -> None:
        if short_name(function) not in ("AggregateExpression", *WINDOW_FUNCTIONS):
            raise self._refusal(function, None, UNKNOWN)

    def _aggregate(self, node: Any, parent: Any) -> None:
        function = node.aggregateFunction()
        name = short_name(function)
        if refused := refused_aggregate(function, parent):
            raise self._refusal(node, None, refused)
        children = [*each_of(function.children()), *each_of(node.filter())]
        # Texts that are only counted or ordered by do not appear in the result.
        shows_one = name not in ("Count", "CountIf") and (name != "ListAgg" or node.isDistinct())
        if shows_one and any(map(_is_collated, each_of(function.children()))):
            raise self._refusal(node, None, refusals.COLLATION)
        self._expressions += [(child, function, False) for child in children]

    def _check_cast(self, node: Any) -> None:
        """Refuse a cast of text to a time if the text may be the word "now" or a time of day.

        Spark reads a time of day as one of the current day.
        """
        child, target = node.child(), type_of(node)
        if type_of(child).startswith("string") and child.foldable() and not _contains_clock(child):
            value = child.eval(None) if target in ("timestamp", "timestamp_ntz", "date") else None
            if value is not None and refusals.CLOCK_TEXT.match(str(value.toString())):
                raise self._refusal(node, f"'{value.toString()}' as a time", refusals.CLOCK)
        elif reads_timestamps(child.dataType(), node.dataType()):
            raise self._refusal(node, "a text as a timestamp", refusals.TIME_OF_TEXT)

    def _check_parser(self, node: Any) -> None:
        has_format = short_name(node) != "variant.VariantGet" and (
            "timestampformat" in str(node.options().keys().mkString(" ")).lower()
        )
        if contains_timestamp(node.dataType()) and not has_format:
            raise self._refusal(node, None, refusals.TIME_OF_TEXT)

    def _check_collation(self, node: Any) -> None:
        """Refuse a collation that the text of the view does not name, since the planner knows the text alone."""
        if not has_collation(tokens_of(self._view.definition.sql, self._view.definition.file)):
            raise self._refusal(node, None, refusals.HIDDEN_COLLATION)

    def _below(self, node: Any, is_replaceable: bool) -> Iterator[Any]:
        yield from each_of(node.children())
        if is_replaceable:
            yield node.replacement()

    def _traits_of(self, node: Any) -> tuple[bool, bool]:
        """Whether Spark replaces expressions of this class by others, and whether they hold a query."""
        name = class_of(node)
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


def _is_collated(node: Any) -> bool:
    """Whether different texts of the expression's type may be equal. The columns of tables never have such a type."""
    return "string collate " in type_of(node).lower()


def _is_ordered(limit: Any) -> bool:
    node = limit
    while operator_name(node) in KEEPS_ORDER:
        node = node.children().apply(0)
    return operator_name(node) == "Sort" and bool(getattr(node, "global")())


def _contains_clock(node: Any) -> bool:
    """Whether a constant expression depends on the clock or the session, so that it cannot be evaluated here."""
    pending = [node]
    while pending:
        found = pending.pop()
        if short_name(found) in REFUSED_EXPRESSIONS:
            return True
        pending += each_of(found.children())
    return False

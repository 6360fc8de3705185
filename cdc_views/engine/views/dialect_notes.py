"""Where a view means something else in Postgres: found in Spark's analysed plan, where types and defaults are known.

What the differences are is in plan/dialect.py. A difference is looked for only where it can change rows: an ORDER BY
that decides nothing has no note.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from cdc_views.engine.views.plan_tree import AnalysedPlan, Node
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.dialect import DIFFERENCES, Note

Rule = Callable[[AnalysedPlan, Node], str | None]  # the name of the difference that a node shows

_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_FLOATS: Final = frozenset({"float", "double"})
_ROUNDED: Final = frozenset({"Rint", "Round", "BRound", "RoundFloor", "RoundCeil", "Floor", "Ceil"})
_SELECTING: Final = frozenset({"GlobalLimit", "LocalLimit", "Offset"})
_SHOWN: Final = 80


def notes(view: CompiledView, plan: AnalysedPlan, relations: Mapping[str, str]) -> list[Note]:
    """The differences between the engines that a view uses, in the order of its text, each place once."""
    found: dict[tuple[tuple[int, int], str], Note] = {}
    for node, name in _differences(plan):
        span = plan.span(node)
        if span is not None and (span, name) not in found:
            place, fragment = view.fragment(relations, span)
            if not fragment:
                continue  # an order that was completed by a key
            text = " ".join(fragment.split())
            found[span, name] = Note(place, text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...", DIFFERENCES[name])
    return [found[key] for key in sorted(found)]


def _differences(plan: AnalysedPlan) -> Iterator[tuple[Node, str]]:
    named = (node for node in plan.root.walk() if node.name in ("AttributeReference", "Alias"))
    names = {node.fields["name"].lower() for node in named}
    for node in plan.root.walk():
        for rule in _RULES.get(node.name, ()):
            if (name := rule(plan, node)) is not None:
                yield node, name
        if node.name == "Literal" and node.fields["dataType"] == "string":
            yield from _of_literal(plan, node, names)


def _of_literal(plan: AnalysedPlan, node: Node, names: set[str]) -> Iterator[tuple[Node, str]]:
    text = plan.text(node)
    if text[:1] in ("'", '"') and re.search(r"(?<!\\)(\\\\)*\\(?![\\%_'\"])", text[1:-1]):
        yield node, "backslash"
    # Another text in double quotes is an error in Postgres, and no other answer.
    if text[:1] == '"' and text[1:-1].lower() in names:
        yield node, "double quotes"


def _null_order(plan: AnalysedPlan, node: Node) -> str | None:
    is_default = not re.search(r"\bNULLS\s+(FIRST|LAST)\s*$", plan.text(node), re.IGNORECASE)
    return "null order" if is_default and _decides(node) and plan.is_nullable(node.children[0]) else None


def _text_order(plan: AnalysedPlan, node: Node) -> str | None:
    if node.name == "SortOrder" and not _decides(node):
        return None
    return "order of text" if plan.data_type(node.children[0]) == "string" else None


def _decides(order: Node) -> bool:
    """Whether an ORDER BY decides which rows there are, or what is in them."""
    above = order.parent
    if above is None or above.name != "Sort":
        return True
    while above.parent is not None and above.parent.name in ("Project", "Sort", "SubqueryAlias"):
        above = above.parent
    return above.parent is not None and above.parent.name in _SELECTING


def _inner(plan: AnalysedPlan, node: Node) -> Node:
    """An operand as it was written, without the casts that Spark adds."""
    while node.name == "Cast" and not plan.is_written_cast(node):
        node = node.children[0]
    return node


def _division(plan: AnalysedPlan, node: Node) -> str | None:
    types = [plan.data_type(_inner(plan, child)) for child in node.children]
    if all(type_ in _INTEGERS for type_ in types):
        return "integer division"
    return "digits of a quotient" if plan.data_type(node).startswith("decimal") else None


def _product(plan: AnalysedPlan, node: Node) -> str | None:
    types = [_decimal(plan.data_type(part)) for part in (node, *node.children)]
    if None in types:
        return None
    result, left, right = (type_ or (0, 0) for type_ in types)
    return "digits of a product" if result[1] < left[1] + right[1] else None


def _decimal(type_: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(found[1]), int(found[2])) if found else None


def _cast(plan: AnalysedPlan, node: Node) -> str | None:
    if not plan.is_written_cast(node):
        return None
    given, made, text = plan.data_type(node.children[0]), plan.data_type(node), plan.text(node)
    if node.children[0].name in _ROUNDED:
        return None
    is_fraction = given in _FLOATS or (given.startswith("decimal") and not given.endswith(",0)"))
    if made in _INTEGERS and is_fraction:
        return "cast to integer"
    if made == "decimal(10,0)" and re.search(r"\b(DECIMAL|DEC|NUMERIC)\s*\)?\s*$", text, re.IGNORECASE):
        return "decimal without digits"
    if made == "float" and re.search(r"\bFLOAT\s*\)?\s*$", text, re.IGNORECASE):
        return "float"
    if made == "string" and re.search(r"\b(VAR)?CHAR(ACTER)?\s*\(\s*\d+\s*\)\s*\)?\s*$", text, re.IGNORECASE):
        return "length in a cast"
    return "numbers as text" if made == "string" and given in _FLOATS else None


def _concat(plan: AnalysedPlan, node: Node) -> str | None:
    is_call = re.match(r"concat\s*\(", plan.text(node), re.IGNORECASE) is not None
    return "concat of NULL" if is_call and any(map(plan.is_nullable, node.children)) else None


def _substring(plan: AnalysedPlan, node: Node) -> str | None:
    start = _inner(plan, node.children[1])
    is_negative = start.name == "UnaryMinus" or (
        start.name == "Literal" and str(start.fields["value"]).lstrip("-").isdigit() and int(start.fields["value"]) <= 0
    )
    return "substring" if is_negative else None


def _average(plan: AnalysedPlan, node: Node) -> str | None:
    return "avg of integers" if plan.data_type(_inner(plan, node.children[0])) in _INTEGERS else None


def _rounding(plan: AnalysedPlan, node: Node) -> str | None:
    return "rounding of floats" if plan.data_type(node.children[0]) in _FLOATS else None


def _logarithm(plan: AnalysedPlan, node: Node) -> str | None:
    return "log" if node.children[0].name == "EulerNumber" else None


def _power(plan: AnalysedPlan, node: Node) -> str | None:
    return "power" if "^" in plan.text(node) else None


def _day_of_week(plan: AnalysedPlan, node: Node) -> str | None:
    above = node.parent
    while above is not None and (above.name == "Cast" or "replacement" in above.fields):
        above = above.parent
    is_counted_from_0 = above is not None and above.name == "Subtract" and above.children[1].fields.get("value") == "1"
    return None if is_counted_from_0 else "day of week"


def _always(name: str) -> Rule:
    return lambda plan, node: name


_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "SortOrder": (_null_order, _text_order),
    **dict.fromkeys(
        ("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Max", "Min", "Greatest", "Least"),
        (_text_order,),
    ),
    "Divide": (_division,),
    "Multiply": (_product,),
    "Cast": (_cast,),
    "Concat": (_concat,),
    "Substring": (_substring,),
    "Average": (_average,),
    "Round": (_rounding,),
    "Logarithm": (_logarithm,),
    "BitwiseXor": (_power,),
    "DayOfWeek": (_day_of_week,),
    "GetArrayItem": (_always("array index"),),
    "InitCap": (_always("initcap"),),
    "RegExpReplace": (_always("regexp_replace"),),
    "SortArray": (_always("order in arrays"),),
}

"""From the arguments of an expression to its value: what each operation does with tracked text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from cdc_views.engine.views.analysis.plan_tree import AnalysedPlan, Node
from cdc_views.engine.views.analysis.texts.functions import (
    CAST_FUNCTION,
    COMPARISONS,
    EQUALITIES,
    FIRST_OF,
    LAMBDAS,
    NO_VALUE,
    ONE_OF,
    ORDERINGS,
    RANKS,
    READERS,
    SAME,
    may_read,
)
from cdc_views.engine.views.analysis.texts.tags import Elements, Fields, Text, first_text
from cdc_views.engine.views.analysis.texts.values import (
    OTHER,
    UNKNOWN,
    TextProblem,
    Value,
    accepted,
    element_of,
    first_problem,
    merged,
    unequal,
    unordered,
)

_RETURN_OTHER: Final = NO_VALUE | EQUALITIES | COMPARISONS | RANKS | {"WindowSpecDefinition"}


class PlanExpressions:
    """The expressions of one plan. `values` holds what is known of every attribute met so far."""

    def __init__(self, plan: AnalysedPlan, subquery_outputs: Callable[[Node], list[int]]) -> None:
        """`subquery_outputs` returns the attributes of an expression's subquery."""
        self._plan = plan
        self._subquery_outputs = subquery_outputs
        self.values: dict[int, Value] = {}
        self._common: dict[str, Value] = {}
        self._of: dict[int, Value] = {}  # by id() of the node

    def value_of(self, node: Node) -> Value:
        """What is known of an expression that was checked."""
        return self._of[id(node)]

    def checked(self, root: Node) -> Value:
        """The value of a plan operator's expression. Raises ProblemFound.

        This is a loop and not a recursion, since a long condition is a deep tree.
        """
        pending: list[tuple[Node, bool]] = [(root, False)]
        while pending:
            node, is_left = pending.pop()
            if is_left:
                self._leave(node)
                continue
            pending.append((node, True))
            # The definitions of a With come after its body, and the body uses them.
            below = node.children if node.name == "With" else list(reversed(node.children))
            pending += [(child, False) for child in below]
        return accepted(self._of[id(root)])

    def _leave(self, node: Node) -> None:
        given = [self._of[id(child)] for child in node.children]
        value = self._value(node, given)
        self._of[id(node)] = value
        above = node.parent
        if node.name == "Alias":
            self.values[node.expr_id] = value
        elif node.name == "CommonExpressionDef":
            self._common[str(node.fields["id"])] = value
        if above is not None and above.name in LAMBDAS and node is above.children[0]:
            self._bind(above, value)

    def _bind(self, function: Node, argument: Value) -> None:
        """Give the variables of a lambda the tag of the array's elements."""
        if isinstance(argument.tag, Elements):
            variables = [node for node in function.children[1].children[1:] if node.name == "NamedLambdaVariable"]
            for variable in variables if function.name == "ArraySort" else variables[:1]:
                self.values[variable.expr_id] = Value(argument.tag.of)

    def _value(self, node: Node, given: list[Value]) -> Value:
        name = node.name
        if name in ("AttributeReference", "NamedLambdaVariable"):
            return self.values.get(node.expr_id, OTHER)
        if name == "OuterReference":
            return self.values.get(_outer_id(node), OTHER)
        if name == "Literal":
            value = node.fields["value"]
            return Value(literal=None if value is None else str(value), is_null=value is None)
        if name == "CommonExpressionRef":
            return self._common.get(str(node.fields["id"]), OTHER)
        if node.plan is not None:
            return self._of_subquery(node, given)
        tags = [value.tag for value in given if value.tag is not None]
        texts = list(map(first_text, tags))
        if name in READERS:
            return self._of_reader(node, given, texts)
        if problem := next((value.problem for value in given if value.problem), None):
            return Value(problem=problem)
        if name == "Cast":
            return self._cast(node, given[0])
        if name == "AggregateExpression" and node.fields["isDistinct"]:
            arguments = [self._of[id(child)] for child in node.children[0].children]
            if problem := first_problem(unequal(node, [argument]) for argument in arguments):
                return Value(problem=problem)
        if not tags:
            return given[0] if name in SAME else OTHER
        return self._of_operation(node, given, texts)

    def _of_operation(self, node: Node, given: list[Value], texts: Sequence[Text]) -> Value:
        """The value of an operation on at least one tagged value."""
        name = node.name
        problem = None
        if name in ORDERINGS:
            problem = unordered(node, given)
        elif name == "InSubquery":
            wanted = [self.values.get(output, OTHER) for output in self._subquery_outputs(node.children[-1])]
            pairs = zip(given[:-1], wanted, strict=True)
            problem = first_problem(unequal(node, [value, replace(other, literal=None)]) for value, other in pairs)
        elif name in EQUALITIES:
            problem = unequal(node, [element_of(given[0]), *given[1:]] if name == "ArrayContains" else given)
        elif name == "SortOrder":
            problem = unordered(node, given)
        elif name in ("CollectSet", "Mode"):
            problem = unequal(node, given[:1])
        elif name in ("MaxBy", "MinBy"):
            problem = unordered(node, given[1:])
        elif name in RANKS:
            problem = first_problem(unordered(node, [value]) for value in given)
        elif name == "WindowSpecDefinition":
            parts = (value for value, child in zip(given, node.children, strict=True) if child.name != "SortOrder")
            problem = first_problem(unequal(node, [value]) for value in parts)
        if problem is not None:
            return Value(problem=problem)
        if name in _RETURN_OTHER:
            return OTHER
        return self._passed_on(node, given, texts)

    def _passed_on(self, node: Node, given: list[Value], texts: Sequence[Text]) -> Value:
        """The value of an operation that returns its arguments, whole or in parts."""
        name, first = node.name, given[0]
        match name, first.tag:
            case _ if name in SAME or name in FIRST_OF or name in ("SortOrder", "MaxBy", "MinBy", "Mode"):
                return replace(first, literal=None) if name != "Alias" else first
            case (
                "AggregateExpression" | "Max" | "Min" | "SortArray" | "LambdaFunction" | "With" | "FilterExpression",
                _,
            ):
                return first
            case _ if name in ONE_OF or name == "CreateArray":
                one = merged(node, given if name not in ("Lag", "Lead") else [given[0], *given[2:]])
                return Value(Elements(one.tag)) if name == "CreateArray" and one.tag is not None else one
            case "If", _:
                return merged(node, given[1:])
            case "CaseWhen", _:
                results = given[1::2] if len(given) % 2 == 0 else [*given[1::2], given[-1]]
                return merged(node, results)
            case (("CollectList" | "CollectSet"), Text() | Elements() | Fields()):
                return Value(Elements(first.tag))
            case "CreateNamedStruct", _:
                return Value(Fields(tuple(value.tag for value in given[1::2])))
            case "GetStructField", Fields(tags):
                return Value(tags[int(node.fields["ordinal"])])
            case (("GetArrayItem" | "ElementAt"), Elements(of)):
                return Value(of)
            case "GetArrayStructFields", Elements(Fields(tags)):
                tag = tags[int(node.fields["ordinal"])]
                return OTHER if tag is None else Value(Elements(tag))
            case (("ArrayFilter" | "ArraySort" | "Slice"), Elements()):
                return first
            case "ArrayTransform", _:
                tag = given[1].tag
                return OTHER if tag is None else Value(Elements(tag))
            case (("ArrayExists" | "ArrayForAll"), _):
                return OTHER
            case _ if "replacement" in node.fields and len(given) == 1:
                return first
        return Value(problem=TextProblem(node, texts[0], UNKNOWN))

    def _of_subquery(self, node: Node, given: Sequence[Value]) -> Value:
        outputs = self._subquery_outputs(node)
        values = [self.values.get(output, OTHER) for output in outputs]
        if node.name in ("ScalarSubquery", "ListQuery") and values:
            return replace(values[0], literal=None, is_null=False)
        return OTHER

    def _of_reader(self, node: Node, given: Sequence[Value], texts: Sequence[Text]) -> Value:
        """The value of a function that reads texts.

        Spark may have replaced the function by an inner expression, which is not known here: what is unknown inside is
        judged by the function that the view calls.
        """
        if node.name == "Concat" and any(isinstance(value.tag, Elements) for value in given):
            return merged(node, given)
        problems = [value.problem for value in given if value.problem is not None]
        is_replaced = "replacement" in node.fields
        if problem := next((each for each in problems if not is_replaced or each.why != UNKNOWN), None):
            return Value(problem=problem)
        for text in (*texts, *(problem.text for problem in problems)):
            if not may_read(node.name, text.type):
                return Value(problem=TextProblem(node, text, "reads its text, where Postgres reads something else"))
        return OTHER

    def _cast(self, node: Node, given: Value) -> Value:
        if given.tag is None:
            return replace(given, tag=None)
        text = first_text(given.tag)
        to = node.fields["dataType"]
        kind = to if isinstance(to, str) else str(to.get("type"))
        if not self._is_written(node):
            if kind == "string" or (kind == "array" and isinstance(given.tag, Elements)):
                return given
            return Value(problem=TextProblem(node, text, f"makes Spark cast it to {kind}"))
        reason = text.type.unsafe_casts.get(kind.partition("(")[0])
        if reason:
            return Value(problem=TextProblem(node, text, f"casts the text: {reason}"))
        return OTHER

    def _is_written(self, node: Node) -> bool:
        """Whether the view itself casts: by CAST, ::, or a function like double(x)."""
        return self._plan.is_written_cast(node) or CAST_FUNCTION.match(self._plan.text(node)) is not None


def _outer_id(node: Node) -> int:
    inner = node.fields["e"][0]
    return int(inner["exprId"]["id"]) if "exprId" in inner else -1

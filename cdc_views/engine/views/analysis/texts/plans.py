"""From the inputs of a plan operator to its outputs: which attributes hold tracked text.

Attributes are identified by Spark's numbers for them, so renaming and scopes need no care.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cdc_views.engine.views.analysis.plan_tree import AnalysedPlan, Node
from cdc_views.engine.views.analysis.texts.expressions import PlanExpressions
from cdc_views.engine.views.analysis.texts.functions import OF_JSON
from cdc_views.engine.views.analysis.texts.tags import Elements, Fields, Tag, TextColumns, first_text
from cdc_views.engine.views.analysis.texts.values import (
    OTHER,
    UNKNOWN,
    ProblemFound,
    TextProblem,
    Value,
    accepted,
    merged,
    require_equality,
)

_THROUGH: Final = frozenset(
    {"Filter", "Sort", "GlobalLimit", "LocalLimit", "Offset", "SubqueryAlias", "View", "ResolvedHint", "Window",
     "WithWindowDefinition", "Sample", "CTERelationDef", "Distinct", "Deduplicate"}
)  # fmt: skip
_LEAVES: Final = frozenset({"LocalRelation", "LogicalRDD", "Range", "OneRowRelation", "LogicalRelation"})
_ONCE: Final = "takes equal values once"


class Plans:
    """One walk over a plan, children first. `values` holds what is known of every attribute met so far."""

    def __init__(self, plan: AnalysedPlan, relations: Mapping[str, TextColumns]) -> None:
        """`relations` maps the names of relations in the plan to their text columns."""
        self._relations = relations
        self._expressions = PlanExpressions(plan, self._subquery_outputs)
        self.values = self._expressions.values
        # The outputs of CTEs and recursions by their number, and of subqueries by id() of the node.
        self._queries: dict[tuple[str, int], list[int]] = {}

    def outputs(self, node: Node) -> list[int]:
        """The numbers of the attributes that an operator returns. Raises ProblemFound."""
        below = []
        for number, child in enumerate(node.children):
            below.append(self.outputs(child))
            if node.name == "UnionLoop" and number == 0:
                self._queries["loop", int(node.fields["id"])] = below[0]
        values = []
        for expression in node.expressions:
            if node.name == "Generate" and expression is node.expressions[0]:
                for argument in expression.children:
                    self._expressions.checked(argument)
            else:
                values.append(self._expressions.checked(expression))
        return self._outputs(node, below, values)

    def _outputs(self, node: Node, below: Sequence[list[int]], values: Sequence[Value]) -> list[int]:
        name = node.name
        if name in _LEAVES:
            return node.ids("output") if "output" in node.fields else []
        if name in ("Project", "Aggregate"):
            groups = len(node.fields.get("groupingExpressions") or ())
            for value in values[:groups]:
                require_equality(node, [value], "groups by it")
            return [expression.expr_id for expression in node.expressions[groups:]]
        if name == "Join":
            is_semi = any(kind in str(node.fields["joinType"]) for kind in ("LeftSemi", "LeftAnti"))
            return below[0] if is_semi else [*below[0], *below[1]]
        if name in _THROUGH:
            return self._through(node, below[0])
        if name == "Generate":
            return self._generated(node, below[0])
        if name == "Expand":
            return self._expanded(node)
        if name in ("Union", "Intersect", "Except"):
            return self._united(node, below)
        if name in ("UnionLoop", "UnionLoopRef", "WithCTE", "CTERelationRef"):
            return self._of_query(node, below)
        if name == "LateralJoin" and node.expressions[0].plan is not None:
            return [*below[0], *self._subquery_outputs(node.expressions[0])]
        self._require_untagged(node, below)
        return []

    def _through(self, node: Node, below: list[int]) -> list[int]:
        if node.name == "SubqueryAlias":
            tags = self._relations.get(node.fields["identifier"].get("name"), {})
            for tag, output in zip(self._tags_of(node, tags), below, strict=True) if tags else ():
                self.values[output] = Value(tag)
        elif node.name == "CTERelationDef":
            self._queries["cte", int(node.fields["id"])] = below
        elif node.name == "Window":
            for partition in (e for e in node.expressions if e.name not in ("Alias", "SortOrder")):
                require_equality(partition, [self._expressions.value_of(partition)], "groups by it")
            return [*below, *(expression.expr_id for expression in node.expressions if expression.name == "Alias")]
        elif node.name == "Distinct":
            for output in below:
                require_equality(node, [self.values.get(output, OTHER)], _ONCE)
        elif node.name == "Deduplicate":
            for expression in node.expressions:
                require_equality(node, [self._expressions.value_of(expression)], _ONCE)
        return below

    def _tags_of(self, node: Node, tags: TextColumns) -> list[Tag | None]:
        """The tags of an input's columns, in the order in which its relation has them."""
        relation = node
        while relation.name not in _LEAVES:
            relation = relation.children[0]
        return [tags.get(column[0]["name"]) for column in relation.fields["output"]]

    def _generated(self, node: Node, below: list[int]) -> list[int]:
        generator = node.expressions[0]
        outputs = node.ids("generatorOutput")
        given = [self._expressions.value_of(child).tag for child in generator.children]
        tags: list[Tag | None] = [None] * len(outputs)
        match generator.name, given:
            case "Explode" | "ExplodeOuter", [Elements(of)]:
                tags = [of]
            case "PosExplode", [Elements(of)]:
                tags = [None, of]
            case "Inline", [Elements(Fields(inner))]:
                tags = list(inner)
            case _ if (text := next((first_text(tag) for tag in given if tag is not None), None)) is not None:
                if generator.name not in OF_JSON or "json" not in text.type.name:
                    raise ProblemFound(TextProblem(generator, text, UNKNOWN))
        self.values |= {output: Value(tag) for output, tag in zip(outputs, tags, strict=True)}
        dropped = set(node.fields["unrequiredChildIndex"])
        return [*(output for number, output in enumerate(below) if number not in dropped), *outputs]

    def _expanded(self, node: Node) -> list[int]:
        outputs, rows = node.ids("output"), len(node.fields["projections"])
        width = len(node.expressions) // max(rows, 1) if rows else 0
        expressions = node.expressions[: rows * width]
        for number, output in enumerate(outputs):
            column = [self._expressions.value_of(expressions[row * len(outputs) + number]) for row in range(rows)]
            self.values[output] = accepted(merged(node, column))
        return outputs

    def _united(self, node: Node, below: Sequence[list[int]]) -> list[int]:
        for column in zip(*below, strict=True):
            values = [self.values.get(output, OTHER) for output in column]
            if node.name != "Union":
                require_equality(node, values, "compares it")
            self.values[column[0]] = accepted(merged(node, values))
        return below[0]

    def _of_query(self, node: Node, below: Sequence[list[int]]) -> list[int]:
        """The outputs of a CTE or a recursion, where it is defined and where it is used."""
        if node.name == "WithCTE":
            return below[-1]
        if node.name == "UnionLoop":
            self._united(replace(node, name="Union"), below)
            outputs = [int(item["id"]) for item in node.fields["outputAttrIds"]]
            made = below[0]
        else:
            outputs = node.ids("output")
            made = self._queries[
                ("cte", int(node.fields["cteId"]))
                if node.name == "CTERelationRef"
                else ("loop", int(node.fields["loopId"]))
            ]
        self.values |= {output: self.values.get(of, OTHER) for output, of in zip(outputs, made, strict=True)}
        return outputs

    def _require_untagged(self, node: Node, below: Iterable[list[int]]) -> None:
        """Refuse an operator that is not known here, if tracked text goes into it."""
        for output in (output for outputs in below for output in outputs):
            tag = self.values.get(output, OTHER).tag
            if tag is not None:
                raise ProblemFound(TextProblem(node, first_text(tag), UNKNOWN))

    def _subquery_outputs(self, expression: Node) -> list[int]:
        """The outputs of an expression's subquery, which is walked once."""
        assert expression.plan is not None
        key = "subquery", id(expression)
        if key not in self._queries:
            self._queries[key] = self.outputs(expression.plan)
        return self._queries[key]

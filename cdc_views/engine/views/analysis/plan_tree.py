"""Spark's analysed plan of a query as a tree of Python objects.

One call to the JVM fetches the whole plan as JSON, since thousands of small calls would take seconds. JSON lacks the
place of a node in the SQL text, the type of an expression, and its tags; the JVM is asked for those node by node.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

Step = tuple[str, int]  # from a node to one below it: the JVM method that returns the nodes below, and the index


@dataclass(eq=False, repr=False)
class Node:
    """A node of the plan or of an expression: the short name of its class, and the values of its constructor.

    `expressions` are those of a plan node, in Spark's order. `plan` is the plan of a subquery.
    """

    name: str
    fields: dict[str, Any]
    step: Step
    parent: Node | None
    children: list[Node] = field(default_factory=list)
    expressions: list[Node] = field(default_factory=list)
    plan: Node | None = None

    @property
    def expr_id(self) -> int:
        """The number of the attribute that the expression refers to or defines; -1 if there is none."""
        return _expr_id(self.fields.get("exprId"))

    def ids(self, name: str) -> list[int]:
        """The numbers in a field that holds attributes or their numbers."""
        return [_expr_id(item if isinstance(item, dict) else item[0].get("exprId")) for item in self.fields[name] or ()]

    def walk(self) -> Iterator[Node]:
        """This node and all nodes below it, including subqueries and their plans; parents first."""
        pending = [self]
        while pending:
            node = pending.pop()
            yield node
            below = [*node.expressions, *node.children, *([node.plan] if node.plan is not None else [])]
            pending.extend(reversed(below))


def _expr_id(value: Any) -> int:
    return int(value["id"]) if isinstance(value, dict) and "id" in value else -1


class AnalysedPlan:
    """The analysed plan of a query, and further facts about its nodes from the JVM."""

    def __init__(self, frame: DataFrame) -> None:
        self._jvm: Any = frame.sparkSession._jvm
        self._plan: Any = frame._jdf.queryExecution().analyzed()
        self.root = _plan_tree(json.loads(self._plan.toJSON()), ("root", 0), None)

    def span(self, node: Node) -> tuple[int, int] | None:
        """Start and end (exclusive) of a node's SQL text, or of the nearest node above with a text.

        None if no node has one.
        """
        at: Node | None = node
        while at is not None:
            origin = self._of(at).origin()
            if origin.startIndex().isDefined() and origin.stopIndex().isDefined():
                return int(origin.startIndex().get()), int(origin.stopIndex().get()) + 1
            at = at.parent
        return None

    def text(self, node: Node) -> str:
        """The SQL text of a node; empty if the node has none of its own."""
        origin = self._of(node).origin()
        if not (origin.startIndex().isDefined() and origin.sqlText().isDefined()):
            return ""
        return str(origin.sqlText().get())[origin.startIndex().get() : origin.stopIndex().get() + 1]

    def data_type(self, node: Node) -> str:
        """The type of an expression, as Spark's simple string."""
        return str(self._of(node).dataType().simpleString())

    def is_nullable(self, node: Node) -> bool:
        """Whether an expression may be NULL, by Spark's analysis."""
        return bool(self._of(node).nullable())

    def is_written_cast(self, node: Node) -> bool:
        """Whether a cast is written in the SQL as CAST, TRY_CAST or ::, rather than added by Spark."""
        tag = self._jvm.org.apache.spark.sql.catalyst.expressions.Cast.USER_SPECIFIED_CAST()
        return bool(self._of(node).getTagValue(tag).isDefined())

    def _of(self, node: Node) -> Any:
        """The JVM object of a node."""
        path = []
        at: Node | None = node
        while at is not None and at.parent is not None:
            path.append(at.step)
            at = at.parent
        found = self._plan
        for how, number in reversed(path):
            found = found.plan() if how == "plan" else getattr(found, how)().apply(number)
        return found


def _plan_tree(flat: list[dict[str, Any]], step: Step, parent: Node | None) -> Node:
    return _TreeReader(flat, is_plan=True).read(step, parent)


class _TreeReader:
    """Builds a tree from a list of nodes, parents first, each with the number of its children."""

    def __init__(self, flat: list[dict[str, Any]], *, is_plan: bool) -> None:
        self._flat = flat
        self._is_plan = is_plan

    def read(self, step: Step, parent: Node | None) -> Node:
        root = Node("", {}, step, parent)
        open_: list[tuple[Node, int]] = []  # nodes whose children are still to come, and how many
        for number, fields in enumerate(self._flat):
            if number == 0:
                node = root
                node.name, node.fields = _short(fields), fields
            else:
                above, lacking = open_.pop()
                node = Node(_short(fields), fields, ("children", len(above.children)), above)
                above.children.append(node)
                if lacking > 1:
                    open_.append((above, lacking - 1))
            if fields["num-children"]:
                open_.append((node, fields["num-children"]))
            self._add_inner(node)
        return root

    def _add_inner(self, node: Node) -> None:
        if self._is_plan:
            for flat in _expressions(node.fields):
                step = ("expressions", len(node.expressions))
                node.expressions.append(_TreeReader(flat, is_plan=False).read(step, node))
        elif (plan := node.fields.get("plan")) is not None and _is_tree(plan) and not _is_expression(plan):
            node.plan = _plan_tree(plan, ("plan", 0), node)


def _short(fields: dict[str, Any]) -> str:
    return str(fields["class"]).rpartition(".")[2]


def _is_tree(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "class" in value[0]


def _is_expression(tree: list[dict[str, Any]]) -> bool:
    return ".plans." not in tree[0]["class"] and ".execution." not in tree[0]["class"]


def _expressions(fields: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    """The expressions among the values of a plan node, in order."""
    pending = list(reversed(list(fields.values())))
    while pending:
        value = pending.pop()
        if _is_tree(value):
            if _is_expression(value):
                yield value
        elif isinstance(value, list):
            pending.extend(reversed(value))

"""What is known of the value of an expression, and which comparisons of values are refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cdc_views.engine.views.analysis.plan_tree import Node
from cdc_views.engine.views.analysis.texts.tags import Elements, Tag, Text, first_text, kind_of, texts_of

UNKNOWN: Final = "does something with it that is not known to answer as Postgres does"


@dataclass(frozen=True)
class TextProblem:
    """An operation that is refused: the node that does it, the text that it does it to, and the reason."""

    node: Node
    text: Text
    why: str


class ProblemFound(Exception):
    """Ends the walk over a plan at the first problem."""

    def __init__(self, problem: TextProblem) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass(frozen=True)
class Value:
    """The tag of an expression, its text if it is a literal, whether it is NULL, and a problem in its arguments.

    A problem is carried upwards before it is raised, since a function above may make it harmless.
    """

    tag: Tag | None = None
    literal: str | None = None
    is_null: bool = False
    problem: TextProblem | None = None


OTHER: Final = Value()
"""A value that holds no tracked text."""


def accepted(value: Value) -> Value:
    """Return the value. Raises ProblemFound if it has a problem."""
    if value.problem is not None:
        raise ProblemFound(value.problem)
    return value


def require_equality(node: Node, values: Iterable[Value], doing: str) -> None:
    """Raise ProblemFound if equal values of a type may have different texts; `doing` says what the node does."""
    for value in values:
        for text in texts_of(value.tag):
            if not text.type.equal:
                raise ProblemFound(TextProblem(node, text, f"{doing}: {text.type.unequal}"))


def first_problem(problems: Iterable[TextProblem | None]) -> TextProblem | None:
    """The first of these that is a problem."""
    return next((problem for problem in problems if problem is not None), None)


def element_of(value: Value) -> Value:
    """The elements of an array; any other value is returned unchanged."""
    return replace(value, tag=value.tag.of) if isinstance(value.tag, Elements) else value


def unequal(node: Node, values: Sequence[Value]) -> TextProblem | None:
    """Why the values cannot be compared for equality by their texts; None if they can."""
    for value in values:
        for text in texts_of(value.tag):
            if not text.type.equal:
                return TextProblem(node, text, f"compares it: {text.type.unequal}")
    return _mixed(node, values)


def unordered(node: Node, values: Sequence[Value]) -> TextProblem | None:
    """Why the values cannot be ordered by their texts; None if they can."""
    for value in values:
        for text in texts_of(value.tag):
            if not text.type.ordered:
                return TextProblem(node, text, f"orders it: {text.type.unordered}")
    if node.name == "SortArray":
        return None
    return _mixed(node, values)


def _mixed(node: Node, values: Sequence[Value]) -> TextProblem | None:
    tag = next((value.tag for value in values if value.tag is not None), None)
    if tag is None:
        return None
    text = first_text(tag)
    for value in values:
        if value.is_null or (value.tag is not None and kind_of(value.tag) == kind_of(tag)):
            continue
        if value.literal is None or value.tag is not None:
            return TextProblem(node, text, "compares it with values of another type")
        if not text.type.is_canonical(value.literal):
            return TextProblem(node, text, "compares it with a literal that Postgres prints in another form")
    return None


def merged(node: Node, values: Sequence[Value]) -> Value:
    """What is known of a result that is one of several values.

    They must be NULL, of one type, or literals as Postgres prints values of that type; else the result has a problem.
    """
    if problem := first_problem(value.problem for value in values):
        return Value(problem=problem)
    tags = [value.tag for value in values if value.tag is not None]
    if not tags:
        return replace(values[0], literal=None) if len(values) == 1 else OTHER
    text = first_text(tags[0])
    for value in values:
        if value.is_null or (value.tag is not None and kind_of(value.tag) == kind_of(tags[0])):
            continue
        if value.tag is None and value.literal is not None and text.type.is_canonical(value.literal):
            continue
        return Value(problem=TextProblem(node, text, "mixes it with values of another type"))
    return Value(tags[0])

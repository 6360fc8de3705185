"""Plans of Spark as the JVM's own objects, reached through py4j: names, children and types of their nodes.

Each access is a call into the JVM. engine/views/analysis/plan_tree.py has a whole plan in one call, but fewer facts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

BUILT_IN: Final = "org.apache.spark.sql.catalyst.expressions."
LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical."


def class_of(node: Any) -> str:
    """The full name of a node's class."""
    return str(node.getClass().getName())


def operator_name(node: Any) -> str:
    """The short name of an operator's class, or the full name if it is not one of Spark's logical operators."""
    return class_of(node).removeprefix(LOGICAL)


def short_name(node: Any) -> str:
    """The short name of an expression's class, or the full name if it is not one of Spark's built-in ones."""
    return class_of(node).removeprefix(BUILT_IN).removeprefix("aggregate.")


def each_of(found: Any) -> Iterator[Any]:
    """The elements of a Scala Seq or Option."""
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def type_of(node: Any) -> str:
    """The type of an expression, as Spark's simple string."""
    return str(node.dataType().simpleString())

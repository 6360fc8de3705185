"""A named shape of views: one or more views, and the strategy that `explain` must show for each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from cdc_views.testing import Explanation

Strategy = Literal["FULL", "KEYS", "PATCH", "ADD"]

# The strategies that satisfy a wanted one. PATCH and ADD read less than KEYS, and not one of them is the other.
GOOD_ENOUGH: Final[dict[Strategy, frozenset[str]]] = {
    "FULL": frozenset({"FULL"}),
    "KEYS": frozenset({"KEYS", "PATCH", "ADD"}),
    "PATCH": frozenset({"PATCH"}),
    "ADD": frozenset({"ADD"}),
}


@dataclass(frozen=True)
class View:
    """A view of a shape: its name, its SELECT, and the strategy that it must get.

    A view that must be FULL has in `reason` the words that its explanation must contain, in lower case.
    """

    name: str
    sql: str
    strategy: Strategy = "KEYS"
    reason: str = ""

    @property
    def statement(self) -> str:
        """The statement that declares the view."""
        return f"CREATE MATERIALIZED VIEW {self.name} AS {self.sql}"

    @property
    def reads(self) -> set[str]:
        """The names after FROM and JOIN: its tables and views, and its CTEs."""
        return set(re.findall(r"\b(?:FROM|JOIN) (?!LATERAL)(\w+)", self.sql))

    def is_satisfied_by(self, explanation: Explanation) -> bool:
        """Whether the explained strategy is good enough, and a FULL one has the right reason."""
        return explanation.strategy in GOOD_ENOUGH[self.strategy] and self.reason in explanation.reason.lower()


@dataclass(frozen=True)
class Shape:
    """A shape of the list, with its number there. Shapes that must be FULL for another reason have the number 51.

    A shape without views of its own is about the data: `of` names the views that it means.
    """

    number: int
    name: str
    views: tuple[View, ...]
    of: tuple[str, ...] = ()


def shape(number: int, name: str, sql: str, strategy: Strategy = "KEYS") -> Shape:
    """A shape with one view of the same name."""
    return Shape(number, name, (View(name, sql, strategy),))

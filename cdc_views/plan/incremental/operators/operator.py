"""What every operator of a query says about itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from cdc_views.plan.incremental.columns import Leaf, Origin
from cdc_views.plan.incremental.restrictions import Lookup, Restriction


class Operator(Protocol):
    """An operator of a view's query, with its inputs below it.

    Each operator has the proof of its two rules in the docstring of its module. The rules are about one *version* of
    the leaves, old or new.
    """

    @property
    def leaves(self) -> frozenset[Leaf]:
        """The leaves below it."""
        ...

    def passable(self) -> list[frozenset[Origin]]:
        """The columns by which its output can be restricted with lookups.

        Usually one set, any part of which can be used. Several sets are alternatives: each row of the output must be
        looked for by each of them (a full join).
        """
        ...

    def restrict(self, restrictions: Sequence[Restriction], *, finding: bool = False) -> list[Lookup]:
        """Demand, going down: the lookups, in order, that reduce all leaves below.

        Over the reduced leaves the operator gives exactly those rows that it gives over the whole leaves and that meet
        the restrictions, or a relaxed form of them: some columns, or whole restrictions, may be dropped. With
        `finding` it may give other rows too, but for each row that meets the restrictions the reduced leaves have the
        leaf rows that it came from. Raises NotIncremental.
        """
        ...

    def find(self, leaf: Leaf, needed: Iterable[Origin]) -> list[Lookup]:
        """Keys, going up: given the changed rows of `leaf`, the lookups that find what changes in the output.

        After them, each row of the output that the change adds or removes has its values of the `needed` columns among
        the rows that are found for their leaves. Raises NotIncremental.
        """
        ...


def passes(operator: Operator, origin: Origin) -> bool:
    """Whether the part of a column that is below an operator finds all of its rows, without alternatives."""
    part = frozenset(column for column in origin if column.leaf in operator.leaves)
    alternatives = operator.passable()
    return len(alternatives) == 1 and part in alternatives[0]


def named_leaves(operator: Operator) -> list[Leaf]:
    """The leaves that the text names, in its order."""
    return sorted((leaf for leaf in operator.leaves if not leaf.is_internal), key=lambda leaf: leaf.path)

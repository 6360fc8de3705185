"""Restrictions of an operator's output to some values of its columns, and the lookups that they become."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from cdc_views.plan.incremental.columns import Leaf, LeafColumn, Origin


class NotIncremental(Exception):
    """A query, or a part of it, cannot be maintained by lookups; the message says why, in words for `explain`."""


@dataclass(frozen=True)
class Values:
    """Where the values of a restriction come from: these columns, of the rows that are found for each of some leaves.

    `columns` has one tuple of columns for each leaf, all of the same length; the values are the union. `is_join` says
    that they are compared by a join, in which NULL equals nothing; otherwise NULL is a value like others.
    """

    columns: tuple[tuple[LeafColumn, ...], ...]
    is_join: bool = True


@dataclass(frozen=True)
class Restriction:
    """Only rows whose `columns` have one of `values` are needed, and all of these."""

    columns: tuple[Origin, ...]
    values: Values

    def within(self, leaves: Collection[Leaf]) -> Restriction | None:
        """The part of the restriction that is about these leaves: fewer columns restrict less. None if nothing is."""
        return self._kept([frozenset(each for each in origin if each.leaf in leaves) for origin in self.columns])

    def only(self, columns: Collection[Origin]) -> Restriction | None:
        """The part of the restriction that is about these columns; None if nothing is."""
        return self._kept([origin if origin in columns else frozenset() for origin in self.columns])

    def once(self) -> Restriction:
        """The restriction with each column once: of several values that a column must equal, only the first."""
        repeated = [origin in self.columns[:number] for number, origin in enumerate(self.columns)]
        return (
            self._kept([frozenset() if again else origin for again, origin in zip(repeated, self.columns, strict=True)])
            or self
        )

    def _kept(self, origins: Sequence[Origin]) -> Restriction | None:
        kept = [number for number, origin in enumerate(origins) if origin]
        if not kept:
            return None
        columns = tuple(tuple(each[number] for number in kept) for each in self.values.columns)
        return Restriction(tuple(origins[number] for number in kept), Values(columns, self.values.is_join))


@dataclass(frozen=True)
class Lookup:
    """Find the rows of `leaf` whose `columns` have one of `values`."""

    leaf: Leaf
    columns: tuple[str, ...]
    values: Values


def within(restrictions: Iterable[Restriction], leaves: Collection[Leaf]) -> list[Restriction]:
    """The parts of the restrictions that are about these leaves."""
    return [part for each in restrictions if (part := each.within(leaves)) is not None]


def only(restrictions: Iterable[Restriction], columns: Collection[Origin]) -> list[Restriction]:
    """The parts of the restrictions that are about these columns."""
    return [part for each in restrictions if (part := each.only(columns)) is not None]

"""The smallest and the largest value over all rows, and the number of different ones, beside sums (additive.py).

They are kept in the one row of a view over a linear FROM. So the values over the new rows are those over the old rows,
without those over the rows removed, with those over the rows added: as bags.

Extremes. Let m be the stored maximum, A and R those over the rows added and removed; a minimum is its mirror image.

    If A is at least m, the new maximum is A: every value that stays is at most m.
    If R is below m, or no value is removed, m is no removed value, so it stays: the new maximum is m, if A is below it.
    Otherwise all rows with the value m may have been removed, and only the other rows say which one follows it: FULL.

    SELECT min(price) AS cheapest, max(price) AS dearest FROM products

Different values. A value that no changed row has is among the values of both versions, or of neither. So let V be the
values of the column in the rows added and removed, B the number of those of V that the old rows have, and N the same of
the new rows. The new number is the stored one, minus B, plus N. B and N are those of the query over the rows of each
version that are looked up by V: their values are plain columns of the leaves.

    SELECT count(DISTINCT category_id) AS categories FROM products
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.columns import LeafColumn, is_looked_up
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Values
from cdc_views.plan.incremental.scope import Scope

# Whose values Python orders as Spark does.
_ORDERED: Final = ("int", "decimal128", "date32", "timestamp")


@dataclass(frozen=True)
class Extreme:
    """A column with the smallest or the largest value."""

    name: str
    is_largest: bool


@dataclass(frozen=True)
class Distinct:
    """A column with the number of different values. `columns` has one column of each leaf with these values."""

    name: str
    columns: tuple[LeafColumn, ...]

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The lookups from the changed rows of all leaves to the rows with equal values."""
        values = Values(tuple((column,) for column in self.columns))  # without NULL, which is not counted
        return tuple(Lookup(column.leaf, (column.name,), values) for column in self.columns)


def extreme(name: str, item: exp.Expr, type_: str) -> Extreme | None:
    """The extreme that a column of this Arrow type is; None if it is none. Raises NotIncremental for other types."""
    node = _unfiltered(item)
    if not isinstance(node, exp.Min | exp.Max) or node.expressions:
        return None
    if not type_.startswith(_ORDERED):
        raise NotIncremental(f'column "{name}" is an extreme of type {type_}, wanted a number, a date or a timestamp')
    return Extreme(name, isinstance(node, exp.Max))


def distinct(name: str, item: exp.Expr, scope: Scope, leaves: int) -> Distinct | None:
    """The number of different values of a FROM with `leaves` leaves that a column is; None if it is none.

    Raises NotIncremental if the values are not those of one column of each leaf.
    """
    node = _unfiltered(item)
    if not isinstance(node, exp.Count) or not isinstance(node.this, exp.Distinct):
        return None
    values = node.this.expressions
    column = scope.resolve(values[0]) if len(values) == 1 else None
    origin = sorted(column.origin if column is not None else (), key=lambda each: each.leaf.path)
    if len(origin) != leaves or not all(is_looked_up(each.type) for each in origin):
        raise NotIncremental(f'column "{name}" counts different values that are not those of a column of each table')
    return Distinct(name, tuple(origin))


def split(
    items: Mapping[str, exp.Expr], scope: Scope, columns: Mapping[str, str], leaves: int
) -> tuple[tuple[Extreme, ...], tuple[Distinct, ...], dict[str, exp.Expr]]:
    """The extremes, the numbers of different values, and the other columns. Raises NotIncremental."""
    extremes = {name: found for name, item in items.items() if (found := extreme(name, item, columns[name]))}
    distincts = {name: count for name, item in items.items() if (count := distinct(name, item, scope, leaves))}
    others = {name: item for name, item in items.items() if name not in {**extremes, **distincts}}
    return tuple(extremes.values()), tuple(distincts.values()), others


def _unfiltered(item: exp.Expr) -> exp.Expr:
    node = item.unalias()
    return node.this if isinstance(node, exp.Filter) else node

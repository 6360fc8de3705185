"""The smallest and the largest value over all rows, and the number of different ones, beside sums (additive.py).

They are kept in the one row of a view over a linear FROM, or over inner joins. So the values over the new rows are
those over the old rows, without those over the rows removed, with those over the rows added: as bags.

Extremes. Let m be the stored maximum, A and R those over the rows added and removed; a minimum is its mirror image.

    If A is at least m, the new maximum is A: every value that stays is at most m. Of a join, one term may add a row
    that another one removes. So there A must be above R, too: no removed row has the value A then.
    If R is below m, or no value is removed, m is no removed value, so it stays: the new maximum is m, if A is below it.
    Otherwise all rows with the value m may have been removed, and only the other rows say which one follows it.

    SELECT min(price) AS cheapest, max(price) AS dearest FROM products

For that, the values must be those of one column of each leaf, or of one leaf of a join. Take the k rows of each such
leaf with the largest values of that column, which the bounds in the footers of data files lead to
(store/index/first_values.py), and of a join the rows that these join. Let M be the maximum of the query over these
rows, and b the largest of the k-th values. The query has each row over the other rows at most with the value b. So if M
is at least b, or no leaf has other rows, the new maximum is M. Otherwise WHERE, FILTER or the join dropped too many of
them, and k grows; in the end the epoch is FULL.

Different values. A value that no changed row has is among the values of both versions, or of neither. So let V be the
values of the column in the rows added and removed, B the number of those of V that the old rows have, and N the same of
the new rows. The new number is the stored one, minus B, plus N. B and N are those of the query over the rows of each
version that are looked up by V, and of a join the rows that these join: their values are plain columns of the leaves.
Of other FROMs, the lookups are those of a handle that consists of this column (affected_rows.py).

    SELECT count(DISTINCT category_id) AS categories FROM products
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from cdc_views.plan.incremental.columns import LeafColumn, is_looked_up, is_ordered
from cdc_views.plan.incremental.delta_plans.totals import of_kind
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Values
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import Handle

# Whose values Python orders as Spark does.


@dataclass(frozen=True)
class Extreme:
    """A column with the smallest or the largest value.

    `columns` has one column of each leaf with these values, or of a join one of one leaf; it is empty for computed
    values.
    """

    name: str
    is_largest: bool
    columns: tuple[LeafColumn, ...] = ()


@dataclass(frozen=True)
class Distinct:
    """A column with the number of different values.

    `columns` has one column of each leaf with these values, or of a join one of one leaf. `handle` has the lookups by
    them if the FROM is neither linear nor inner joins.
    """

    name: str
    columns: tuple[LeafColumn, ...]
    handle: Handle | None = None

    @property
    def values(self) -> Values:
        """Those of the changed rows of all leaves, without NULL, which is not counted."""
        return Values(tuple((column,) for column in self.columns))

    @property
    def lookups(self) -> tuple[Lookup, ...]:
        """The lookups from the changed rows of all leaves to the rows with equal values."""
        return tuple(Lookup(column.leaf, (column.name,), self.values) for column in self.columns)


def extremes_and_others(
    items: Mapping[str, exp.Expr], scope: Scope, columns: Mapping[str, str], leaves: int = 0
) -> tuple[tuple[Extreme, ...], dict[str, exp.Expr]]:
    """The extremes among the columns of a view with their Arrow types, and the other columns. Raises NotIncremental.

    `leaves` is how many leaves have the values of the FROM: one of a join; 0 for groups, whose rows have no bounds.
    """
    return of_kind(items, lambda name, item: _extreme(name, item, scope, columns[name], leaves))


def distincts_and_others(
    items: Mapping[str, exp.Expr], scope: Scope, leaves: int | None
) -> tuple[tuple[Distinct, ...], dict[str, exp.Expr]]:
    """The numbers of different values among the columns of a view, and the other columns. Raises NotIncremental.

    `leaves` is as for extremes; None if any number of leaves may have the values.
    """
    return of_kind(items, lambda name, item: _distinct(name, item, scope, leaves))


def _extreme(name: str, item: exp.Expr, scope: Scope, type_: str, leaves: int) -> Extreme | None:
    """The extreme that a column of this Arrow type is; None if it is none. Raises NotIncremental for other types."""
    node = _unfiltered(item)
    if not isinstance(node, exp.Min | exp.Max) or node.expressions:
        return None
    if not is_ordered(type_):
        raise NotIncremental(f'column "{name}" is an extreme of type {type_}, wanted a number, a date or a timestamp')
    origin = _origin(node.this, scope)
    is_plain = len(origin) == leaves and all(column.type == type_ for column in origin)
    return Extreme(name, isinstance(node, exp.Max), origin if is_plain else ())


def _distinct(name: str, item: exp.Expr, scope: Scope, leaves: int | None) -> Distinct | None:
    """The number of different values that a column is; None if it is none.

    Raises NotIncremental if the values are not those of one column of each leaf.
    """
    node = _unfiltered(item)
    if not isinstance(node, exp.Count) or not isinstance(node.this, exp.Distinct):
        return None
    values = node.this.expressions
    origin = _origin(values[0], scope) if len(values) == 1 else ()
    is_plain = bool(origin) if leaves is None else len(origin) == leaves
    if not is_plain or not all(is_looked_up(each.type) for each in origin):
        raise NotIncremental(f'column "{name}" counts different values that are not those of a column of each table')
    return Distinct(name, origin)


def _origin(value: exp.Expr, scope: Scope) -> tuple[LeafColumn, ...]:
    """The leaf columns whose values these are, in the order of the leaves; none for computed values."""
    column = scope.resolve(value)
    return tuple(sorted(column.origin if column is not None else (), key=lambda each: each.leaf.path))


def _unfiltered(item: exp.Expr) -> exp.Expr:
    node = item.unalias()
    return node.this if isinstance(node, exp.Filter) else node

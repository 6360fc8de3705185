"""The columns that are ordered lists of the values of a group, beside its counts and sums (group_totals.py).

The values of a group are a bag. The bag over the union of two bags of rows is the union of those over each, so a bag is
kept as a count is: the values over the rows that are added are added to it, those over removed rows are taken away. Two
values that are equal in the order are the same, for the types that are allowed here. So the bag decides the list.

    SELECT author_id, sort_array(collect_list(struct(created_at, id, body))) AS posts FROM posts GROUP BY author_id

The first k values. A list of k values may be *cut*: of the others is only known that none comes before its last. A list
with fewer is whole. Let b be the first of the last values of the cut lists: the stored one, and those over the rows
that are added and removed. How often a value before b occurs now follows as above. The number for b itself, too, is one
that it occurs at least, unless a cut list of removed rows ends with b. If these are k values, they are the first k. If
no list is cut, all values are known. Otherwise the group is computed again.

    SELECT author_id, slice(sort_array(collect_list(struct(created_at, id)), false), 1, 10) AS newest FROM posts
    GROUP BY author_id

collect_list() drops NULL. So an empty list tells that its group has no rows only if each row has a value; where the
view has no count(*), and a list with such NULLs becomes empty, the group is computed again, too.

The driver merges the lists. So the values, or the fields of a struct, are columns of exact types, or numbers computed
from such. In these the order of Spark is the order of the values, NULL first in a field; text is ordered by its bytes,
as in a column of a table, which has no other collation. Floats are not among them: 0.0 and -0.0 tie, and differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from cdc_views.plan.incremental.columns import is_exact
from cdc_views.plan.incremental.delta_plans.totals import of_kind
from cdc_views.plan.incremental.exact_types import of_expression
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope


@dataclass(frozen=True)
class OrderedList:
    """A column that has the values of a group in their order, or in its reverse if it `descends`.

    `most` is the k of the first k values, None for all. `has_all_rows`: each row of the group has a value.
    """

    name: str
    descends: bool
    most: int | None
    has_all_rows: bool


def lists_and_others(
    items: Mapping[str, exp.Expr], scope: Scope
) -> tuple[tuple[OrderedList, ...], dict[str, exp.Expr]]:
    """The ordered lists among the columns of a view, and the other columns. Raises NotIncremental."""
    return of_kind(items, lambda name, item: _list(name, item.unalias(), scope))


def _list(name: str, node: exp.Expr, scope: Scope) -> OrderedList | None:
    node, most = _sliced(name, node)
    if not isinstance(node, exp.ArraySort):
        return None
    collected, is_filtered = node.this, False
    if isinstance(collected, exp.Filter):
        collected, is_filtered = collected.this, True
    if type(collected) is not exp.ArrayAgg or node.expression is not None:
        return None
    value = collected.this
    if not all(_is_ordered(each, scope) for each in _parts(value)):
        raise NotIncremental(f'column "{name}" is a list of values whose order is not certain here')
    has_all_rows = not is_filtered and _is_never_null(value, scope)
    return OrderedList(name, _descends(name, node), most, has_all_rows)


def _sliced(name: str, node: exp.Expr) -> tuple[exp.Expr, int | None]:
    """The array of which slice() takes the first k elements, and k; an expression without slice() as it is."""
    if not isinstance(node, exp.ArraySlice):
        return node, None
    start, length = (_number(node.args.get(each)) for each in ("start", "end"))
    if start != 1 or not length:
        raise NotIncremental(f'column "{name}" is a slice, but not of the first values')
    return node.this, length


def _number(node: exp.Expr | None) -> int | None:
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def _descends(name: str, node: exp.ArraySort) -> bool:
    ascends = node.args.get("asc")
    if ascends is not None and not isinstance(ascends, exp.Boolean):
        raise NotIncremental(f'column "{name}" is a list whose direction is not fixed')
    return ascends is not None and not ascends.this


def _parts(value: exp.Expr) -> list[exp.Expr]:
    """The fields of a struct, or the value itself."""
    if not isinstance(value, exp.Struct):
        return [value]
    return [each.expression if isinstance(each, exp.PropertyEQ) else each for each in value.expressions]


def _is_ordered(node: exp.Expr, scope: Scope) -> bool:
    column = scope.resolve(node)
    if column is not None and column.origin:
        return all(is_exact(each.type) for each in column.origin)
    return of_expression(node, scope) is not None


def _is_never_null(value: exp.Expr, scope: Scope) -> bool:
    if isinstance(value, exp.Struct):
        return True
    column = scope.resolve(value)
    if column is None:
        return False
    is_of_key = bool(column.origin) and all(each.name in each.leaf.never_null for each in column.origin)
    return column.is_never_null or is_of_key

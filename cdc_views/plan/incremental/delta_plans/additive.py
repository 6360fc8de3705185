"""The plans of views that are maintained by adding: one row of counts and sums over all rows, or one for each group.

Rule: if every column is a count or an exact sum, and the FROM is linear, then the view's query q is a homomorphism from
bags of rows, with the union of bags, to tuples of numbers, with addition. So over the new rows of its tables

    q(new) = q(old) + q(rows added) - q(rows removed), for old + added = new + removed,

where q(old) is the stored row. Proof: a linear FROM gives the union of what it gives over two bags (linear.py). WHERE,
FILTER and the argument of an aggregate are evaluated for each row by itself. A count and a sum of exact numbers over
the union of two bags are the sums of those over each. A CAST that neither rounds nor overflows does not change a value.

    SELECT count(*) AS n, CAST(sum(balance) AS DECIMAL(18, 2)) AS total
    FROM (SELECT balance FROM accounts UNION ALL SELECT balance FROM savings) holdings

Extremes and numbers of different values are kept beside these (extremes.py).

Two things are not additive, and strategies/add.py decides them for each change or gives up: whether a sum is NULL, as
it is over no values, and whether a total fits the types that it has on its way to the column.

Groups. The rows of inner joins are not linear in all tables together, but in each of them. So what the change adds to
the rows of a FROM is a sum over its leaves, in any fixed order, where the rows that disappear count as negative:

    for each leaf: its changed rows, joined with the leaves before it as they are after the change, and with the leaves
    after it as they were before it

Proof: each term replaces the old rows of one leaf by its new ones, and the terms lead from all old leaves to all new
ones. The leaves that a term joins are reduced to the rows that join the changed ones. For each group the totals over
these rows are added as above. The group is there if its number of rows is above 0, so the view must have this count.
A term may have rows that another one takes away again: that it adds a value does not mean that a sum has values.

    SELECT o.user_id, count(*) AS items, sum(i.quantity * i.unit_price) AS amount
    FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.user_id
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.build import build_from
from cdc_views.plan.incremental.columns import Leaf, Path, leaf_at
from cdc_views.plan.incremental.delta_plans.extremes import Distinct, Extreme, split
from cdc_views.plan.incremental.delta_plans.linear import (
    all_columns,
    require_handle,
    require_linear,
    require_multilinear,
    require_only,
)
from cdc_views.plan.incremental.exact_types import ExactType, of_arrow, of_expression, of_sql, whole
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import KeysPlan
from cdc_views.plan.keys import is_aggregated, makes_rows, nested_queries
from cdc_views.views.references import ParsedQuery

_OF_CAST: Final = frozenset({"this", "to"})
_OF_GROUPED: Final = frozenset({"expressions", "from_", "joins", "where", "group"})
_OF_GROUP: Final = frozenset({"expressions"})


@dataclass(frozen=True)
class Total:
    """A column that is a count or a sum.

    A total has each of `types` on its way to the column, whose type is the last. For a sum, `values` names the column
    that counts the values that are added, and `rows` one that counts the rows with and without such a value; None if
    the view has no such column.
    """

    name: str
    is_sum: bool
    types: tuple[ExactType, ...]
    values: str | None = None
    rows: str | None = None


@dataclass(frozen=True)
class AddPlan:
    """The leaves of a view, and its columns of each kind."""

    leaves: tuple[Leaf, ...]
    totals: tuple[Total, ...]
    extremes: tuple[Extreme, ...] = ()
    distincts: tuple[Distinct, ...] = ()


@dataclass(frozen=True)
class GroupPlan:
    """How counts and sums of groups are maintained.

    `keys` finds groups and computes them again; its handle are the columns of GROUP BY. `groups` are the columns of the
    view with their values, `rows` is the one that counts the rows of the group, `totals` are the others and that one.
    `joined` has for each leaf the lookups from its changed rows to the rows of the other leaves that they join.
    """

    keys: KeysPlan
    groups: tuple[str, ...]
    rows: str
    totals: tuple[Total, ...]
    joined: Mapping[Path, tuple[Lookup, ...]]

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The leaves of the view."""
        return self.keys.leaves


@dataclass(frozen=True)
class _Aggregate:
    """An aggregate: its argument, None for count(*), its FILTER, and the casts around it from the inside."""

    call: exp.Expr
    argument: exp.Expr | None
    filter: exp.Expr | None
    casts: tuple[ExactType, ...]

    @property
    def is_sum(self) -> bool:
        return isinstance(self.call, exp.Sum)

    @property
    def counts_rows(self) -> bool:
        """Whether it counts rows with and without values; with a FILTER, only some of them."""
        return not self.is_sum and (self.argument is None or isinstance(self.argument, exp.Literal))


def is_total(query: exp.Expr) -> bool:
    """Whether a query is an aggregate over all rows."""
    return isinstance(query, exp.Select) and query.args.get("group") is None and is_aggregated(query)


def add_plan(
    query: ParsedQuery,
    source_of: Callable[[int], str],
    types: Mapping[str, Mapping[str, str]],
    columns: Mapping[str, str],
) -> AddPlan:
    """Plan a view whose query is an aggregate over all rows. Raises NotIncremental with the reason for FULL.

    `source_of` returns the manifest's name of the table that the text names at an offset; `types` has the Arrow types
    of the columns of each; `columns` are the columns of the view with their Arrow types, in order.
    """
    select = query.tree
    assert isinstance(select, exp.Select)
    try:
        require_linear(select)
        operator, scope = build_from(select, leaf_at(source_of, types), Expressions(query))
        leaves = tuple(sorted(operator.leaves, key=lambda leaf: leaf.path))
        extremes, distincts, others = split(_items(select, columns), scope, columns, len(leaves))
        totals = _totals_of({name: _aggregate(name, item) for name, item in others.items()}, scope, columns)
    except NotIncremental as reason:
        raise NotIncremental(f"an aggregate over all rows that cannot be added up: {reason}") from None
    return AddPlan(leaves, totals, extremes, distincts)


def group_plan(query: ParsedQuery, columns: Mapping[str, str], keys: KeysPlan) -> GroupPlan:
    """Plan a view whose query is one SELECT with GROUP BY. Raises NotIncremental with the reason for KEYS.

    `columns` are as for `add_plan`, `keys` is the plan of the view for KEYS.
    """
    select, leaves = query.tree, {leaf.path: leaf for leaf in keys.leaves}
    if not isinstance(select, exp.Select) or select.args.get("group") is None:
        raise NotIncremental("no GROUP BY")
    require_only(select, _OF_GROUPED)
    if any(nested_queries(select)) or any(map(makes_rows, select.expressions)):
        raise NotIncremental("a subquery in an expression, or a function that returns several rows")
    operator, scope = build_from(select, lambda table, path: leaves[path], Expressions(query))
    require_multilinear(operator)
    group: exp.Group = select.args["group"]
    require_only(group, _OF_GROUP)
    require_handle(group.expressions, scope, keys)
    items = _items(select, columns)
    wanted = {column.origin for each in group.expressions if (column := scope.resolve(each)) is not None}
    groups = [name for name, item in items.items() if (c := scope.resolve(item.unalias())) and c.origin in wanted]
    aggregates = {name: _aggregate(name, item) for name, item in items.items() if name not in groups}
    rows = [name for name, each in aggregates.items() if each.counts_rows and each.filter is None]
    if not rows:
        raise NotIncremental("no count(*), so whether a group has rows does not follow from its totals")
    joined = {leaf.path: tuple(operator.find(leaf, all_columns(keys.leaves))) for leaf in keys.leaves}
    return GroupPlan(keys, tuple(groups), rows[0], _totals_of(aggregates, scope, columns), joined)


def _items(select: exp.Select, columns: Mapping[str, str]) -> dict[str, exp.Expr]:
    if len(select.expressions) != len(columns):
        raise NotIncremental("the columns of its result are not all known")
    return dict(zip(columns, select.expressions, strict=True))


def _totals_of(found: Mapping[str, _Aggregate], scope: Scope, columns: Mapping[str, str]) -> tuple[Total, ...]:
    totals = []
    for name, aggregate in found.items():
        total = Total(name, aggregate.is_sum, _types(name, aggregate, columns[name], scope))
        totals.append(_with_counts(total, aggregate, found) if total.is_sum else total)
    return tuple(totals)


def _aggregate(name: str, item: exp.Expr) -> _Aggregate:
    """The aggregate that a column is, below its casts."""
    node, casts, condition = item.unalias(), list[ExactType](), None
    while isinstance(node, exp.Paren | exp.Cast):
        if isinstance(node, exp.Cast):
            type_ = of_sql(node.to)
            if type_ is None or any(value and key not in _OF_CAST for key, value in node.args.items()):
                raise NotIncremental(f'column "{name}" has another cast than CAST to whole numbers or decimals')
            casts.insert(0, type_)
        node = node.this
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression
    argument = node.this
    is_known = type(node) in (exp.Count, exp.Sum) and not node.expressions
    if not is_known or isinstance(argument, exp.Distinct) or (isinstance(argument, exp.Column) and argument.is_star):
        raise NotIncremental(f'column "{name}" is neither count(*) nor the count or the sum of one value of each row')
    return _Aggregate(node, None if isinstance(argument, exp.Star) else argument, condition, tuple(casts))


def _types(name: str, aggregate: _Aggregate, column: str, scope: Scope) -> tuple[ExactType, ...]:
    """The types of a total, from that of the aggregate itself to that of the column."""
    types = (_own_type(name, aggregate, column, scope), *aggregate.casts)
    for before, after in pairwise(types):
        if after.scale < before.scale or (after.bits and not before.bits):
            raise NotIncremental(f'column "{name}" has a CAST from {before} to {after}, which rounds')
    if str(types[-1]) != column:
        raise NotIncremental(f'column "{name}" is {column}, wanted {types[-1]}')
    return types


def _own_type(name: str, aggregate: _Aggregate, column: str, scope: Scope) -> ExactType:
    if not aggregate.is_sum:
        return whole(64)
    if not aggregate.casts:
        # Spark makes such a sum of such values only.
        found = of_arrow(column)
        if found is None:
            raise NotIncremental(f'column "{name}" is a sum of type {column}, neither whole numbers nor decimals')
        return found
    argument = of_expression(aggregate.call.this, scope)
    if argument is None:
        raise NotIncremental(
            f'column "{name}" casts a sum whose values are not certain to be whole numbers or decimals; '
            "cast the values themselves"
        )
    return argument.of_sum()


def _with_counts(total: Total, aggregate: _Aggregate, all_: Mapping[str, _Aggregate]) -> Total:
    """A sum with the columns that count what it adds."""
    counts = {name: each for name, each in all_.items() if not each.is_sum and each.filter == aggregate.filter}
    values = next((name for name, each in counts.items() if each.argument == aggregate.argument), None)
    rows = next((name for name, each in counts.items() if each.counts_rows), None)
    if values is None and _is_never_null(aggregate.argument):
        values = rows
    return replace(total, values=values, rows=rows)


def _is_never_null(value: exp.Expr | None) -> bool:
    """Whether an expression has a value for each row, as `CASE WHEN ... THEN 1 ELSE 0 END`."""
    match value:
        case exp.Literal():
            return True
        case exp.Paren():
            return _is_never_null(value.this)
        case exp.Case():
            branches = [branch.args["true"] for branch in value.args["ifs"]]
            return all(map(_is_never_null, [*branches, value.args.get("default")]))
        case exp.If():
            return _is_never_null(value.args["true"]) and _is_never_null(value.args.get("false"))
        case exp.Coalesce():
            return any(map(_is_never_null, [value.this, *value.expressions]))
    return False

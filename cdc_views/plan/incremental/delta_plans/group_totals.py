"""The plans of views that keep counts, sums and lists of groups by adding: those of GROUP BY, and of grouping sets.

The rule is that of additive.py for each group. But the rows of inner joins are not linear in all tables together, only
in each of them. So what the change adds to the rows of a FROM is a sum over its leaves, in any fixed order, where the
rows that disappear count as negative:

    for each leaf: its changed rows, joined with the leaves before it as they are after the change, and with the leaves
    after it as they were before it

Proof: each term replaces the old rows of one leaf by its new ones, and the terms lead from all old leaves to all new
ones. The leaves that a term joins are reduced to the rows that join the changed ones. For each group the totals over
these rows are added as above. The group is there if its number of rows is above 0, so the view must have this count, or
an ordered list of values (ordered_lists.py). A term may have rows that another one takes away again: that it adds a
value does not mean that a sum has values.

    SELECT o.user_id, count(*) AS items, sum(i.quantity * i.unit_price) AS amount
    FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.user_id

Grouping sets. A view over ROLLUP, CUBE or GROUPING SETS is the UNION ALL of a view for each set, and a row of it is
that of a group and a set: its key has `grouping_id()` beside the columns of the groups. A row of the FROM is in one
group of each set, by its own columns alone. So the totals of all sets are added in the same way, and the coarse sets,
even that over all rows, cost as much as the fine ones. Over no rows Spark gives no row for any set, not even for (). So
a row is there if its number of rows is above 0, as for groups.

    SELECT country, status, grouping_id() AS level, count(*) AS orders
    FROM users u JOIN orders o ON o.user_id = u.id GROUP BY ROLLUP (country, status)

No lookup finds all rows of a coarse set. So where a total does not follow from the changed rows, the epoch is FULL.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.grouping_sets import columns_of_sets, is_grouping
from cdc_views.plan.facts.keys import makes_rows, nested_queries
from cdc_views.plan.incremental.build import LeafOf, build_from
from cdc_views.plan.incremental.columns import Leaf, Origin, Path, is_exact, leaf_at
from cdc_views.plan.incremental.delta_plans.linear import (
    joins_of,
    require_handle,
    require_multilinear,
    require_only,
)
from cdc_views.plan.incremental.delta_plans.ordered_lists import OrderedList, lists_and_others
from cdc_views.plan.incremental.delta_plans.totals import Total, aggregate_of, items_of, totals_of
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import Operator
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import KeysPlan
from cdc_views.views.references import ParsedQuery

_OF_GROUPED: Final = frozenset({"expressions", "from_", "joins", "where", "group"})
_OF_GROUP: Final = frozenset({"expressions"})


@dataclass(frozen=True)
class GroupPlan:
    """How counts, sums and ordered lists of groups are maintained.

    `groups` are the columns of the view that identify a group, or are the same in all of its rows; stored rows are
    found by those in `found_by`. `rows` is the column that counts the rows of the group, None if there are only lists
    to tell whether it has some. `totals` are the counts and sums, that one among them. `joined` has for each leaf the
    lookups from its changed rows to the rows of the other leaves that they join. `keys` computes groups again; None if
    only FULL does.
    """

    leaves: tuple[Leaf, ...]
    groups: tuple[str, ...]
    found_by: tuple[str, ...]
    rows: str | None
    totals: tuple[Total, ...]
    lists: tuple[OrderedList, ...]
    joined: Mapping[Path, tuple[Lookup, ...]]
    keys: KeysPlan | None = None


def group_plan(query: ParsedQuery, columns: Mapping[str, str], keys: KeysPlan) -> GroupPlan:
    """Plan a view whose query is one SELECT with GROUP BY. Raises NotIncremental with the reason for KEYS.

    `columns` are the columns of the view with their Arrow types, in order; `keys` is the plan of the view for KEYS.
    """
    leaves = {leaf.path: leaf for leaf in keys.leaves}
    select, group = _grouped(query)
    operator, scope = _multilinear(query, select, lambda table, path: leaves[path])
    require_handle(group.expressions, scope, keys)
    wanted = {column.origin for each in group.expressions if (column := scope.resolve(each)) is not None}
    groups = _plain(select, scope, columns, wanted)
    return _plan(select, operator, scope, columns, groups, keys.handles[0].parts[0].names, keys)


def sets_plan(
    query: ParsedQuery,
    source_of: Callable[[int], str],
    types: Mapping[str, Mapping[str, str]],
    columns: Mapping[str, str],
    key: Sequence[str] | None,
) -> GroupPlan:
    """Plan a view whose query groups by grouping sets. Raises NotIncremental with the reason for FULL.

    The arguments are as for `add_plan`; `key` are the columns that identify a row.
    """
    try:
        select, group = _grouped(query)
        operator, scope = _multilinear(query, select, leaf_at(source_of, types))
        wanted = columns_of_sets(group, lambda node: c.origin or None if (c := scope.resolve(node)) else None)
        if wanted is None or key is None:
            raise NotIncremental(
                "wanted all of their columns, unchanged from tables, and grouping_id() in SELECT, and no set twice; "
                "or in place of grouping_id() columns without NULL"
            )
        plain = _plain(select, scope, columns, wanted)
        levels = [name for name, item in items_of(select, columns).items() if is_grouping(item.unalias())]
        if not {*key} <= {*plain, *levels} or not all(is_exact(columns[name]) for name in key):
            raise NotIncremental("groups of floating-point values, or of values of a nested type")
        return _plan(select, operator, scope, columns, [*plain, *levels], key, None)
    except NotIncremental as reason:
        raise NotIncremental(f"grouping sets that cannot be added up: {reason}") from None


def _grouped(query: ParsedQuery) -> tuple[exp.Select, exp.Group]:
    select = query.tree
    group = select.args.get("group")
    if not isinstance(select, exp.Select) or not isinstance(group, exp.Group):
        raise NotIncremental("no GROUP BY")
    require_only(select, _OF_GROUPED)
    require_only(group, _OF_GROUP)
    if any(nested_queries(select)) or any(map(makes_rows, select.expressions)):
        raise NotIncremental("a subquery in an expression, or a function that returns several rows")
    return select, group


def _multilinear(query: ParsedQuery, select: exp.Select, leaf_of: LeafOf) -> tuple[Operator, Scope]:
    operator, scope = build_from(select, leaf_of, Expressions(query))
    require_multilinear(operator)
    return operator, scope


def _plain(select: exp.Select, scope: Scope, columns: Mapping[str, str], wanted: Collection[Origin]) -> list[str]:
    """The columns of the view that are columns of its groups."""
    items = items_of(select, columns)
    return [name for name, item in items.items() if (c := scope.resolve(item.unalias())) and c.origin in wanted]


def _plan(
    select: exp.Select,
    operator: Operator,
    scope: Scope,
    columns: Mapping[str, str],
    groups: Sequence[str],
    found_by: Sequence[str],
    keys: KeysPlan | None,
) -> GroupPlan:
    items = {name: item for name, item in items_of(select, columns).items() if name not in groups}
    lists, others = lists_and_others(items, scope)
    if lists and keys is None:
        raise NotIncremental("a list of values")
    aggregates = {name: aggregate_of(name, item) for name, item in others.items()}
    rows = [name for name, each in aggregates.items() if each.counts_rows and each.filter is None]
    if not rows and not lists:
        raise NotIncremental("no count(*), so whether a group has rows does not follow from its totals")
    leaves = tuple(sorted(operator.leaves, key=lambda leaf: leaf.path))
    totals = totals_of(aggregates, scope, columns)
    return GroupPlan(
        leaves, tuple(groups), tuple(found_by), rows[0] if rows else None, totals, lists, joins_of(operator), keys
    )

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

A group may be found by computed values, such as those of `explode` or `date_trunc`, if the view has them all: the text
computes them for the changed rows, and stored rows are looked up by them. The values must be exact, since the driver
puts the rows of a group together.

    SELECT t.tag, count(*) AS posts FROM posts LATERAL VIEW explode(tags) t AS tag GROUP BY t.tag

Extremes of a group follow from the stored one, and those over the rows added and removed, as over all rows
(extremes.py). Averages follow from the new sum and count of the group (averages.py).

Totals of a group that do not follow from the changed rows need all rows of the group. KEYS looks these up. Where it has
no plan, as for the values of `explode`, such an epoch is FULL.

Grouping sets. A view over ROLLUP, CUBE or GROUPING SETS is the UNION ALL of a view for each set, and a row of it is
that of a group and a set: its key has `grouping_id()` beside the columns of the groups. A row of the FROM is in one
group of each set, by its own columns alone. So the totals of all sets are added in the same way, and the coarse sets,
even that over all rows, cost as much as the fine ones. Over no rows Spark gives no row for any set, not even for (). So
a row is there if its number of rows is above 0, as for groups.

    SELECT country, status, grouping_id() AS level, count(*) AS orders
    FROM users u JOIN orders o ON o.user_id = u.id GROUP BY ROLLUP (country, status)

No lookup finds all rows of a coarse set. So where a total does not follow from the changed rows, the epoch is FULL.

Where KEYS has no plan, a FROM that is not inner joins will do, too: the terms are all rows that the change may affect,
before it and after it (affected_rows.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.grouping_sets import SETS_BEHIND, GroupsOfSets, is_grouping
from cdc_views.plan.incremental.build import LeafOf, build_from
from cdc_views.plan.incremental.columns import Leaf, Path, is_exact
from cdc_views.plan.incremental.delta_plans.affected_rows import ChangedFrom, RowsOf, require_row_by_row
from cdc_views.plan.incremental.delta_plans.averages import Average, averages_and_totals
from cdc_views.plan.incremental.delta_plans.extremes import Extreme, extremes_and_others
from cdc_views.plan.incremental.delta_plans.linear import joins_of, require_multilinear, require_only
from cdc_views.plan.incremental.delta_plans.ordered_lists import OrderedList, lists_and_others
from cdc_views.plan.incremental.delta_plans.totals import Total, items_of, totals_of
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import KeysPlan
from cdc_views.views.expression_text import Texts
from cdc_views.views.references import ParsedQuery

_OF_GROUPED: Final = frozenset({"with_", "expressions", "from_", "joins", "laterals", "where", "group"})
_OF_GROUP: Final = frozenset({"expressions"})
_OF_SETS: Final = _OF_GROUP.union(SETS_BEHIND)


@dataclass(frozen=True)
class GroupPlan:
    """How counts, sums, extremes, averages and ordered lists of groups are maintained.

    `groups` are the columns of the view that identify a group, or are the same in all of its rows; stored rows are
    found by those in `found_by`. `rows` is the column that counts the rows of the group, None if there are only lists
    to tell whether it has some. `totals` are the counts and sums, that one among them. `joined` has for each leaf the
    lookups from its changed rows to the rows of the other leaves that they join; if the FROM is not inner joins,
    `affected` has those for the rows that change. `keys` computes groups again; None if only FULL does.
    """

    leaves: tuple[Leaf, ...]
    groups: tuple[str, ...]
    found_by: tuple[str, ...]
    rows: str | None
    totals: tuple[Total, ...]
    extremes: tuple[Extreme, ...]
    averages: tuple[Average, ...]
    lists: tuple[OrderedList, ...]
    joined: Mapping[Path, tuple[Lookup, ...]]
    affected: KeysPlan | None = None
    keys: KeysPlan | None = None

    @property
    def follows_always(self) -> bool:
        """Whether the new row of a group follows from every change, as long as no number is too large."""
        sums = (total for total in self.totals if total.is_sum)
        return not self.lists and not self.extremes and all(total.values is not None for total in sums)


def group_plan(
    query: ParsedQuery, rows_of: RowsOf, columns: Mapping[str, str], key: Sequence[str] | None, keys: KeysPlan | None
) -> GroupPlan:
    """Plan a view whose query is one SELECT with GROUP BY. Raises NotIncremental with the reason.

    `rows_of` says how the rows of its FROM are found; `columns` are the columns of the view with their Arrow types, in
    order; `key` are those that identify a row. `keys` is the plan of the view for KEYS, if it has one.
    """
    select, group = _grouped(query, _OF_GROUP)
    rows = rows_of(select)
    scope = rows.scope
    items = {name: item.unalias() for name, item in items_of(select, columns).items()}
    texts = Texts(query)
    names = [_names_of(each, items, scope, texts) for each in group.expressions]
    groups = list(dict.fromkeys(name for same in names for name in same))
    if key is None or not {*key} <= {*groups} or not all({*same} & {*key} for same in names):
        raise NotIncremental("groups that are not identified by columns of the view")
    if not all(is_exact(columns[name]) for name in groups):
        raise NotIncremental("groups of floating-point values, or of values of a nested type")
    if keys is not None and not _is_handle_of(groups, keys):
        raise NotIncremental("groups that are not found by their columns")
    return _plan(select, rows, columns, groups, key, keys, texts)


def sets_plan(query: ParsedQuery, rows_of: RowsOf, columns: Mapping[str, str], key: Sequence[str] | None) -> GroupPlan:
    """Plan a view whose query groups by grouping sets; the arguments are as for `group_plan`.

    Raises NotIncremental with the reason for FULL.
    """
    try:
        select, _ = _grouped(query, _OF_SETS)
        rows = rows_of(select)
        scope = rows.scope
        texts = Texts(query)
        groups = GroupsOfSets(select, scope.name_of, scope.has, texts)
        wanted = groups.all()
        if wanted is None or key is None:
            raise NotIncremental(
                "wanted all of their groups, which are columns of tables or function calls over these, and "
                "grouping_id() in SELECT, and no set twice; or in place of grouping_id() columns without NULL"
            )
        items = items_of(select, columns)
        plain = [name for name, item in items.items() if groups.of(item.unalias()) in wanted]
        levels = [name for name, item in items.items() if is_grouping(item.unalias())]
        if not {*key} <= {*plain, *levels} or not all(is_exact(columns[name]) for name in key):
            raise NotIncremental("groups of floating-point values, or of values of a nested type")
        return _plan(select, rows, columns, [*plain, *levels], key, None, texts)
    except NotIncremental as reason:
        raise NotIncremental(f"grouping sets that cannot be added up: {reason}") from None


def _grouped(query: ParsedQuery, clauses: frozenset[str]) -> tuple[exp.Select, exp.Group]:
    select = query.tree
    group = select.args.get("group")
    if not isinstance(select, exp.Select) or not isinstance(group, exp.Group):
        raise NotIncremental("no GROUP BY")
    require_only(select, _OF_GROUPED)
    require_only(group, clauses)
    require_row_by_row(select)
    return select, group


def rows_of_joins(query: ParsedQuery, leaf_of: LeafOf) -> RowsOf:
    """Says how the rows are found that inner joins gain and lose."""

    def rows_of(select: exp.Select) -> ChangedFrom:
        operator, scope = build_from(select, leaf_of, Expressions(query))
        require_multilinear(operator, select)
        return ChangedFrom(operator, scope, joins_of(operator))

    return rows_of


def _names_of(expression: exp.Expr, items: Mapping[str, exp.Expr], scope: Scope, texts: Texts) -> list[str]:
    """The columns of the view that have the values of an expression of GROUP BY."""
    if isinstance(expression, exp.Literal) and expression.is_int:
        return list(items)[int(expression.name) - 1 :][:1]
    named = scope.resolve(expression)
    is_alias = isinstance(expression, exp.Column) and not expression.table and not scope.has(expression.name.lower())

    def is_same(name: str, item: exp.Expr) -> bool:
        column = scope.resolve(item)
        if named is not None and column is not None:
            return column is named or bool(named.origin and column.origin == named.origin)
        return texts.are_same(item, expression) or (is_alias and name == expression.name.lower())

    return [name for name, item in items.items() if is_same(name, item)]


def _is_handle_of(groups: Collection[str], keys: KeysPlan) -> bool:
    """Whether KEYS finds rows by columns of the groups only, so that it computes whole groups."""
    return len(keys.handles) == 1 and all({*part.names} <= {*groups} for part in keys.handles[0].parts)


def _plan(
    select: exp.Select,
    rows: ChangedFrom,
    columns: Mapping[str, str],
    groups: Sequence[str],
    found_by: Sequence[str],
    keys: KeysPlan | None,
    texts: Texts,
) -> GroupPlan:
    items = {name: item for name, item in items_of(select, columns).items() if name not in groups}
    scope = rows.scope
    lists, others = lists_and_others(items, scope)
    if lists and keys is None:
        raise NotIncremental("a list of values")
    extremes, others = extremes_and_others(others, scope, columns)
    averages, aggregates = averages_and_totals(others, columns, scope, texts)
    counts = [name for name, each in aggregates.items() if each.counts_rows and each.filter is None]
    if not counts and not lists:
        raise NotIncremental("no count(*), so whether a group has rows does not follow from its totals")
    return GroupPlan(
        tuple(sorted(rows.operator.leaves, key=lambda leaf: leaf.path)),
        tuple(groups),
        tuple(found_by),
        counts[0] if counts else None,
        totals_of(aggregates, scope, columns, texts),
        extremes,
        averages,
        lists,
        rows.joined,
        rows.affected,
        keys,
    )

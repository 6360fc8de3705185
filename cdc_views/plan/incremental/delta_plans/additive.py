"""The plans of views that are maintained by adding: one row of counts and sums over all rows.

Rule: if every column is a count or an exact sum, and the FROM is linear, then the view's query q is a homomorphism from
bags of rows, with the union of bags, to tuples of numbers, with addition. So over the new rows of its tables

    q(new) = q(old) + q(rows added) - q(rows removed), for old + added = new + removed,

where q(old) is the stored row. Proof: a linear FROM gives the union of what it gives over two bags (linear.py). WHERE,
FILTER and the argument of an aggregate are evaluated for each row by itself. A count and a sum of exact numbers over
the union of two bags are the sums of those over each. A CAST that neither rounds nor overflows does not change a value.

    SELECT count(*) AS n, CAST(sum(balance) AS DECIMAL(18, 2)) AS total
    FROM (SELECT balance FROM accounts UNION ALL SELECT balance FROM savings) holdings

Inner joins are not linear, but linear in each table. For them, the rows added and removed are those of some terms, as
for groups (group_totals.py), and a row that one term adds may be one that another removes.

    SELECT count(*) AS items, sum(i.quantity) AS pieces FROM orders o JOIN order_items i ON i.order_id = o.id

Of any other FROM, all rows are taken that a change may affect, before it and after it (affected_rows.py).

Extremes, numbers of different values and averages are kept beside these (extremes.py, averages.py). Counts and sums of
groups have the same rule for each group.

Two things are not additive, and strategies/adding/add.py decides them for each change or gives up: whether a sum is
NULL, as it is over no values, and whether a total fits the types that it has on its way to the column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.keys import is_aggregated, makes_rows, nested_queries
from cdc_views.plan.incremental.build import LeafOf, build_from
from cdc_views.plan.incremental.columns import Leaf, Path
from cdc_views.plan.incremental.delta_plans.affected_rows import ChangedFrom, RowsOf, handle_by
from cdc_views.plan.incremental.delta_plans.averages import Average, averages_and_totals
from cdc_views.plan.incremental.delta_plans.extremes import (
    Distinct,
    Extreme,
    distincts_and_others,
    extremes_and_others,
)
from cdc_views.plan.incremental.delta_plans.linear import joins_of, require_linear, require_multilinear, require_only
from cdc_views.plan.incremental.delta_plans.totals import Total, items_of, totals_of
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import InnerJoin, Operator
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import KeysPlan
from cdc_views.views.expression_text import Texts
from cdc_views.views.references import ParsedQuery

_OF_JOINED: Final = frozenset({"expressions", "from_", "joins", "where"})


@dataclass(frozen=True)
class AddPlan:
    """The leaves of a view, and its columns of each kind.

    Of inner joins, `joined` has for each leaf the lookups from its changed rows to the rows of the other leaves that
    they join; of a FROM that is neither linear nor inner joins, `affected` has those for the rows that change.
    """

    leaves: tuple[Leaf, ...]
    totals: tuple[Total, ...]
    extremes: tuple[Extreme, ...] = ()
    distincts: tuple[Distinct, ...] = ()
    averages: tuple[Average, ...] = ()
    joined: Mapping[Path, tuple[Lookup, ...]] = field(default_factory=dict)
    affected: KeysPlan | None = None


def is_total(query: exp.Expr) -> bool:
    """Whether a query is an aggregate over all rows."""
    return isinstance(query, exp.Select) and query.args.get("group") is None and is_aggregated(query)


def add_plan(query: ParsedQuery, rows_of: RowsOf, columns: Mapping[str, str]) -> AddPlan:
    """Plan a view whose query is an aggregate over all rows. Raises NotIncremental with the reason for FULL.

    `rows_of` says how the rows of its FROM are found; `columns` are the columns of the view with their Arrow types, in
    order.
    """
    select, texts = query.tree, Texts(query)
    assert isinstance(select, exp.Select)
    try:
        rows = rows_of(select)
        leaves = tuple(sorted(rows.operator.leaves, key=lambda leaf: leaf.path))
        of_values = len(leaves) if rows.is_linear else 1 if rows.joined else 0
        extremes, others = extremes_and_others(items_of(select, columns), rows.scope, columns, of_values)
        distincts, others = distincts_and_others(others, rows.scope, of_values if rows.affected is None else None)
        if rows.affected is not None:
            distincts = tuple(replace(each, handle=handle_by(rows, each.columns)) for each in distincts)
        averages, counts_and_sums = averages_and_totals(others, columns, rows.scope, texts)
        totals = totals_of(counts_and_sums, rows.scope, columns, texts)
    except NotIncremental as reason:
        raise NotIncremental(f"an aggregate over all rows that cannot be added up: {reason}") from None
    return AddPlan(leaves, totals, extremes, distincts, averages, rows.joined, rows.affected)


def changed_rows(query: ParsedQuery, leaf_of: LeafOf) -> RowsOf:
    """Says how the rows are found that a linear FROM, or inner joins, gain and lose."""

    def rows_of(select: exp.Select) -> ChangedFrom:
        operator, scope = _from(query, select, leaf_of)
        return ChangedFrom(operator, scope, joins_of(operator) if isinstance(operator, InnerJoin) else {})

    return rows_of


def _from(query: ParsedQuery, select: exp.Select, leaf_of: LeafOf) -> tuple[Operator, Scope]:
    """The FROM of a SELECT, which is linear, or consists of inner joins. Raises NotIncremental."""
    try:
        require_linear(select)
    except NotIncremental as reason:
        if any(nested_queries(select)) or any(map(makes_rows, select.expressions)):
            raise NotIncremental("a subquery in an expression, or a function that returns several rows") from None
        operator, scope = build_from(select, leaf_of, Expressions(query))
        if not isinstance(operator, InnerJoin):
            raise reason from None
        require_only(select, _OF_JOINED)
        require_multilinear(operator, select)
        return operator, scope
    return build_from(select, leaf_of, Expressions(query))

"""The plans of views that are maintained by adding: one row of counts and sums over all rows.

Rule: if every column is a count or an exact sum, and the FROM is linear, then the view's query q is a homomorphism from
bags of rows, with the union of bags, to tuples of numbers, with addition. So over the new rows of its tables

    q(new) = q(old) + q(rows added) - q(rows removed), for old + added = new + removed,

where q(old) is the stored row. Proof: a linear FROM gives the union of what it gives over two bags (linear.py). WHERE,
FILTER and the argument of an aggregate are evaluated for each row by itself. A count and a sum of exact numbers over
the union of two bags are the sums of those over each. A CAST that neither rounds nor overflows does not change a value.

    SELECT count(*) AS n, CAST(sum(balance) AS DECIMAL(18, 2)) AS total
    FROM (SELECT balance FROM accounts UNION ALL SELECT balance FROM savings) holdings

Extremes, numbers of different values and averages are kept beside these (extremes.py, averages.py). Counts and sums of
groups have the same rule for each group (group_totals.py).

Two things are not additive, and strategies/adding/add.py decides them for each change or gives up: whether a sum is
NULL, as it is over no values, and whether a total fits the types that it has on its way to the column.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from cdc_views.plan.facts.keys import is_aggregated
from cdc_views.plan.incremental.build import build_from
from cdc_views.plan.incremental.columns import Leaf, leaf_at
from cdc_views.plan.incremental.delta_plans.averages import Average, averages_and_totals
from cdc_views.plan.incremental.delta_plans.extremes import Distinct, Extreme, split
from cdc_views.plan.incremental.delta_plans.linear import require_linear
from cdc_views.plan.incremental.delta_plans.totals import Total, items_of, totals_of
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.views.references import ParsedQuery


@dataclass(frozen=True)
class AddPlan:
    """The leaves of a view, and its columns of each kind."""

    leaves: tuple[Leaf, ...]
    totals: tuple[Total, ...]
    extremes: tuple[Extreme, ...] = ()
    distincts: tuple[Distinct, ...] = ()
    averages: tuple[Average, ...] = ()


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
        extremes, distincts, others = split(items_of(select, columns), scope, columns, len(leaves))
        averages, counts_and_sums = averages_and_totals(others, columns, scope)
        totals = totals_of(counts_and_sums, scope, columns)
    except NotIncremental as reason:
        raise NotIncremental(f"an aggregate over all rows that cannot be added up: {reason}") from None
    return AddPlan(leaves, totals, extremes, distincts, averages)

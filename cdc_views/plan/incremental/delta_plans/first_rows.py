"""The plan of a view that keeps the first rows of a whole query: ORDER BY ... LIMIT k.

It is the rule of top_rows.py with one partition, which is the whole view: its stored rows are the first k rows of J, or
all of them if they are fewer. Where the first rows do not follow from these and the rows that are added, no lookup
finds the next ones, and the epoch is FULL.

    SELECT id, name, price FROM products ORDER BY price DESC LIMIT 10

The order is total, or rows that tie in it are equal in all columns (plan/facts/order.py). So which of them are stored
does not matter.

The first groups of a query are the first rows of an internal view that stores all groups. It is maintained in the same
epoch, before the view. What orders the groups must be columns of the result, since the internal view has no others.

    SELECT user_id, count(*) AS orders FROM orders GROUP BY user_id ORDER BY orders DESC, user_id LIMIT 10
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from sqlglot import TokenType, exp

from cdc_views.base.names import is_table
from cdc_views.plan.facts.keys import windows
from cdc_views.plan.incremental.build import LeafOf, build, build_from
from cdc_views.plan.incremental.columns import Column, LeafColumn
from cdc_views.plan.incremental.delta_plans.linear import require_multilinear, require_only
from cdc_views.plan.incremental.delta_plans.top_rows import PatchPlan, merged_plan, require_rows
from cdc_views.plan.incremental.expressions.derived_table import WantedTable
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import Scan
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.strategy import outputs_of
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import has_collation

_OF_SELECT: Final = frozenset({"expressions", "from_", "joins", "where", "order", "limit"})


def first_rows_plan(
    query: ParsedQuery,
    leaf_of: LeafOf,
    columns: Mapping[str, str],
    row_keys: Mapping[str, Sequence[str]],
) -> PatchPlan:
    """Plan a view. Raises NotIncremental with the reason for FULL.

    `leaf_of` makes the leaf of a table at a place of the text; `columns` are the columns of the view with their Arrow
    types, in order; `row_keys` are those that identify a row of a table.
    """
    select = query.tree
    if not isinstance(select, exp.Select):
        raise NotIncremental("a set operation")
    require_only(select, _OF_SELECT)
    require_rows(select)
    if any(windows(select)) or not select.args.get("order"):
        raise NotIncremental("a window, or no order")
    operator, _ = build_from(select, leaf_of, Expressions(query))
    require_multilinear(operator)
    built = build(select, leaf_of, Expressions(query))
    outputs = outputs_of(built, columns, are_renamed=query.definition.columns is not None)
    return merged_plan(operator, outputs, _most(select), row_keys)


def first_groups_plan(
    query: ParsedQuery, tables: Sequence[str], columns: Mapping[str, str], expressions: Expressions
) -> PatchPlan:
    """Plan a view that keeps the first groups, if all groups are stored; if not, they are wanted.

    `tables` are the inputs of the view, `columns` its own with their Arrow types. Raises NotIncremental.
    """
    select = query.tree
    if not isinstance(select, exp.Select) or not select.args.get("group") or not select.args.get("order"):
        raise NotIncremental("no groups in an order")
    if select.args.get("with_") or select.args.get("offset") or not all(map(is_table, tables)):
        raise NotIncremental("a CTE, OFFSET, or a view as an input")
    if has_collation(query.tokens):
        raise NotIncremental("a collation, which the stored values do not have")
    most, names = _most(select), [item.alias_or_name.lower() for item in select.expressions]
    if "" in names or len({*names}) < len(names) or not all(_is_named(each, names) for each in _ordered(select)):
        raise NotIncremental("groups that are not ordered by columns of the view")
    found = expressions.rows_of(_all_groups(query, tables))
    if found is None:
        raise NotIncremental("no internal view stores the groups")
    leaf, key = found
    if list(leaf.types.values()) != list(columns.values()):
        raise NotIncremental("the columns of its result are not all known")
    both = zip(columns, leaf.types, strict=True)
    outputs = [Column(name, frozenset({LeafColumn(leaf, stored)})) for name, stored in both]
    return merged_plan(Scan(leaf), outputs, most, {leaf.source: key})


def _ordered(select: exp.Select) -> list[exp.Expr]:
    return [each.this for each in select.args["order"].expressions]


def _is_named(node: exp.Expr, names: Collection[str]) -> bool:
    """Whether an item of ORDER BY is a column of the result, by its name or its number."""
    if isinstance(node, exp.Literal):
        return node.is_int
    return isinstance(node, exp.Column) and not node.table and node.name.lower() in names


def _all_groups(query: ParsedQuery, tables: Sequence[str]) -> WantedTable:
    """The query without its ORDER BY and LIMIT."""
    tokens = query.tokens
    depth, order = 0, 0
    for number, token in enumerate(tokens):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if token.token_type is TokenType.ORDER_BY and not depth:
            order = number
    start, end = tokens[0].start, tokens[order - 1].end + 1
    return WantedTable(tuple(tables), start, end, query.definition.sql[start:end])


def _most(select: exp.Select) -> int:
    limit = select.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    if not isinstance(number, exp.Literal) or not number.is_int or int(number.name) < 1:
        raise NotIncremental("no fixed LIMIT")
    return int(number.name)

"""The plan of a view that keeps the first rows of a whole query: ORDER BY ... LIMIT k.

It is the rule of top_rows.py with one partition, which is the whole view: its stored rows are the first k rows of J, or
all of them if they are fewer. Where the first rows do not follow from these and the rows that are added, the next ones
are searched for: the leaf rows with the first values of the column that orders them, without those of the last of these
values, since there may be more of them. If J has k rows over these and the rows that they join, no other row comes
before them. Where the column may be NULL before its values, or too few rows are found, the epoch is FULL.

    SELECT id, name, price FROM products ORDER BY price DESC LIMIT 10

With OFFSET, nothing follows from the stored rows: those before them are not stored. So the first rows are searched for
in each epoch that changes one of the leaves, and the text that runs over them skips those before OFFSET. They are
searched for in this way, too, where no key tells which of several equal rows of an internal view is stored.

The order is total, or rows that tie in it are equal in all columns (plan/facts/order.py). So which of them are stored
does not matter.

Of groups, and of other rows that one added row may remove, such as those of a left join, the first are those of an
internal view that stores all of them. It is maintained in the same epoch, before the view. What orders them must be
columns of the result, since the internal view has no others.

    SELECT user_id, count(*) AS orders FROM orders GROUP BY user_id ORDER BY orders DESC, user_id LIMIT 10
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import sqlglot
from sqlglot import TokenType, exp

from cdc_views.plan.facts.keys import windows
from cdc_views.plan.incremental.build import LeafOf, build, build_from
from cdc_views.plan.incremental.columns import Column, LeafColumn, is_ordered
from cdc_views.plan.incremental.delta_plans.linear import require_multilinear, require_only
from cdc_views.plan.incremental.delta_plans.top_rows import (
    OrderColumn,
    PatchPlan,
    merged_plan,
    require_rows,
    searched_plan,
)
from cdc_views.plan.incremental.expressions.derived_table import WantedTable
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.expressions.select_text import outside_of_parentheses
from cdc_views.plan.incremental.inlined import Edit
from cdc_views.plan.incremental.operators import Scan
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import outputs_of
from cdc_views.views.quoting import quoted_name
from cdc_views.views.references import ParsedQuery
from cdc_views.views.selected import given_name
from cdc_views.views.text import has_collation

_OF_SELECT: Final = frozenset({"with_", "expressions", "from_", "joins", "where", "order", "limit", "offset"})


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
    operator, scope = build_from(select, leaf_of, Expressions(query))
    require_multilinear(operator, select)
    built = build(select, leaf_of, Expressions(query))
    outputs = outputs_of(built, columns, are_renamed=query.definition.columns is not None)
    plan = merged_plan(operator, outputs, _most(select), row_keys)
    order = _order_column(select, outputs, _names(query, columns), scope)
    plan = replace(plan, order=order, offset=_offset(select))
    if plan.offset and plan.order is None:
        raise NotIncremental("OFFSET without a column by which the rows are searched for")
    return plan


def stored_rows_plan(
    query: ParsedQuery,
    tables: Sequence[str],
    columns: Mapping[str, str],
    expressions: Expressions,
    appended: Iterable[Edit],
) -> tuple[PatchPlan, list[Edit]]:
    """Plan a view that keeps the first rows of a query, if all of its rows are stored; if not, they are wanted.

    `tables` are the inputs of the view, `columns` its own with their Arrow types, `appended` what is added to its text.
    Returns the edits of the text after the stored rows, too. Raises NotIncremental.
    """
    tree = query.tree
    if not isinstance(tree, exp.Select | exp.SetOperation) or not tree.args.get("order"):
        raise NotIncremental("no order")
    if has_collation(query.tokens):
        raise NotIncremental("a collation, which the stored values do not have")
    most, wanted, names = _most(tree), _all_rows(query, tables), _names(query, columns)
    edits = _order_by_results(tree, names, [each for each in appended if each.start >= wanted.end])
    found = expressions.rows_of(wanted)
    if found is None:
        raise NotIncremental("no internal view stores the rows")
    leaf, key = found
    if list(leaf.types.values()) != list(columns.values()):
        raise NotIncremental("the columns of its result are not all known")
    both = zip(columns, leaf.types, strict=True)
    outputs = [Column(name, frozenset({LeafColumn(leaf, stored)})) for name, stored in both]
    plan = merged_plan(Scan(leaf), outputs, most, {leaf.source: key}) if key else searched_plan(leaf, most)
    plan = replace(plan, order=_order_column(tree, outputs, names), offset=_offset(tree))
    is_reduced = tree.args.get("group") or tree.args.get("distinct")
    if not plan.is_merged and plan.order is None and not is_reduced:
        raise NotIncremental("rows of tables that would all be stored, and read in each epoch")
    return plan, edits


def _names(query: ParsedQuery, columns: Iterable[str]) -> list[str]:
    """What ORDER BY calls the columns of the result, in lower case; empty where Spark makes a name up.

    `columns` are those of the view. A star has their names, unless the view has given them others.
    """
    items = query.tree.selects
    if not any(item.is_star for item in items):
        return [given_name(item).lower() for item in items]
    is_known = query.definition.columns is None and all(item.is_star or given_name(item) for item in items)
    return [name.lower() for name in columns] if is_known else [""]


def _order_column(
    tree: exp.Query, outputs: Sequence[Column], names: Sequence[str], scope: Scope | None = None
) -> OrderColumn | None:
    """The first column of ORDER BY, if leaf rows can be searched for by it. `scope` is that of the FROM below it."""
    ordered = tree.args["order"].expressions[0]
    node, column = ordered.this, None
    if not all(names):  # a name that Spark makes up may be any
        return None
    if isinstance(node, exp.Literal) and node.is_int:
        column = outputs[int(node.name) - 1]
    elif isinstance(node, exp.Column) and not node.table and node.name.lower() in names:
        column = outputs[names.index(node.name.lower())]
    elif isinstance(node, exp.Column) and node.parts[0].name.lower() in names:
        return None  # a field of a selected struct
    elif scope is not None:
        column = scope.resolve(node)
    elif len(tree.selects) == len(outputs):  # a selected column under the name of its table
        column = next((one for one, item in zip(outputs, tree.selects, strict=True) if item.unalias() == node), None)
    if column is None or len(column.origin) != 1:
        return None
    (origin,) = column.origin
    same = [each for each in (scope.columns if scope is not None else ()) if each.origin == column.origin]
    has_values = origin.name in origin.leaf.never_null or any(each.is_never_null for each in same)
    is_searched = is_ordered(origin.type) and (has_values or not ordered.args.get("nulls_first"))
    return OrderColumn(origin, bool(ordered.args.get("desc")), has_values) if is_searched else None


def _order_by_results(tree: exp.Query, names: Sequence[str], appended: Sequence[Edit]) -> list[Edit]:
    """The edits after which ORDER BY names columns of the result only. Raises NotIncremental."""
    if not all(names) or len({*names}) < len(names):
        raise NotIncremental("columns of the result without a name of their own")
    ordered = [each.this for each in tree.args["order"].expressions]
    renamed = [_renamed(node, tree, names) for node in ordered if not _is_named(node, names)]
    keys = [each for each in appended if each.start == each.end]
    for key in keys:
        columns = sqlglot.parse_one(f"SELECT 1{key.after}", dialect="spark").args["expressions"]
        if not all(_is_named(column, names) for column in columns):
            raise NotIncremental("rows that are not ordered by columns of the view")
    return [*renamed, *keys]


def _is_named(node: exp.Expr, names: Collection[str]) -> bool:
    """Whether an item of ORDER BY is a column of the result, by its name or its number."""
    if isinstance(node, exp.Literal):
        return node.is_int
    return isinstance(node, exp.Column) and not node.table and node.name.lower() in names


def _renamed(node: exp.Expr, tree: exp.Query, names: Collection[str]) -> Edit:
    """The edit of an item of ORDER BY that is a selected column under the name of its table, not a selected field."""
    items = tree.selects if isinstance(tree, exp.Select) else []
    name = next((given_name(item) for item in items if item.unalias() == node), None)
    if name is None or not isinstance(node, exp.Column) or node.parts[0].name.lower() in names:
        raise NotIncremental("rows that are not ordered by columns of the view")
    return Edit(int(node.parts[0].meta["start"]), int(node.parts[-1].meta["end"]) + 1, quoted_name(name))


def _all_rows(query: ParsedQuery, tables: Sequence[str]) -> WantedTable:
    """The query without its ORDER BY and LIMIT."""
    tokens = query.tokens
    *_, order = (each for each in outside_of_parentheses(tokens) if tokens[each].token_type is TokenType.ORDER_BY)
    start, end = tokens[0].start, tokens[order - 1].end + 1
    return WantedTable(tuple(tables), start, end, query.definition.sql[start:end], may_repeat=True)


def _offset(select: exp.Query) -> int:
    offset = select.args.get("offset")
    if offset is None:
        return 0
    number = offset.expression
    if not isinstance(number, exp.Literal) or not number.is_int:
        raise NotIncremental("no fixed OFFSET")
    return int(number.name)


def _most(select: exp.Query) -> int:
    limit = select.args.get("limit")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    if not isinstance(number, exp.Literal) or not number.is_int or int(number.name) < 1:
        raise NotIncremental("no fixed LIMIT")
    return int(number.name)

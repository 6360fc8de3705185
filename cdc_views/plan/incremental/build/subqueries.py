"""The subqueries of expressions, and of LATERAL: each is put above the FROM that it depends on."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from cdc_views.plan.facts.keys import nested_queries
from cdc_views.plan.incremental.build.context import Context, want, want_all, with_ctes
from cdc_views.plan.incremental.build.from_clause import From, has_stored_row, rows_of
from cdc_views.plan.incremental.columns import Column, are_comparable
from cdc_views.plan.incremental.operators import Dependent, Equality, Operator
from cdc_views.plan.incremental.operators.operator import passes
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope, conjuncts


class WithoutEquality(NotIncremental):
    """A subquery that is not joined to the query around it; its row may be stored (expressions/one_row.py)."""


def dependent(outer: Operator, query: exp.Expr, context: Context) -> Operator:
    """Put a subquery of an expression above the FROM that it depends on."""
    scope = context.outer
    assert scope is not None
    while isinstance(query, exp.Subquery) and not query.args.get("with_"):
        query = query.this
    inner, equalities = _correlated(query, context)
    equalities = [each for each in equalities if each.is_between(outer, inner)]
    holder = _holder(query)
    if isinstance(holder, exp.In) and not equalities and _is_set(query, holder):
        inner, equalities = _in_values(holder, query, context, outer)
    if not inner.leaves:
        return outer
    if not equalities and has_stored_row(query, context):
        return outer
    if not equalities:
        raise WithoutEquality("a subquery without an equality of columns with the query around it")
    return Dependent(outer, inner, tuple(equalities))


def _holder(query: exp.Expr) -> exp.Expr | None:
    node = query.parent
    while isinstance(node, exp.Subquery | exp.Paren):
        node = node.parent
    return node


def _is_set(query: exp.Expr, holder: exp.In) -> bool:
    """Whether a query has the values of an IN.

    In a list, or in parentheses of its own, it is one value, which is NULL if the query has no row.
    """
    inside = holder.args.get("query")
    return inside is query or (isinstance(inside, exp.Subquery) and inside.this is query)


def _must_hold(condition: exp.Expr) -> bool:
    """Whether a condition stands where NULL means the same as false, and where names are those of FROM."""
    node = condition.parent
    while isinstance(node, exp.And | exp.Or | exp.Paren):
        node = node.parent
    return isinstance(node, exp.Where)


def _is_in_where(node: exp.Expr) -> bool:
    where = node.find_ancestor(exp.Where, exp.Query)
    return isinstance(where, exp.Where) and isinstance(where.parent, exp.Select)


def _is_selected(node: exp.Expr) -> bool:
    """Whether an expression is one of those that its SELECT returns, or a part of one."""
    while node.parent is not None and not isinstance(node.parent, exp.Query):
        node = node.parent
    return isinstance(node.parent, exp.Select) and any(node is item for item in node.parent.expressions)


def _in_values(holder: exp.In, query: exp.Expr, context: Context, outer: Operator) -> tuple[Operator, list[Equality]]:
    """The subquery of an IN, and the equalities of its columns with the values before IN.

    Raises NotIncremental if a NULL on either side may decide.
    """
    scope = context.outer
    assert scope is not None
    built = rows_of(query, query, context)
    values = holder.this.expressions if isinstance(holder.this, exp.Tuple) else [holder.this]
    found = built.columns if built.columns is not None and len(built.columns) == len(values) else [None] * len(values)
    known = [scope.resolve(value) or context.expressions.column(value, scope) for value in values]
    pairs = list(zip(known, found, strict=True))
    if not _must_hold(holder):
        # In HAVING and QUALIFY a name may be that of a result.
        if not _is_in_where(holder) and not _is_selected(holder):
            raise NotIncremental(
                "IN outside of WHERE and SELECT: one NULL of the subquery changes all rows; use EXISTS"
            )
        sides = [
            (each, operator) for pair in pairs for each, operator in zip(pair, (outer, built.operator), strict=True)
        ]
        if not all(_has_values(column, operator, context) for column, operator in sides):
            name = "NOT IN" if _is_in_where(holder) else "IN in SELECT"
            raise NotIncremental(
                f"{name} with columns that may be NULL: one NULL of the subquery changes all rows; "
                "add IS NOT NULL on both sides, declare the columns NOT NULL, or use NOT EXISTS"
            )
    equalities = [
        Equality(value.origin, column.origin)
        for value, column in pairs
        if value is not None and column is not None
        and value.origin and column.origin and are_comparable(value.origin, column.origin)
    ]  # fmt: skip
    if not equalities:
        want(values, scope, context.expressions)
        want_all(filter(None, found))
    # A value that is cast may be NULL after that.
    return built.operator, equalities if _must_hold(holder) or len(equalities) == len(pairs) else []


def _has_values(column: Column | None, operator: Operator, context: Context) -> bool:
    """Whether a column of an operator is NULL in no row, as long as those of tables hold none that are NOT NULL."""
    if column is None or column.is_never_null:
        return column is not None
    return bool(column.origin) and passes(operator, column.origin) and context.expressions.have_values(column.origin)


def _correlated(query: exp.Expr, context: Context) -> tuple[Operator, list[Equality]]:
    """The input of a correlated subquery, and its equalities with the columns around it, those first."""
    context = with_ctes(query, context)
    if not isinstance(query, exp.Select):
        return context.query(query, context).operator, []
    frame = From(context)
    operator = frame.build(query)
    for nested in nested_queries(query):
        if not any(nested is each for each in frame.laterals):
            operator = dependent(operator, nested, replace(context, outer=frame.scope))
    where = query.args.get("where")
    pairs = [
        (one, other, isinstance(condition, exp.NullSafeEQ))
        for condition in conjuncts([where.this if where else None])
        if isinstance(condition, exp.EQ | exp.NullSafeEQ)
        for one, other in ((condition.left, condition.right), (condition.right, condition.left))
        if _is_of_outer(other, frame.scope)
    ]
    equalities = [
        Equality(outer.origin, inner.origin, is_null_safe)
        for one, other, is_null_safe in pairs
        if (inner := frame.resolve(one)) is not None
        and (outer := frame.resolve_outer(other)) is not None
        and inner.origin and outer.origin and are_comparable(inner.origin, outer.origin)
    ]  # fmt: skip
    if not equalities:
        want([one for one, _, _ in pairs], frame.scope, context.expressions)
        want([other for _, other, _ in pairs], frame.scope.outer or frame.scope, context.expressions)
    return operator, equalities


def _is_of_outer(node: exp.Expr, scope: Scope) -> bool:
    """Whether all columns of an expression, one at least, are those of the FROM around."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and all(scope.resolve_outer(each) is not None for each in columns)

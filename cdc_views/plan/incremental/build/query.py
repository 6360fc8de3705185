"""A whole query: its SELECTs and set operations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from cdc_views.plan.facts.keys import is_aggregated, is_unclear, makes_rows, nested_queries, windows
from cdc_views.plan.incremental.build.context import (
    NOTHING,
    Built,
    Context,
    LeafOf,
    renamed,
    want,
    want_all,
    with_ctes,
)
from cdc_views.plan.incremental.build.from_clause import From
from cdc_views.plan.incremental.build.subqueries import WithoutEquality, dependent
from cdc_views.plan.incremental.columns import Column, Origin, are_comparable
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import Grouping, Operator, SetOperation
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.selected import given_name


def build(tree: exp.Query, leaf_of: LeafOf, expressions: Expressions, *, by_rows: bool = False) -> Built:
    """Build the operators of a query. Raises NotIncremental for a construct that has none.

    `expressions` knows the stored values, and collects those that would be needed. `by_rows`: the output of windows is
    restricted by other columns than those of PARTITION BY, too.
    """
    return _query(tree, Context(leaf_of, expressions, _query, dependent, by_rows))


def build_from(
    select: exp.Select, leaf_of: LeafOf, expressions: Expressions, around: exp.Select | None = None
) -> tuple[Operator, Scope]:
    """Build the FROM and WHERE of a query that is one SELECT, with the subqueries of its expressions.

    `around` is the query that has it as its only derived table, if there is one. Returns also what names stand for in
    it. Raises NotIncremental for a construct that has no operator.
    """
    context = Context(leaf_of, expressions, _query, dependent)
    if around is not None:
        context = with_ctes(around, context)
        context = context.inside(around.args["from_"].this)
    context = with_ctes(select, context)
    frame = From(context)
    operator, lacking = _with_subqueries(select, frame.build(select), frame, context)
    if lacking is not None:
        raise lacking
    return operator, frame.scope


def _query(query: exp.Expr, context: Context) -> Built:
    context = with_ctes(query, context)
    if isinstance(query, exp.Select):
        return _select(query, context)
    if isinstance(query, exp.Subquery):
        built = _query(query.this, context)
        alias = query.args.get("alias")
        built = renamed(built, [column.name for column in alias.columns] if alias else [])
    elif isinstance(query, exp.SetOperation):
        built = _set_operation(query, context)
    elif isinstance(query, exp.Values):
        return Built(NOTHING, None)
    else:
        raise NotIncremental("a table or a join in parentheses")
    return replace(built, operator=_limited(query, built.operator))


def _set_operation(query: exp.SetOperation, context: Context) -> Built:
    if query.args.get("by_name"):
        raise NotIncremental("a set operation BY NAME")
    left, right = _query(query.left, context), _query(query.right, context)
    if left.columns is None or right.columns is None or len(left.columns) != len(right.columns):
        raise NotIncremental("the columns of a set operation are not all known")
    columns = [_of_branches(*both) for both in zip(left.columns, right.columns, strict=True)]
    outputs = frozenset(column.origin for column in columns if column.origin)
    if not outputs:
        want_all(columns)
    return Built(SetOperation((left.operator, right.operator), outputs), columns)


def _of_branches(left: Column, right: Column) -> Column:
    is_passed_on = left.origin and right.origin and are_comparable(left.origin, right.origin)
    if is_passed_on:
        return Column(left.name, left.origin | right.origin)
    return Column(left.name, want=partial(want_all, (left, right)))


def _select(select: exp.Select, context: Context) -> Built:
    frame = From(context)
    operator = frame.build(select)
    scope = frame.scope
    qualify = select.args.get("qualify")
    if qualify is not None and any(qualify.find_all(exp.Query)) and (select.args.get("group") or is_aggregated(select)):
        # Names around these subqueries are aliases of SELECT first.
        raise NotIncremental("a subquery in QUALIFY of groups")
    operator, lacking = _with_subqueries(select, operator, frame, context)
    values = _Values(select, scope, context.expressions)
    operator = _grouped(select, operator, values)
    operator = _windowed(select, operator, values, by_rows=context.by_rows)
    columns = _outputs(select, values)
    if columns is not None and _has_sets(select):
        columns = [replace(each, is_never_null=False) for each in columns]
    equal = frozenset(column.origin for column in columns or () if column.origin)
    if not equal and not is_aggregated(select):
        want_all(columns or ())
    if distinct := select.args.get("distinct"):
        if distinct.args.get("on"):
            raise NotIncremental("DISTINCT ON")
        operator = Grouping(operator, equal, "DISTINCT", passes_rows=False)
    if lacking is not None:
        raise lacking  # only now, when everything that could be stored is known to be wanted
    return Built(_limited(select, operator), columns)


def _with_subqueries(
    select: exp.Select, operator: Operator, frame: From, context: Context
) -> tuple[Operator, WithoutEquality | None]:
    """The subqueries of expressions above the FROM, and why one of them is missing there."""
    lacking = None
    for query in nested_queries(select):
        if any(query is each for each in frame.laterals):
            continue
        try:
            operator = dependent(operator, query, replace(context, outer=frame.scope))
        except WithoutEquality as reason:
            lacking = lacking or reason
    return operator, lacking


def _limited(query: exp.Expr, operator: Operator) -> Operator:
    if not query.args.get("limit") and not query.args.get("offset"):
        return operator
    return Grouping(operator, frozenset(), "LIMIT over all rows", passes_rows=True)


@dataclass(frozen=True)
class _Values:
    """What the expressions of a SELECT pass on: a column of its FROM, or a stored value."""

    select: exp.Select
    scope: Scope
    expressions: Expressions

    def resolve(self, node: exp.Expr) -> Column | None:
        found = self.scope.resolve(node) or self.expressions.column(node, self.scope)
        return found or self.expressions.window_start(node, self._groups, self.scope)

    def origins(self, nodes: Iterable[exp.Expr]) -> frozenset[Origin]:
        """The origins of those expressions that have one."""
        return frozenset(column.origin for column in map(self.resolve, nodes) if column is not None and column.origin)

    def want(self, nodes: Iterable[exp.Expr]) -> None:
        """Without the values of these expressions, no row of the SELECT can be looked up."""
        want(list(nodes), self.scope, self.expressions, self._groups)

    @property
    def _groups(self) -> Sequence[exp.Expr]:
        group = self.select.args.get("group")
        return group.expressions if group is not None else ()


def _grouped(select: exp.Select, operator: Operator, values: _Values) -> Operator:
    group = select.args.get("group")
    if group is None:
        if not is_aggregated(select):
            return operator
        return Grouping(operator, frozenset(), "an aggregate over all rows", passes_rows=False)
    if any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets")):
        return Grouping(operator, frozenset(), "grouping sets with a total over all rows", passes_rows=False)
    items = [_group_item(each, values) for each in _group_expressions(group, select, values.scope)]
    _require_written_once(items, [*select.expressions, *group.expressions, select.args.get("having")])
    equal = values.origins(items)
    if not equal:
        values.want(items)
    return Grouping(operator, equal, "GROUP BY over computed values only", passes_rows=False)


def _require_written_once(groups: Iterable[exp.Expr], clauses: Iterable[exp.Expr | None]) -> None:
    """Raise NotIncremental if a subquery that is a group is written again in one of these clauses.

    Spark wants it to be the same expression. In the text that runs, each place of a table has rows of its own.
    """
    of_groups = [query for each in groups for query in each.find_all(exp.Query)]
    found = (query for each in clauses if each is not None for query in each.find_all(exp.Query))
    others = [query for query in found if not any(query is each for each in of_groups)]
    if any(query == each for query in others for each in of_groups):
        raise NotIncremental("a subquery in GROUP BY that is written twice")


def _has_sets(select: exp.Select) -> bool:
    """Whether it has grouping sets: a column is NULL in those that lack it."""
    group = select.args.get("group")
    return group is not None and any(group.find_all(exp.Cube, exp.Rollup, exp.GroupingSets))


def _group_expressions(group: exp.Group, select: exp.Select, scope: Scope) -> Iterator[exp.Expr]:
    if group.args.get("all"):
        if scope.has("all"):
            raise NotIncremental('GROUP BY ALL, which may mean a column "all"')
        if any(map(is_unclear, select.expressions)):
            raise NotIncremental("GROUP BY ALL beside a function that may be an aggregate")
        yield from (item.unalias() for item in select.expressions)
    yield from group.expressions


def _group_item(expression: exp.Expr, values: _Values) -> exp.Expr:
    """What an item of GROUP BY stands for: itself, or the selected expression whose number or alias it is."""
    items = values.select.expressions
    if isinstance(expression, exp.Literal) and not expression.is_string and expression.name.isdigit():
        place = int(expression.name) - 1
        return items[place].unalias() if place < len(items) else expression
    if values.resolve(expression) is not None or not isinstance(expression, exp.Column) or expression.table:
        return expression
    named = [item for item in items if item.alias.lower() == expression.name.lower()]
    return named[0].unalias() if len(named) == 1 else expression


def _windowed(select: exp.Select, operator: Operator, values: _Values, *, by_rows: bool) -> Operator:
    """One operator for all windows that share a column of PARTITION BY; others follow, as if in a query around it."""
    equal: list[frozenset[Origin]] = []
    for partition in (parts for _, _, parts in windows(select)):
        origins = values.origins(partition)
        if not origins:
            values.want(partition)
        sharing = next((each for each in equal if each & origins), None)
        if sharing is None:
            equal.append(origins)
        else:
            equal[equal.index(sharing)] = sharing & origins
    for shared in equal:
        name = "a window over all rows, or partitioned by computed values"
        operator = Grouping(operator, shared, name, passes_rows=True, by_rows=by_rows)
    return operator


def _outputs(select: exp.Select, values: _Values) -> list[Column] | None:
    found: list[Column] = []
    for item in select.expressions:
        value = item.unalias()
        if isinstance(value, exp.Star) or (isinstance(value, exp.Column) and isinstance(value.this, exp.Star)):
            star = values.scope.star(value)
            if star is None:
                return None
            found += star
        elif isinstance(item, exp.Aliases):
            found += [Column(name.name) for name in item.expressions]
        elif makes_rows(item) and not item.alias:
            return None  # Spark decides how many columns there are, and their names
        else:
            column = values.resolve(value)
            computed = Column("", want=partial(values.want, [value]))
            found.append(replace(column or computed, name=given_name(item)))
    return found

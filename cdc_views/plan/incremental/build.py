"""From the syntax tree of a view to its operators.

Each SELECT becomes, from the bottom: the joins of its FROM; its subqueries; GROUP BY; windows; DISTINCT; LIMIT. A CTE
is built again for each place that names it, so that each place can be reduced by its own demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.columns import Column, Leaf, Origin, Path, are_comparable
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import (
    Constant,
    Dependent,
    Equality,
    FullJoin,
    Grouping,
    InnerJoin,
    Operator,
    OuterJoin,
    Scan,
    SetOperation,
)
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope, Source, conjuncts
from cdc_views.plan.keys import is_aggregated, makes_rows, nested_queries, windows

LeafOf = Callable[[exp.Table, Path], Leaf]
"""Returns the leaf for a table that a query names; the path ends with the table's own offset."""

_NOTHING: Final = Constant()


@dataclass(frozen=True)
class Built:
    """An operator and the columns of its output, in order; None if they are not all known. `leaf`: it is that table."""

    operator: Operator
    columns: Sequence[Column] | None
    leaf: Leaf | None = None


@dataclass(frozen=True)
class _Cte:
    query: exp.Expr
    names: tuple[str, ...]
    context: _Context


@dataclass(frozen=True)
class _Context:
    """Where a query stands: the CTEs that it may name, the CTE references that lead to it, the FROM around it.

    `by_rows` is that of its windows (operators/grouping.py).
    """

    leaf_of: LeafOf
    expressions: Expressions
    by_rows: bool = False
    ctes: Mapping[str, _Cte] = field(default_factory=dict)
    path: Path = ()
    outer: Scope | None = None


def build(tree: exp.Query, leaf_of: LeafOf, expressions: Expressions, *, by_rows: bool = False) -> Built:
    """Build the operators of a query. Raises NotIncremental for a construct that has none.

    `expressions` knows the stored values, and collects those that would be needed. `by_rows`: the output of windows is
    restricted by other columns than those of PARTITION BY, too.
    """
    return _query(tree, _Context(leaf_of, expressions, by_rows))


def build_from(select: exp.Select, leaf_of: LeafOf, expressions: Expressions) -> tuple[Operator, Scope]:
    """Build the FROM and WHERE of a query that is one SELECT; returns also what names stand for in it.

    Raises NotIncremental for a construct that has no operator.
    """
    frame = _From(_with_ctes(select, _Context(leaf_of, expressions)))
    return frame.build(select), frame.scope


def start_of(table: exp.Table) -> int:
    """The offset at which the text names a table."""
    return min(int(part.meta["start"]) for part in table.parts if "start" in part.meta)


def _query(query: exp.Expr, context: _Context) -> Built:
    context = _with_ctes(query, context)
    if isinstance(query, exp.Select):
        return _select(query, context)
    if isinstance(query, exp.Subquery):
        built = _query(query.this, context)
        alias = query.args.get("alias")
        built = _renamed(built, [column.name for column in alias.columns] if alias else [])
    elif isinstance(query, exp.SetOperation):
        built = _set_operation(query, context)
    elif isinstance(query, exp.Values):
        return Built(_NOTHING, None)
    else:
        raise NotIncremental("a table or a join in parentheses")
    return replace(built, operator=_limited(query, built.operator))


def _with_ctes(query: exp.Expr, context: _Context) -> _Context:
    with_ = query.args.get("with_")
    if not isinstance(with_, exp.With):
        return context
    if with_.recursive:
        raise NotIncremental("a recursive query: each change may change all of its rows")
    for cte in with_.expressions:
        names = tuple(column.name for column in cte.args["alias"].columns)
        context = replace(context, ctes={**context.ctes, cte.alias.lower(): _Cte(cte.this, names, context)})
    return context


def _set_operation(query: exp.SetOperation, context: _Context) -> Built:
    if query.args.get("by_name"):
        raise NotIncremental("a set operation BY NAME")
    left, right = _query(query.left, context), _query(query.right, context)
    if left.columns is None or right.columns is None or len(left.columns) != len(right.columns):
        raise NotIncremental("the columns of a set operation are not all known")
    columns = [_of_branches(*both) for both in zip(left.columns, right.columns, strict=True)]
    outputs = frozenset(column.origin for column in columns if column.origin)
    return Built(SetOperation((left.operator, right.operator), outputs), columns)


def _of_branches(left: Column, right: Column) -> Column:
    is_passed_on = left.origin and right.origin and are_comparable(left.origin, right.origin)
    return Column(left.name, left.origin | right.origin if is_passed_on else frozenset())


def _select(select: exp.Select, context: _Context) -> Built:
    frame = _From(context)
    operator = frame.build(select)
    scope = frame.scope
    for query in nested_queries(select):
        if not any(query is each for each in frame.laterals):
            operator = _dependent(operator, query, replace(context, outer=scope))
    values = _Values(select, scope, context.expressions)
    operator = _grouped(select, operator, values)
    operator = _windowed(select, operator, values, by_rows=context.by_rows)
    columns = _outputs(select, values)
    if distinct := select.args.get("distinct"):
        if distinct.args.get("on"):
            raise NotIncremental("DISTINCT ON")
        equal = frozenset(column.origin for column in columns or () if column.origin)
        if not equal:
            values.want([item.unalias() for item in select.expressions])
        operator = Grouping(operator, equal, "DISTINCT", passes_rows=False)
    return Built(_limited(select, operator), columns)


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
        self.expressions.want(nodes, self.scope, self._groups)

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
    items = [_group_item(each, values) for each in _group_expressions(group, select)]
    equal = values.origins(items)
    if not equal:
        values.want(items)
    return Grouping(operator, equal, "GROUP BY over computed values only", passes_rows=False)


def _group_expressions(group: exp.Group, select: exp.Select) -> Iterator[exp.Expr]:
    if group.args.get("all"):
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
    partitions = [parts for _, _, parts in windows(select)]
    if not partitions:
        return operator
    shared = frozenset.intersection(*map(values.origins, partitions))
    if not shared:
        values.want(part for parts in partitions for part in parts)
    name = "a window over all rows, or partitioned by computed values"
    return Grouping(operator, shared, name, passes_rows=True, by_rows=by_rows)


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
            found.append(replace(column, name=item.alias_or_name) if column else Column(item.alias_or_name))
    return found


def _renamed(built: Built, names: Sequence[str]) -> Built:
    if not names:
        return built
    if built.columns is None or len(built.columns) != len(names):
        return replace(built, columns=None)
    return replace(built, columns=[replace(each, name=name) for each, name in zip(built.columns, names, strict=True)])


def _dependent(outer: Operator, query: exp.Expr, context: _Context) -> Operator:
    """Put a subquery of an expression above the FROM that it depends on."""
    scope = context.outer
    assert scope is not None
    while isinstance(query, exp.Subquery) and not query.args.get("with_"):
        query = query.this
    inner, equalities = _correlated(query, context)
    holder = _holder(query)
    if isinstance(holder, exp.In) and not equalities and _is_set(query, holder):
        inner, equalities = _in_values(holder, query, context, scope)
    if not inner.leaves:
        return outer
    if not equalities:
        raise NotIncremental("a subquery without an equality of columns with the query around it")
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


def _in_values(holder: exp.In, query: exp.Expr, context: _Context, scope: Scope) -> tuple[Operator, list[Equality]]:
    """The subquery of an IN, and the equality of its column with the value before IN.

    Raises NotIncremental if a NULL on either side may decide.
    """
    built = _query(query, context)
    column = scope.resolve(holder.this)
    only = built.columns[0] if built.columns is not None and len(built.columns) == 1 else None
    if not _must_hold(holder):
        if not _is_in_where(holder):  # in HAVING and QUALIFY a name may be that of a selected column
            raise NotIncremental(
                "NOT IN, or IN outside of WHERE: one NULL of the subquery changes all rows; use EXISTS"
            )
        if not (column and column.is_never_null and only and only.is_never_null):
            raise NotIncremental(
                "NOT IN with columns that may be NULL: one NULL of the subquery changes all rows; "
                "add IS NOT NULL on both sides, or use NOT EXISTS"
            )
    if column is None or only is None or not column.origin or not only.origin:
        return built.operator, []
    return built.operator, [(column.origin, only.origin)] if are_comparable(column.origin, only.origin) else []


def _correlated(query: exp.Expr, context: _Context) -> tuple[Operator, list[Equality]]:
    """The input of a correlated subquery, and its equalities with the columns around it, those first."""
    context = _with_ctes(query, context)
    if not isinstance(query, exp.Select):
        return _query(query, context).operator, []
    frame = _From(context)
    operator = frame.build(query)
    for nested in nested_queries(query):
        if not any(nested is each for each in frame.laterals):
            operator = _dependent(operator, nested, replace(context, outer=frame.scope))
    where = query.args.get("where")
    return operator, [
        (outer.origin, inner.origin)
        for condition in conjuncts([where.this if where else None])
        if isinstance(condition, exp.EQ)
        for one, other in ((condition.left, condition.right), (condition.right, condition.left))
        if (inner := frame.scope.resolve(one)) is not None
        and (outer := frame.scope.resolve_outer(other)) is not None
        and inner.origin and outer.origin and are_comparable(inner.origin, outer.origin)
    ]  # fmt: skip


class _From:
    """Builds the joins of a FROM, and what names stand for in it. `laterals` are the queries of LATERAL."""

    def __init__(self, context: _Context) -> None:
        self._context = context
        self.scope = Scope(context.outer)
        self.laterals: list[exp.Expr] = []

    def build(self, select: exp.Select) -> Operator:
        """Build the joins, from left to right; inner joins in a row are one operator."""
        from_ = select.args.get("from_")
        if from_ is None:
            return _NOTHING
        joins = select.args.get("joins") or []
        if any(node.args.get("pivots") for node in (from_.this, *(join.this for join in joins))):
            raise NotIncremental("PIVOT")
        operators = [self._source(from_.this)]
        conditions: list[exp.Expr | None] = []
        equalities: list[Equality] = []
        for join in joins:
            if isinstance(join.this, exp.Lateral):
                operators = [self._lateral(self._inner(operators, equalities, conditions), join.this)]
                conditions, equalities = [], []
            elif _is_inner(join):
                operators.append(self._source(join.this))
                equalities += self._using(join)
                conditions.append(join.args.get("on"))
            else:
                # The conditions of WHERE hold only after the outer join.
                operators = [self._outer(self._inner(operators, equalities, conditions), join)]
                conditions, equalities = [], []
        where = select.args.get("where")
        filters = [where.this if where else None]
        operator = self._inner(operators, equalities, conditions, filters)
        for lateral in select.args.get("laterals") or ():
            names = [column.name for column in lateral.args["alias"].columns]
            self.scope.sources.append(
                Source(lateral.alias.lower(), [Column(name) for name in names], has_more=not names)
            )
        self.scope.require(filters)
        return _with_equalities(operator, self._equalities(filters))

    def _source(self, node: exp.Expr) -> Operator:
        """Build an item of FROM and add it to the scope."""
        built = self._item(node)
        alias = node.args.get("alias")
        if isinstance(node, exp.Table) and alias:
            built = _renamed(built, [column.name for column in alias.columns])
        name = node.alias_or_name.lower()
        if any(each.alias == name for each in self.scope.sources):
            raise NotIncremental(f'"{name}" stands for two tables')
        leaf = built.leaf
        self.scope.sources.append(Source(name, list(built.columns or ()), has_more=built.columns is None, leaf=leaf))
        return built.operator

    def _item(self, node: exp.Expr) -> Built:
        context = self._context
        if isinstance(node, exp.Subquery):
            if node.args.get("joins"):
                raise NotIncremental("a join in parentheses")
            return _query(node, replace(context, outer=None))
        if isinstance(node, exp.Values | exp.Unnest):
            return Built(_NOTHING, None)
        if not isinstance(node, exp.Table) or node.args.get("joins"):
            raise NotIncremental("an item of FROM that is neither a table nor a query")
        if node.args.get("sample"):
            raise NotIncremental("TABLESAMPLE")
        if not isinstance(node.this, exp.Identifier | exp.Dot):
            return Built(_NOTHING, None)  # a function that makes rows
        path = (*context.path, start_of(node))
        cte = context.ctes.get(node.name.lower()) if not node.args.get("db") else None
        if cte is not None:
            return _renamed(_query(cte.query, replace(cte.context, path=path, outer=None)), cte.names)
        leaf = context.leaf_of(node, path)
        return Built(context.expressions.scanned(leaf), Scan(leaf).columns, leaf)

    def _lateral(self, operator: Operator, lateral: exp.Lateral) -> Operator:
        query = lateral.this
        alias = lateral.args.get("alias")
        names = [column.name for column in alias.columns] if alias else []
        if isinstance(query, exp.Subquery):
            self.laterals.append(query)
            operator = _dependent(operator, query, replace(self._context, outer=self.scope))
            columns = None if names else _query(query, replace(self._context, outer=self.scope)).columns
            names = names or [column.name for column in columns or ()]
        self.scope.sources.append(Source(lateral.alias.lower(), [Column(name) for name in names], has_more=not names))
        return operator

    def _outer(self, left: Operator, join: exp.Join) -> Operator:
        before = len(self.scope.sources)
        right = self._source(join.this)
        merged = self._using(join)
        found = [*merged, *self._equalities([join.args.get("on")])]
        if not found:
            self._want([join.args.get("on")])
        if join.kind not in ("SEMI", "ANTI"):
            self.scope.make_optional(join.side, before)
        if join.args.get("on") is not None and any(join.args["on"].find_all(exp.Query)):
            raise NotIncremental("a subquery in the condition of an outer join")
        equalities = tuple(
            (one, other) if _is_below(one, left) else (other, one)
            for one, other in found
            if _is_below(one, left) != _is_below(other, left)
        )
        if not equalities:
            raise NotIncremental("an outer, semi or anti join without an equality of columns")
        if join.kind in ("SEMI", "ANTI"):
            self.scope.sources[before].is_hidden = True
            return Dependent(left, right, equalities)
        if join.side == "FULL":
            return FullJoin(left, right, equalities, frozenset(one | other for one, other in merged))
        if join.side == "RIGHT":
            return OuterJoin(right, left, tuple((other, one) for one, other in equalities))
        return OuterJoin(left, right, equalities)

    def _using(self, join: exp.Join) -> list[Equality]:
        """Merge the columns of USING or NATURAL; returns their equalities, the left column first."""
        *left, right = self.scope.sources
        names = [column.name for column in join.args.get("using") or ()]
        if join.method == "NATURAL":
            if any(each.has_more for each in self.scope.sources):
                raise NotIncremental("a NATURAL join of columns that are not all known")
            if self.scope.merged:
                raise NotIncremental("a NATURAL join of columns that are merged already")
            own = {column.name for column in right.columns}
            names = list(dict.fromkeys(c.name for each in left for c in each.columns if c.name in own))
            in_lower_case = {name.lower() for name in own}
            if any(c.name.lower() in in_lower_case and c.name not in own for each in left for c in each.columns):
                raise NotIncremental("a NATURAL join of names that differ in case only")
        found: list[Equality] = []
        merged: dict[str, Column] = {}
        for name in names:
            one = Scope(None, left, dict(self.scope.merged)).resolve(exp.column(name))
            other = Scope(None, [right]).resolve(exp.column(name))
            kept: Origin = frozenset()
            if one and other and one.origin and other.origin and are_comparable(one.origin, other.origin):
                found.append((one.origin, other.origin))
                kept = {"RIGHT": other.origin, "FULL": one.origin | other.origin}.get(join.side, one.origin)
            merged[name.lower()] = Column(name, kept)
        self.scope.merged = {**merged, **{name: each for name, each in self.scope.merged.items() if name not in merged}}
        return found

    def _equalities(self, conditions: Sequence[exp.Expr | None]) -> list[Equality]:
        found: list[Equality] = []
        for condition in conjuncts(conditions):
            if not isinstance(condition, exp.EQ):
                continue
            left, right = self._resolve(condition.left), self._resolve(condition.right)
            if left is None or right is None or not left.origin or not right.origin:
                continue
            if are_comparable(left.origin, right.origin):
                found.append((left.origin, right.origin))
        return found

    def _resolve(self, node: exp.Expr) -> Column | None:
        return self.scope.resolve(node) or self._context.expressions.column(node, self.scope)

    def _inner(
        self,
        operators: Sequence[Operator],
        merged: Sequence[Equality],
        conditions: Sequence[exp.Expr | None],
        filters: Sequence[exp.Expr | None] = (),
    ) -> Operator:
        """Join the inputs by the equalities of USING and of ON; those of the filters hold above this join, too.

        Where these leave inputs apart, the values of equal expressions are wanted.
        """
        equalities = [*merged, *self._equalities(conditions)]
        if not _are_connected(operators, [*equalities, *self._equalities(filters)]):
            self._want([*conditions, *filters])
        return _joined(operators, equalities)

    def _want(self, conditions: Sequence[exp.Expr | None]) -> None:
        for condition in conjuncts(conditions):
            sides = (condition.left, condition.right) if isinstance(condition, exp.EQ) else ()
            if all(side.find(exp.Column) for side in sides):
                self._context.expressions.want(sides, self.scope)


def _is_inner(join: exp.Join) -> bool:
    return not join.side and join.kind in ("", "INNER", "CROSS")


def _is_below(origin: Origin, operator: Operator) -> bool:
    return all(column.leaf in operator.leaves for column in origin)


def _are_connected(operators: Sequence[Operator], equalities: Sequence[Equality]) -> bool:
    """Whether equalities lead from each input to all others."""
    groups = [{number} for number, operator in enumerate(operators) if operator.leaves]
    for pair in _between(operators, equalities):
        both = {number for number, each in enumerate(operators) if any(_is_below(origin, each) for origin in pair)}
        joined = [group for group in groups if group & both]
        groups = [*(group for group in groups if group not in joined), set[int]().union(*joined)]
    return len(groups) <= 1


def _joined(operators: Sequence[Operator], equalities: Sequence[Equality]) -> Operator:
    """One operator for inputs that are joined by inner joins; equalities within one input restrict nothing."""
    if len(operators) == 1:
        return operators[0]
    return InnerJoin(tuple(operators), _between(operators, equalities))


def _between(operators: Sequence[Operator], equalities: Sequence[Equality]) -> tuple[Equality, ...]:
    """The equalities of columns of two different inputs."""
    below = [(pair, [next((n for n, each in enumerate(operators) if _is_below(origin, each)), None) for origin in pair])
             for pair in equalities]  # fmt: skip
    return tuple(pair for pair, (left, right) in below if left is not None and right is not None and left != right)


def _with_equalities(operator: Operator, equalities: Sequence[Equality]) -> Operator:
    """The operator with equalities that hold in its output: a filter of preserved rows commutes with an outer join."""
    if isinstance(operator, InnerJoin):
        children = tuple(_with_equalities(child, equalities) for child in operator.children)
        return InnerJoin(children, (*operator.equalities, *_between(children, equalities)))
    if isinstance(operator, OuterJoin):
        return replace(operator, preserved=_with_equalities(operator.preserved, equalities))
    return operator

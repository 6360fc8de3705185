"""FROM and WHERE: the joins from left to right, and what names stand for in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.build.context import NOTHING, Built, Context, renamed, want
from cdc_views.plan.incremental.columns import Column, Origin, are_comparable, start_of
from cdc_views.plan.incremental.expressions.one_row import may_stand_alone
from cdc_views.plan.incremental.operators import (
    Dependent,
    Equality,
    FullJoin,
    InnerJoin,
    Operator,
    OuterJoin,
    Scan,
    named_leaves,
)
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Derived, Scope, Source, conjuncts
from cdc_views.views.join_parentheses import is_inner, joins_inside, merges

_NAMING: Final = frozenset({"this", "alias", "joins"})  # joins inside of parentheses follow their first item


class From:
    """Builds the joins of a FROM, and what names stand for in it. `laterals` are the queries of LATERAL."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self.scope = Scope(context.outer)
        self.laterals: list[exp.Expr] = []

    def build(self, select: exp.Select) -> Operator:
        """Build the joins, and what WHERE says about them."""
        from_ = select.args.get("from_")
        if from_ is None:
            return NOTHING
        where = select.args.get("where")
        filters = [where.this if where else None]
        operator = self._joins(from_.this, select.args.get("joins") or [], filters)
        for lateral in select.args.get("laterals") or ():
            names = [column.name for column in lateral.args["alias"].columns]
            self.scope.sources.append(_relation(lateral, map(Column, names)))
        self.scope.require(filters)
        return _with_equalities(operator, self._equalities(filters))

    def _joins(self, first: exp.Expr, joins: Sequence[exp.Join], filters: Sequence[exp.Expr | None] = ()) -> Operator:
        """Build joins from left to right; inner joins in a row are one operator."""
        begin = len(self.scope.sources)
        operators = [self._source(first)]
        conditions: list[exp.Expr | None] = []
        equalities: list[Equality] = []
        for join in joins:
            if isinstance(join.this, exp.Lateral):
                operators = [self._lateral(self._inner(operators, equalities, conditions), join.this)]
                conditions, equalities = [], []
            elif is_inner(join):
                operators.append(self._source(join.this))
                equalities += self._using(join)
                conditions.append(join.args.get("on"))
            else:
                # The conditions of WHERE hold only after the outer join.
                operators = [self._outer(self._inner(operators, equalities, conditions), join, begin)]
                conditions, equalities = [], []
        return self._inner(operators, equalities, conditions, filters)

    def resolve(self, node: exp.Expr) -> Column | None:
        """The column of this FROM that an expression names, or the stored values of an expression over it."""
        return self.scope.resolve(node) or self._context.expressions.column(node, self.scope)

    def resolve_outer(self, node: exp.Expr) -> Column | None:
        """The same of the FROM around it, for an expression that names no column of this one."""
        assert self.scope.outer is not None
        return self.scope.resolve_outer(node) or self._context.expressions.column(node, self.scope.outer)

    def _source(self, node: exp.Expr) -> Operator:
        """Build an item of FROM and add it to the scope."""
        if node.args.get("pivots"):
            raise NotIncremental("PIVOT")
        inside = joins_inside(node)
        if inside is not None:
            first, joins = inside
            if any(merges(join) or isinstance(join.this, exp.Lateral) for join in joins):
                raise NotIncremental("USING, NATURAL or LATERAL in parentheses")
            if self.scope.merged:
                raise NotIncremental("USING or NATURAL beside a join in parentheses")
            return self._joins(first, joins)
        built = self._item(node)
        alias = node.args.get("alias")
        if isinstance(node, exp.Table | exp.Subquery) and alias:
            built = renamed(built, [column.name for column in alias.columns])
        name = node.alias_or_name.lower()
        if any(each.alias == name for each in self.scope.sources):
            raise NotIncremental(f'"{name}" stands for two tables')
        source = _relation(node, built.columns or ())
        self.scope.sources.append(replace(source, leaf=built.leaf, derived=self._derived(node, built)))
        return built.operator

    def _item(self, node: exp.Expr) -> Built:
        context = self._context
        if isinstance(node, exp.Subquery):
            select = self._select(node)
            inside = context.inside(node)
            return context.query(node, inside) if select is None else _derived(node, select, inside)
        if isinstance(node, exp.Values | exp.Unnest):
            return Built(NOTHING, None)
        if not isinstance(node, exp.Table):
            raise NotIncremental("an item of FROM that is neither a table nor a query")
        if node.args.get("sample"):
            raise NotIncremental("TABLESAMPLE")
        if not isinstance(node.this, exp.Identifier | exp.Dot):
            return Built(NOTHING, None)  # a function that makes rows
        cte = context.cte(node)
        if cte is not None:
            return renamed(_derived(cte.query, cte.query, context.inside(node)), cte.names)
        leaf = context.leaf_of(node, (*context.path, start_of(node)))
        return Built(context.expressions.scanned(leaf), Scan(leaf).columns, leaf)

    def _select(self, node: exp.Expr) -> exp.Expr | None:
        """The query that an item of FROM stands for, if it adds nothing but names to it."""
        if isinstance(node, exp.Subquery):
            return node.this if not any(each for name, each in node.args.items() if name not in _NAMING) else None
        cte = self._context.cte(node)
        return cte.query if cte is not None else None

    def _derived(self, node: exp.Expr, built: Built) -> Derived | None:
        select, sources = self._select(node), {each.source for each in built.operator.leaves}
        if select is None or len(sources) != 1:
            return None
        return Derived(select, *sources)

    def _lateral(self, operator: Operator, lateral: exp.Lateral) -> Operator:
        query = lateral.this
        alias = lateral.args.get("alias")
        names = [column.name for column in alias.columns] if alias else []
        if isinstance(query, exp.Subquery):
            self.laterals.append(query)
            operator = self._context.dependent(operator, query, replace(self._context, outer=self.scope))
            columns = None if names else self._context.query(query, replace(self._context, outer=self.scope)).columns
            names = names or [column.name for column in columns or ()]
        self.scope.sources.append(_relation(lateral, map(Column, names)))
        return operator

    def _outer(self, left: Operator, join: exp.Join, begin: int) -> Operator:
        """Build an outer, semi or anti join; the relations of its left side are those from `begin` on."""
        before = len(self.scope.sources)
        right = self._source(join.this)
        merged = self._using(join)
        found = [*merged, *self._equalities([join.args.get("on")])]
        if not found:
            self._want([join.args.get("on")])
        if join.kind not in ("SEMI", "ANTI"):
            self.scope.make_optional(join.side, begin, before)
        if join.args.get("on") is not None and any(join.args["on"].find_all(exp.Query)):
            raise NotIncremental("a subquery in the condition of an outer join")
        turned = (each if _is_below(each.left, left) else each.turned() for each in found)
        equalities = tuple(
            each
            for each in turned
            if _is_below(each.left, left) and not _is_below(each.right, left) and each.is_between(left, right)
        )
        if join.kind in ("SEMI", "ANTI"):
            for source in self.scope.sources[before:]:
                source.is_hidden = True
        if not right.leaves and join.side not in ("RIGHT", "FULL"):
            return left  # each row by itself decides which of the constant rows it joins
        if not equalities:
            raise NotIncremental("an outer, semi or anti join without an equality of columns")
        if join.kind in ("SEMI", "ANTI"):
            return Dependent(left, right, equalities)
        if join.side == "FULL":
            return FullJoin(left, right, equalities, frozenset(each.left | each.right for each in merged))
        if join.side == "RIGHT":
            return OuterJoin(right, left, tuple(each.turned() for each in equalities))
        return OuterJoin(left, right, equalities)

    def _using(self, join: exp.Join) -> list[Equality]:
        """Merge the columns of USING or NATURAL; returns their equalities, the left column first."""
        if joins_inside(join.this) is not None and merges(join):
            raise NotIncremental("USING or NATURAL beside a join in parentheses")
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
                found.append(Equality(one.origin, other.origin))
                kept = {"RIGHT": other.origin, "FULL": one.origin | other.origin}.get(join.side, one.origin)
            merged[name.lower()] = Column(name, kept)
        self.scope.merged = {**merged, **{name: each for name, each in self.scope.merged.items() if name not in merged}}
        return found

    def _equalities(self, conditions: Sequence[exp.Expr | None]) -> list[Equality]:
        found: list[Equality] = []
        for condition in conjuncts(conditions):
            if not isinstance(condition, exp.EQ | exp.NullSafeEQ):
                continue
            left, right = self.resolve(condition.left), self.resolve(condition.right)
            if left is None or right is None or not left.origin or not right.origin:
                continue
            if are_comparable(left.origin, right.origin):
                found.append(Equality(left.origin, right.origin, isinstance(condition, exp.NullSafeEQ)))
        return found

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
                want(sides, self.scope, self._context.expressions)
            for derived in filter(None, map(self.scope.computed_by, sides)):
                self._context.expressions.want_table(derived.select, derived.source)


def _relation(node: exp.Expr, columns: Iterable[Column]) -> Source:
    """An item of FROM. It has other columns, too, if none is known, or if Spark makes up the name of one."""
    known = list(columns)
    return Source(node.alias_or_name.lower(), known, has_more=not known or not all(each.name for each in known))


def rows_of(query: exp.Expr, select: exp.Expr, context: Context) -> Built:
    """The rows of a query: those that an internal view has, or could have. `select` is what the query consists of."""
    stored = context.expressions.table(select, context.path)
    if stored is not None:
        leaf, columns = stored
        return Built(Scan(leaf), Scan(leaf).columns[:columns])
    built = context.query(query, context)
    if select.args.get("limit") is not None:
        context.expressions.want_first_rows(select, named_leaves(built.operator), built.columns or ())
    return built


def has_stored_row(query: exp.Expr, context: Context) -> bool:
    """Whether a query has one row, which does not depend on the rows around it, and is stored."""
    if not isinstance(query, exp.Select) or not may_stand_alone(query):
        return False
    frame = From(replace(context, outer=None))
    leaves = sorted(frame.build(query).leaves, key=lambda leaf: leaf.path)
    return context.expressions.has_row(query, frame.scope, leaves, context.path)


def _derived(query: exp.Expr, select: exp.Expr, context: Context) -> Built:
    """The rows of a derived table; one row, which is constant, is no operator."""
    if has_stored_row(select, context):
        return Built(NOTHING, [Column(item.alias) for item in select.expressions])
    return rows_of(query, select, context)


def _is_below(origin: Origin, operator: Operator) -> bool:
    return all(column.leaf in operator.leaves for column in origin)


def _are_connected(operators: Sequence[Operator], equalities: Sequence[Equality]) -> bool:
    """Whether equalities lead from each input to all others."""
    groups = [{number} for number, operator in enumerate(operators) if operator.leaves]
    for pair in _between(operators, equalities):
        sides = (pair.left, pair.right)
        both = {number for number, each in enumerate(operators) if any(_is_below(side, each) for side in sides)}
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

    def input_of(origin: Origin) -> Operator | None:
        return next((each for each in operators if _is_below(origin, each)), None)

    found = ((each, input_of(each.left), input_of(each.right)) for each in equalities)
    return tuple(
        each
        for each, left, right in found
        if left is not None and right is not None and left is not right and each.is_between(left, right)
    )


def _with_equalities(operator: Operator, equalities: Sequence[Equality]) -> Operator:
    """The operator with equalities that hold in its output: a filter of preserved rows commutes with an outer join."""
    if isinstance(operator, InnerJoin):
        children = tuple(_with_equalities(child, equalities) for child in operator.children)
        return InnerJoin(children, (*operator.equalities, *_between(children, equalities)))
    if isinstance(operator, OuterJoin):
        return replace(operator, preserved=_with_equalities(operator.preserved, equalities))
    return operator

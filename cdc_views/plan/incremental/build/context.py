"""What the builders of a query share: where it stands, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.columns import Column, Leaf, Path, start_of
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import Constant, Operator
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope

LeafOf = Callable[[exp.Table, Path], Leaf]
"""Returns the leaf for a table that a query names; the path ends with the table's own offset."""


NOTHING: Final = Constant()


@dataclass(frozen=True)
class Built:
    """An operator and the columns of its output, in order; None if they are not all known. `leaf`: it is that table."""

    operator: Operator
    columns: Sequence[Column] | None
    leaf: Leaf | None = None


@dataclass(frozen=True)
class Cte:
    """A query of a WITH, the names of its columns, and where it stands."""

    query: exp.Expr
    names: tuple[str, ...]
    context: Context


@dataclass(frozen=True)
class Context:
    """Where a query stands: the CTEs that it may name, the CTE references that lead to it, the FROM around it.

    `query` builds a query of FROM, `dependent` puts a subquery of an expression above the FROM that it depends on.
    `by_rows` is that of its windows (operators/grouping.py).
    """

    leaf_of: LeafOf
    expressions: Expressions
    query: Callable[[exp.Expr, Context], Built]
    dependent: Callable[[Operator, exp.Expr, Context], Operator]
    by_rows: bool = False
    ctes: Mapping[str, Cte] = field(default_factory=dict)
    path: Path = ()
    outer: Scope | None = None

    def cte(self, node: exp.Expr) -> Cte | None:
        """The CTE that an item of FROM names."""
        is_name = isinstance(node, exp.Table) and not node.args.get("db")
        return self.ctes.get(node.name.lower()) if is_name else None

    def inside(self, node: exp.Expr) -> Context:
        """The context inside of an item of FROM: that of the CTE that it names, or this one."""
        cte = self.cte(node)
        if cte is None or not isinstance(node, exp.Table):
            return replace(self, outer=None)
        return replace(cte.context, path=(*self.path, start_of(node)), outer=None)


def with_ctes(query: exp.Expr, context: Context) -> Context:
    """The context inside a query, with its own CTEs. Raises NotIncremental for a recursive one."""
    with_ = query.args.get("with_")
    if not isinstance(with_, exp.With):
        return context
    if with_.recursive:
        raise NotIncremental("a recursive query: each change may change all of its rows")
    for cte in with_.expressions:
        names = tuple(column.name for column in cte.args["alias"].columns)
        context = replace(context, ctes={**context.ctes, cte.alias.lower(): Cte(cte.this, names, context)})
    return context


def renamed(built: Built, names: Sequence[str]) -> Built:
    """The same with other names of its columns, if there are any."""
    if not names:
        return built
    if built.columns is None or len(built.columns) != len(names):
        return replace(built, columns=None)
    return replace(built, columns=[replace(each, name=name) for each, name in zip(built.columns, names, strict=True)])


def want(nodes: Collection[exp.Expr], scope: Scope, expressions: Expressions, groups: Sequence[exp.Expr] = ()) -> None:
    """Remember expressions over a FROM by which its rows have to be looked up, also where a query in it computes them.

    A time window is one only as one of the `groups` of GROUP BY.
    """
    expressions.want(nodes, scope, groups)
    want_all(filter(None, map(scope.resolve, nodes)))


def want_all(columns: Iterable[Column]) -> None:
    """Remember columns by which rows have to be looked up."""
    for column in columns:
        column.want()

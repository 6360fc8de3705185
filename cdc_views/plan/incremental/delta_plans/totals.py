"""The columns that are counts and exact sums, and the types that these have on their way to the column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeVar

from sqlglot import exp

from cdc_views.plan.incremental.exact_types import ExactType, of_arrow, of_expression, of_sql, whole
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.views.expression_text import Texts

Kind = TypeVar("Kind")

_OF_CAST: Final = frozenset({"this", "to"})


@dataclass(frozen=True)
class Total:
    """A column that is a count or a sum.

    A total has each of `types` on its way to the column, whose type is the last. For a sum, `values` names the column
    that counts the values that are added, and `rows` one that counts the rows with and without such a value; None if
    the view has no such column.
    """

    name: str
    is_sum: bool
    types: tuple[ExactType, ...]
    values: str | None = None
    rows: str | None = None


@dataclass(frozen=True)
class Aggregate:
    """An aggregate: its argument, None for count(*), its FILTER, and the casts around it from the inside."""

    call: exp.Expr
    argument: exp.Expr | None
    filter: exp.Expr | None
    casts: tuple[ExactType, ...]

    @property
    def is_sum(self) -> bool:
        return isinstance(self.call, exp.Sum)

    @property
    def counts_rows(self) -> bool:
        """Whether it counts rows with and without values; with a FILTER, only some of them."""
        return not self.is_sum and (self.argument is None or isinstance(self.argument, exp.Literal))


def items_of(select: exp.Select, columns: Mapping[str, str]) -> dict[str, exp.Expr]:
    if len(select.expressions) != len(columns):
        raise NotIncremental("the columns of its result are not all known")
    return dict(zip(columns, select.expressions, strict=True))


def of_kind(
    items: Mapping[str, exp.Expr], find: Callable[[str, exp.Expr], Kind | None]
) -> tuple[tuple[Kind, ...], dict[str, exp.Expr]]:
    """What is found of the columns of a view, and the columns of which nothing is."""
    found = {name: each for name, item in items.items() if (each := find(name, item)) is not None}
    return tuple(found.values()), {name: item for name, item in items.items() if name not in found}


def totals_of(
    found: Mapping[str, Aggregate], scope: Scope, columns: Mapping[str, str], texts: Texts
) -> tuple[Total, ...]:
    totals = []
    for name, aggregate in found.items():
        total = Total(name, aggregate.is_sum, _types(name, aggregate, columns[name], scope))
        totals.append(_with_counts(total, aggregate, found, texts) if total.is_sum else total)
    return tuple(totals)


def aggregate_of(name: str, item: exp.Expr) -> Aggregate:
    """The aggregate that a column is, below its casts."""
    node, casts, condition = item.unalias(), list[ExactType](), None
    while isinstance(node, exp.Paren | exp.Cast):
        if isinstance(node, exp.Cast):
            type_ = of_sql(node.to)
            if type_ is None or any(value and key not in _OF_CAST for key, value in node.args.items()):
                raise NotIncremental(f'column "{name}" has another cast than CAST to whole numbers or decimals')
            casts.insert(0, type_)
        node = node.this
    if isinstance(node, exp.Filter):
        node, condition = node.this, node.expression.this
    argument = node.this
    is_known = type(node) in (exp.Count, exp.Sum) and not node.expressions
    if not is_known or isinstance(argument, exp.Distinct) or (isinstance(argument, exp.Column) and argument.is_star):
        raise NotIncremental(f'column "{name}" is neither count(*) nor the count or the sum of one value of each row')
    return Aggregate(node, None if isinstance(argument, exp.Star) else argument, condition, tuple(casts))


def _types(name: str, aggregate: Aggregate, column: str, scope: Scope) -> tuple[ExactType, ...]:
    """The types of a total, from that of the aggregate itself to that of the column."""
    types = (_own_type(name, aggregate, column, scope), *aggregate.casts)
    for before, after in pairwise(types):
        if after.scale < before.scale or (after.bits and not before.bits):
            raise NotIncremental(f'column "{name}" has a CAST from {before} to {after}, which rounds')
    if str(types[-1]) != column:
        raise NotIncremental(f'column "{name}" is {column}, wanted {types[-1]}')
    return types


def _own_type(name: str, aggregate: Aggregate, column: str, scope: Scope) -> ExactType:
    if not aggregate.is_sum:
        return whole(64)
    if not aggregate.casts:
        # Spark makes such a sum of such values only.
        found = of_arrow(column)
        if found is None:
            raise NotIncremental(f'column "{name}" is a sum of type {column}, neither whole numbers nor decimals')
        return found
    argument = of_expression(aggregate.call.this, scope)
    if argument is None:
        raise NotIncremental(
            f'column "{name}" casts a sum whose values are not certain to be whole numbers or decimals; '
            "cast the values themselves"
        )
    return argument.of_sum()


def _with_counts(total: Total, aggregate: Aggregate, all_: Mapping[str, Aggregate], texts: Texts) -> Total:
    """A sum with the columns that count what it adds."""
    filtered = {name: each for name, each in all_.items() if texts.are_same(each.filter, aggregate.filter)}
    counts = {name: each for name, each in filtered.items() if not each.is_sum}
    values = next((name for name, each in counts.items() if texts.are_same(each.argument, aggregate.argument)), None)
    rows = next((name for name, each in counts.items() if each.counts_rows), None)
    if values is None and _is_never_null(aggregate.argument):
        values = rows
    return replace(total, values=values, rows=rows)


def _is_never_null(value: exp.Expr | None) -> bool:
    """Whether an expression has a value for each row, as `CASE WHEN ... THEN 1 ELSE 0 END`."""
    match value:
        case exp.Literal():
            return True
        case exp.Paren():
            return _is_never_null(value.this)
        case exp.Case():
            branches = [branch.args["true"] for branch in value.args["ifs"]]
            return all(map(_is_never_null, [*branches, value.args.get("default")]))
        case exp.If():
            return _is_never_null(value.args["true"]) and _is_never_null(value.args.get("false"))
        case exp.Coalesce():
            return any(map(_is_never_null, [value.this, *value.expressions]))
    return False

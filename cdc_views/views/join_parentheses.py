"""Parentheses around joins that change nothing: in the tree, the joins stand in a row, as they would without them.

    FROM (a JOIN b ON p) LEFT JOIN c ON q    is    FROM a JOIN b ON p LEFT JOIN c ON q
    FROM a JOIN (b JOIN c ON p) ON q         is    FROM a JOIN b JOIN c ON p AND q

Joins are read from the left, so parentheses around the first ones say nothing. Inner joins may be done in any order, if
the FROM has no USING and no NATURAL: after these a name alone is the merged column, but not inside of parentheses.
Others stay as they are, as in `a LEFT JOIN (b JOIN c ON p) ON q`. The text is not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from sqlglot import exp

Tree = TypeVar("Tree", bound=exp.Expr)


def without_parentheses(tree: Tree) -> Tree:
    """Put such joins of a query in a row, in the tree itself; returns it."""
    for select in list(tree.find_all(exp.Select)):
        from_ = select.args.get("from_")
        if from_ is not None:
            joins = select.args.get("joins") or []
            may_move = not any(map(merges, _all_joins(from_.this, joins)))
            first, joins = _in_a_row(from_.this, joins, may_move=may_move)
            from_.set("this", first)
            select.set("joins", joins)
    return tree


def joins_inside(node: exp.Expr) -> tuple[exp.Expr, list[exp.Join]] | None:
    """The first relation and the joins that stand in parentheses, without a name for all of them; None for others."""
    if not isinstance(node, exp.Subquery) or any(value for name, value in node.args.items() if name != "this"):
        return None
    first = node.this
    is_relation = isinstance(first, exp.Table) or (
        isinstance(first, exp.Subquery)
        and (bool(first.args.get("joins") or first.args.get("alias")) or joins_inside(first) is not None)
    )
    return (first, first.args.get("joins") or []) if is_relation else None


def is_inner(join: exp.Join) -> bool:
    """Whether it is an inner join, or one by a comma."""
    return not join.side and join.kind in ("", "INNER", "CROSS")


def merges(join: exp.Join) -> bool:
    """Whether a join merges columns: by USING or NATURAL."""
    return bool(join.args.get("using") or join.method)


def _all_joins(first: exp.Expr, joins: Sequence[exp.Join]) -> Iterator[exp.Join]:
    """The joins of a FROM with those in parentheses."""
    for relation in (first, *(join.this for join in joins)):
        inside = joins_inside(relation)
        if inside is not None:
            yield from _all_joins(*inside)
    yield from joins


def _in_a_row(first: exp.Expr, joins: Sequence[exp.Join], *, may_move: bool) -> tuple[exp.Expr, list[exp.Join]]:
    while (inside := joins_inside(first)) is not None:
        first, own = inside
        first.set("joins", None)
        joins = [*own, *joins]
    return first, [each for join in joins for each in _with_own(join, may_move=may_move)]


def _with_own(join: exp.Join, *, may_move: bool) -> list[exp.Join]:
    """A join, and the joins in parentheses on its right side if they can follow it."""
    inside = joins_inside(join.this)
    if inside is None:
        return [join]
    inside[0].set("joins", None)
    first, own = _in_a_row(*inside, may_move=may_move)
    if own and not (may_move and all(map(_is_free, [join, *own]))):
        first.set("joins", own)
        join.this.set("this", first)
        return [join]
    join.set("this", first)
    if own:
        conditions = [each for each in (own[-1].args.get("on"), join.args.get("on")) if each is not None]
        join.set("on", None)
        own[-1].set("on", exp.and_(*conditions, copy=False) if conditions else None)
    return [join, *own]


def _is_free(join: exp.Join) -> bool:
    return is_inner(join) and not isinstance(join.this, exp.Lateral)

"""Parentheses around joins that change nothing: in the tree, the joins stand in a row, as they would without them.

    FROM (a JOIN b ON p) LEFT JOIN c ON q    is    FROM a JOIN b ON p LEFT JOIN c ON q
    FROM a JOIN (b JOIN c ON p) ON q         is    FROM a JOIN b JOIN c ON p AND q

Joins are read from the left, so parentheses around the first ones say nothing. Inner joins may be done in any order, if
none of them merges columns by USING or NATURAL. Others stay as they are, as in `a LEFT JOIN (b JOIN c ON p) ON q`. The
text is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp


def without_parentheses(tree: exp.Query) -> exp.Query:
    """Put such joins of a query in a row, in the tree itself; returns it."""
    for select in list(tree.find_all(exp.Select)):
        from_ = select.args.get("from_")
        if from_ is not None:
            first, joins = _in_a_row(from_.this, select.args.get("joins") or [])
            from_.set("this", first)
            select.set("joins", joins)
    return tree


def joins_inside(node: exp.Expr) -> tuple[exp.Expr, list[exp.Join]] | None:
    """The first relation and the joins that stand in parentheses, without a name for all of them; None for others."""
    if not isinstance(node, exp.Subquery) or any(value for name, value in node.args.items() if name != "this"):
        return None
    first = node.this
    is_relation = isinstance(first, exp.Table) or (
        isinstance(first, exp.Subquery) and bool(first.args.get("joins") or first.args.get("alias"))
    )
    return (first, first.args.get("joins") or []) if is_relation else None


def _in_a_row(first: exp.Expr, joins: Sequence[exp.Join]) -> tuple[exp.Expr, list[exp.Join]]:
    while (inside := joins_inside(first)) is not None:
        first, own = inside
        first.set("joins", None)
        joins = [*own, *joins]
    return first, [each for join in joins for each in _with_own(join)]


def _with_own(join: exp.Join) -> list[exp.Join]:
    """A join, and the joins in parentheses on its right side if they can follow it."""
    inside = joins_inside(join.this)
    if inside is None:
        return [join]
    inside[0].set("joins", None)
    first, own = _in_a_row(*inside)
    if own and not all(map(_is_free, [join, *own])):
        first.set("joins", own)
        join.this.set("this", first)
        return [join]
    join.set("this", first)
    if not own:
        return [join]
    conditions = [each for each in (own[-1].args.get("on"), join.args.get("on")) if each is not None]
    join.set("on", None)
    own[-1].set("on", exp.and_(*conditions, copy=False) if conditions else None)
    return [join, *own]


def _is_free(join: exp.Join) -> bool:
    """Whether it is an inner join by a condition, or by none."""
    is_inner = not join.side and join.kind in ("", "INNER", "CROSS")
    return is_inner and not join.method and not join.args.get("using") and not isinstance(join.this, exp.Lateral)

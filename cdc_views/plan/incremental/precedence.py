"""Expressions that Spark and sqlglot group in different ways: the planner draws no conclusion from them.

Spark's grammar (SqlBaseParser.g4) has all comparisons on one level, from left to right, and a predicate such as IN,
BETWEEN or LIKE applies to the whole value before it, comparisons included. sqlglot, like Postgres and DuckDB, has IN,
BETWEEN and LIKE above `<`, and `<` above `=`:

    a = b IN (SELECT c FROM u)      Spark: (a = b) IN (...)     sqlglot: a = (b IN (...))
    a = b < c                       Spark: (a = b) < c          sqlglot: a = (b < c)
    a LIKE b = c                    Spark: a LIKE (b = c)       sqlglot: (a LIKE b) = c

A plan for sqlglot's reading would look for other rows than those that Spark selects, so such a view is FULL. Both read
IS NULL, IS DISTINCT FROM, NOT, AND, OR, `+`, `-`, `*` and the set operations in the same way. They differ for `|`, `^`,
`&`, shifts and `||`, and for COLLATE, of which the planner looks only at the text as a whole.
tests/spark/test_precedence.py asks both parsers.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.restrictions import NotIncremental

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_PREDICATES: Final = (exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape)


def require_same_grouping(query: exp.Expr) -> None:
    """Raise NotIncremental if Spark may group operators of a query in another way than its tree."""
    for node in query.find_all(*_COMPARISONS):
        left, right = _side(node, node.this), _side(node, node.expression)
        if isinstance(left, _PREDICATES) or isinstance(right, (*_COMPARISONS, *_PREDICATES)):
            raise NotIncremental(
                "a comparison beside another one, or beside IN, BETWEEN or LIKE, without parentheses: "
                "Spark groups these in another way than other databases"
            )


def _side(comparison: exp.Expr, side: exp.Expr) -> exp.Expr:
    """A side of a comparison, without NOT.

    sqlglot puts the sides of `a NOT RLIKE b <=> c RLIKE d` in parentheses that the text does not have.
    """
    node = side.unnest() if isinstance(comparison, exp.NullSafeEQ) else side
    return node.this if isinstance(node, exp.Not) else node

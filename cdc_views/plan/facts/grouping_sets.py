"""GROUPING SETS, ROLLUP and CUBE over columns: which sets of columns they group by, and the key of their rows.

    GROUP BY ROLLUP (country, status)    groups by (country, status), by (country), and by ()

A row has NULL in the columns that its set lacks, like a group of NULLs. `grouping_id()` tells them apart: it is another
number for each set. So the columns and that number identify a row, unless a set occurs twice. The columns alone do, if
none of them is NULL in a row of FROM: then each set has NULL in other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import TypeVar

from sqlglot import exp

Resolved = TypeVar("Resolved", bound=Hashable)


def has_only_sets(query: exp.Expr) -> bool:
    """Whether a query is a SELECT whose GROUP BY is one ROLLUP, CUBE or GROUPING SETS in parentheses."""
    return _only_sets(query.args.get("group")) is not None if isinstance(query, exp.Select) else False


def columns_of_sets(
    group: exp.Group, resolve: Callable[[exp.Expr], Resolved | None]
) -> dict[Resolved, exp.Expr] | None:
    """The columns of the only ROLLUP, CUBE or GROUPING SETS of a GROUP BY, by what they stand for in its FROM.

    None if there are none, if one of them is not certain to be a column of the FROM, or if a set may occur twice.
    """
    sets = _only_sets(group)
    if sets is None:
        return None
    written = [_items(each) for each in sets.expressions] if isinstance(sets, exp.GroupingSets) else [sets.expressions]
    found = [{resolve(column): column for column in each} for each in written]
    columns = dict(chain.from_iterable(each.items() for each in found))
    is_repeated = any(len(each) < len(items) for each, items in zip(found, written, strict=True))
    if is_repeated or len({frozenset(each) for each in found}) < len(found) or not columns:
        return None
    known = {resolved: column for resolved, column in columns.items() if resolved is not None}
    return known if len(known) == len(columns) else None


def is_grouping(item: exp.Expr) -> bool:
    """Whether an item of a SELECT says which columns the set of a row lacks."""
    return isinstance(item, exp.GroupingId | exp.Grouping)


def _only_sets(group: exp.Expr | None) -> exp.Expr | None:
    if not isinstance(group, exp.Group) or any(value for name, value in group.args.items() if name != "expressions"):
        return None
    items = group.expressions
    return items[0] if len(items) == 1 and isinstance(items[0], exp.Rollup | exp.Cube | exp.GroupingSets) else None


def _items(grouping_set: exp.Expr) -> Sequence[exp.Expr]:
    """The columns of one set, which may stand in parentheses."""
    if isinstance(grouping_set, exp.Tuple):
        return grouping_set.expressions
    return [grouping_set.this] if isinstance(grouping_set, exp.Paren) else [grouping_set]

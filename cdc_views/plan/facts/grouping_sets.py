"""GROUPING SETS, ROLLUP and CUBE over columns: which sets of columns they group by, and the key of their rows.

    GROUP BY ROLLUP (country, status)       groups by (country, status), by (country), and by ()
    GROUP BY country, status WITH ROLLUP    the same
    GROUP BY country, status GROUPING SETS ((country, status), country, ())    the same

A row has NULL in the columns that its set lacks, like a group of NULLs. `grouping_id()` tells them apart: it is another
number for each set. So the columns and that number identify a row, unless a set occurs twice. The columns alone do, if
none of them is NULL in a row of FROM: then each set has NULL in other columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeVar

from sqlglot import exp

Resolved = TypeVar("Resolved", bound=Hashable)

SETS_BEHIND: Final = ("rollup", "cube", "grouping_sets")
"""What a GROUP BY has where its sets stand behind its columns, as in `country, status WITH ROLLUP`."""


@dataclass(frozen=True)
class _Sets:
    """The columns of each set, or those of a ROLLUP or CUBE, as written; and those that stand before the sets."""

    written: Sequence[Sequence[exp.Expr]]
    before: Sequence[exp.Expr] = ()


def has_only_sets(query: exp.Expr) -> bool:
    """Whether a query is a SELECT whose GROUP BY is one ROLLUP, CUBE or GROUPING SETS."""
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
    found = [{resolve(column): column for column in each} for each in sets.written]
    columns = dict(chain.from_iterable(each.items() for each in found))
    if sets.before and {resolve(column) for column in sets.before} != {*columns}:
        return None  # one of them is in no set
    is_repeated = any(len(each) < len(items) for each, items in zip(found, sets.written, strict=True))
    if is_repeated or len({frozenset(each) for each in found}) < len(found) or not columns:
        return None
    known = {resolved: column for resolved, column in columns.items() if resolved is not None}
    return known if len(known) == len(columns) else None


def is_grouping(item: exp.Expr) -> bool:
    """Whether an item of a SELECT says which columns the set of a row lacks."""
    return isinstance(item, exp.GroupingId | exp.Grouping)


def _only_sets(group: exp.Expr | None) -> _Sets | None:
    if not isinstance(group, exp.Group):
        return None
    items, clauses = group.expressions, {name: value for name, value in group.args.items() if value}
    behind = [each for name in SETS_BEHIND for each in clauses.pop(name, ())]
    if not {*clauses} <= {"expressions"} or len(behind or items) != 1:
        return None
    sets, before = (behind[0], items) if behind else (items[0], ())
    if isinstance(sets, exp.GroupingSets):
        return _Sets([_items(each) for each in sets.expressions], before)
    return _Sets([before or sets.expressions], before) if isinstance(sets, exp.Rollup | exp.Cube) else None


def _items(grouping_set: exp.Expr) -> Sequence[exp.Expr]:
    """The columns of one set, which may stand in parentheses."""
    if isinstance(grouping_set, exp.Tuple):
        return grouping_set.expressions
    return [grouping_set.this] if isinstance(grouping_set, exp.Paren) else [grouping_set]

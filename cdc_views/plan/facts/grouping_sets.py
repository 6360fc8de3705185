"""GROUPING SETS, ROLLUP and CUBE: which sets of groups they have, and the key of their rows.

    GROUP BY ROLLUP (country, status)       groups by (country, status), by (country), and by ()
    GROUP BY country, status WITH ROLLUP    the same
    GROUP BY country, status GROUPING SETS ((country, status), country, ())    the same

A group is a column, or a function call over columns such as `year(at)`, which is the same group wherever it is written
alike. A row has NULL in the groups that its set lacks, like a group of NULLs. `grouping_id()` tells them apart: it is
another number for each set. So the groups and that number identify a row, unless a set occurs twice. The groups alone
do, if they are columns and none of them is NULL in a row of FROM: then each set has NULL in other columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from sqlglot import exp

from cdc_views.views.expression_text import Texts

Resolve = Callable[[exp.Expr], Hashable | None]
"""Returns the column of a FROM that an expression names, None if that is not certain."""

SETS_BEHIND: Final = ("rollup", "cube", "grouping_sets")
"""What a GROUP BY has where its sets stand behind its columns, as in `country, status WITH ROLLUP`."""

_NOT_OF_ONE_ROW: Final = (exp.Query, exp.AggFunc, exp.Window)
# No two of these are the same function to Spark.
_DIFFERENT: Final = (
    *(exp.Year, exp.Quarter, exp.Month, exp.Day, exp.Hour, exp.Minute, exp.TimestampTrunc),
    *(exp.Cast, exp.Lower, exp.Upper),
)
_TIME_WINDOWS: Final = ("window", "session_window", "window_time")


@dataclass(frozen=True)
class _Sets:
    """The groups of each set, or those of a ROLLUP or CUBE, as written; and those that stand before the sets."""

    written: Sequence[Sequence[exp.Expr]]
    before: Sequence[exp.Expr] = ()


def has_only_sets(query: exp.Expr) -> bool:
    """Whether a query is a SELECT whose GROUP BY is one ROLLUP, CUBE or GROUPING SETS."""
    return _only_sets(query.args.get("group")) is not None if isinstance(query, exp.Select) else False


class GroupsOfSets:
    """The groups of the only ROLLUP, CUBE or GROUPING SETS of a SELECT, by what they stand for."""

    def __init__(
        self, select: exp.Select, resolve: Resolve, may_be_column: Callable[[str], bool], texts: Texts
    ) -> None:
        """`resolve` is that of the FROM of the SELECT, `may_be_column` says whether it may have a column of this name;
        `texts` are those of the query.
        """
        self._select, self._resolve, self._texts = select, resolve, texts
        self._may_be_column = may_be_column

    def of(self, node: exp.Expr) -> Hashable | None:
        """What a group, or an item of the SELECT, stands for: a column, or the words of a function call over columns.

        None for any other expression, and for one whose names are not certain to be those of columns.
        """
        column = self._resolve(node)
        if column is not None:
            return column
        names = list(node.find_all(exp.Column))
        if not names or any(self._resolve(name) is None for name in names) or any(node.find_all(*_NOT_OF_ONE_ROW)):
            return None
        words = self._texts.call(node)
        return None if words is None or words[0].strip("`").lower() in _TIME_WINDOWS else words

    def all(self) -> dict[Hashable, exp.Expr] | None:
        """All groups of the sets, each as it is written first.

        None if there are none, if one of them is not known, or if a set may occur twice.
        """
        group = self._select.args.get("group")
        sets = _only_sets(group) if group is not None else None
        if sets is None:
            return None
        written = [list(map(self.named, items)) for items in sets.written]
        found = [{self.of(each): each for each in items} for items in written]
        groups = dict(chain.from_iterable(each.items() for each in found))
        if sets.before and {self.of(self.named(each)) for each in sets.before} != {*groups}:
            return None  # one of them is in no set
        is_repeated = any(len(each) < len(items) for each, items in zip(found, written, strict=True))
        if is_repeated or len({frozenset(each) for each in found}) < len(found) or not groups:
            return None
        known = {resolved: node for resolved, node in groups.items() if resolved is not None}
        return known if len(known) == len(groups) and self._are_different(list(known.values())) else None

    def named(self, group: exp.Expr) -> exp.Expr:
        """The item of the SELECT that a group names by its alias; any other group itself."""
        if not isinstance(group, exp.Column) or group.table or self._may_be_column(group.name.lower()):
            return group
        named = [item for item in self._select.expressions if item.alias.lower() == group.name.lower()]
        return named[0].unalias() if len(named) == 1 else group

    def by_alias(self) -> list[tuple[exp.Column, exp.Expr]]:
        """The names in GROUP BY that are aliases, and the items of the SELECT that they name."""
        found = ((each, self.named(each)) for each in self._select.args["group"].find_all(exp.Column))
        return [(alias, item) for alias, item in found if item is not alias]

    def _are_different(self, groups: Sequence[exp.Expr]) -> bool:
        """Whether no two groups are certain to be the same to Spark, although they are written in two ways.

        Over the same columns it may be `day(d)` and `dayofmonth(d)`, or `greatest(a, b)` and `greatest(b, a)`.
        """
        by_columns: defaultdict[frozenset[Hashable | None], list[exp.Expr]] = defaultdict(list)
        for group in groups:
            if not isinstance(group, exp.Column):
                by_columns[frozenset(map(self._resolve, group.find_all(exp.Column)))].append(group)
        return all(map(_differ, by_columns.values()))


def _differ(calls: Sequence[exp.Expr]) -> bool:
    """Whether function calls over the same columns are certain to be different functions.

    Other arguments may mean the same, as in `round(x)` and `round(x, 0)`, or `CAST(x AS VARCHAR(5))` and `string(x)`.
    """
    return len(calls) == 1 or (
        all(isinstance(call, _DIFFERENT) for call in calls) and len({*map(_meaning, calls)}) == len(calls)
    )


def _meaning(call: exp.Expr) -> Hashable:
    """What tells one of these functions over the same columns from the others."""
    kind = exp.Cast if isinstance(call, exp.Cast) else type(call)  # TRY_CAST has a class of its own
    return kind, str(call.args.get("unit") or "").upper()


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
    """The groups of one set, which may stand in parentheses."""
    if isinstance(grouping_set, exp.Tuple):
        return grouping_set.expressions
    return [grouping_set.this] if isinstance(grouping_set, exp.Paren) else [grouping_set]

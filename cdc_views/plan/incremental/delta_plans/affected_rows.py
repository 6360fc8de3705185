"""The rows over which totals change, of a FROM that is neither linear nor inner joins: all that a change may affect.

    SELECT count(*) AS n, count(p.id) AS posts FROM users u LEFT JOIN posts p ON p.author_id = u.id

Let the handle be columns by which rows of the FROM are looked up, and K their values in all rows that the change adds
or removes. The rows with other values are the same in both versions. So let R_old and R_new be the rows of the FROM
with values in K, at either version. Then as bags

    rows of the new version = rows of the old version + R_new - R_old

and the totals over R_new are added, those over R_old are subtracted (additive.py). The lookups that reduce the leaves
give exactly R_old and R_new, or those with values of fewer columns, for which the same holds (operators/operator.py).
All of R_new is in the new version, as over a linear FROM.

Any FROM will do whose rows are found by one handle: outer joins, EXISTS and IN, DISTINCT, UNION, GROUP BY, windows. Not
a full join: some of its rows have values on one side only.

The handle is the key of one table, so that as few rows as possible are affected: of that one whose rows lead to most
others by their keys, such as from an item to its order. If no key can be looked up, it is all columns of one place. It
consists of columns that a name of the FROM stands for: what may be an aggregate of Spark passes on no others, even if
the plan does not know it as one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.keys import makes_rows, own_nodes
from cdc_views.plan.incremental.build import LeafOf, build_from
from cdc_views.plan.incremental.columns import Column, Leaf, LeafColumn, Path
from cdc_views.plan.incremental.delta_plans.linear import require_only
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import Operator, named_leaves
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental
from cdc_views.plan.incremental.scope import Scope
from cdc_views.plan.incremental.strategy import MOST_LOOKUPS, Handle, KeysPlan, handle_of
from cdc_views.views.references import ParsedQuery

_CLAUSES: Final = frozenset({"expressions", "from_", "joins", "laterals", "where", "group", "with_", "hint"})

RowKeys = Mapping[str, Sequence[str]]
"""The columns that identify a row of a table or view, which queries may not see, by its name."""


@dataclass(frozen=True)
class ChangedFrom:
    """A FROM with its names, and how the rows are found that come into it, and go.

    `joined` has for each leaf of inner joins the lookups to the rows that its rows join; `affected` are the lookups for
    the rows that a change may affect. A linear FROM needs neither.
    """

    operator: Operator
    scope: Scope
    joined: Mapping[Path, tuple[Lookup, ...]] = field(default_factory=dict)
    affected: KeysPlan | None = None

    @property
    def is_linear(self) -> bool:
        return not self.joined and self.affected is None


RowsOf = Callable[[exp.Select], ChangedFrom]
"""Says how the rows are found that come into the FROM of a SELECT, and go. Raises NotIncremental."""


def affected_rows(
    query: ParsedQuery, leaf_of: LeafOf, row_keys: RowKeys, not_null: Mapping[str, Collection[str]]
) -> RowsOf:
    """Says how the rows are found that a change may affect.

    `row_keys` are the columns that identify a row of a table, by its name; `not_null` are those that the source
    declares so.
    """

    def rows_of(select: exp.Select) -> ChangedFrom:
        require_only(select, _CLAUSES)
        require_row_by_row(select)
        expressions = Expressions(query, not_null=not_null)
        operator, scope = build_from(select, leaf_of, expressions)
        handle = _handle(operator, scope, row_keys)
        plan = KeysPlan(tuple(named_leaves(operator)), (handle,), without_null=expressions.columns_without_null)
        if len(plan.lookups) > MOST_LOOKUPS:
            raise NotIncremental(f"{len(plan.lookups)} lookups lead from one table to another")
        return ChangedFrom(operator, scope, affected=plan)

    return rows_of


def changed_or_affected(changed: RowsOf, affected: RowsOf) -> RowsOf:
    """Finds the rows that change if it can, else those that are affected; the reason against both is the first one."""

    def rows_of(select: exp.Select) -> ChangedFrom:
        try:
            return changed(select)
        except NotIncremental as reason:
            try:
                return affected(select)
            except NotIncremental:
                raise reason from None

    return rows_of


def handle_by(rows: ChangedFrom, columns: Collection[LeafColumn]) -> Handle:
    """The lookups of the rows of a FROM by one of its columns. Raises NotIncremental."""
    origin = frozenset(columns)
    if origin not in rows.operator.passable()[0]:
        raise NotIncremental("different values by which the rows with them cannot be looked up")
    return handle_of(rows.operator, [Column(min(columns, key=lambda each: each.leaf.path).name, origin)])


def require_row_by_row(select: exp.Select) -> None:
    """Raise NotIncremental if what is aggregated, or grouped by, is not computed from each row of the FROM alone."""
    group = select.args.get("group")
    for node in [*select.expressions, *([group] if group else ())]:
        if makes_rows(node) or any(node.find_all(exp.Query)):
            raise NotIncremental("a subquery in an expression, or a function that returns several rows")
    if any(isinstance(node, exp.Window) for node in own_nodes(select)):
        raise NotIncremental("a window")


def _handle(operator: Operator, scope: Scope, row_keys: RowKeys) -> Handle:
    alternatives = operator.passable()
    if len(alternatives) != 1:
        raise NotIncremental("a full join, whose rows have values on one side only")
    columns = [column for column in scope.columns if column.origin in alternatives[0]]
    by_key, others = _candidates(columns, row_keys)
    handles = [*_handles(operator, by_key)] or [*_handles(operator, others)][:1]
    if not handles:
        raise NotIncremental("rows without a column, unchanged from a table, by which they can be looked up")
    return max(handles, key=lambda each: _keys_used(each, row_keys))


def _handles(operator: Operator, candidates: Iterable[Sequence[Column]]) -> Iterator[Handle]:
    for columns in candidates:
        with suppress(NotIncremental):
            yield handle_of(operator, columns)


def _candidates(columns: Iterable[Column], row_keys: RowKeys) -> tuple[list[list[Column]], list[list[Column]]]:
    """Columns that may be the handle, those of the same leaves together: whole keys; and others, the most first."""
    by_leaves: dict[tuple[Leaf, ...], dict[str, Column]] = {}
    for column in columns:
        first, *more = sorted(column.origin, key=lambda each: each.leaf.path)
        of_leaves = by_leaves.setdefault((first.leaf, *(each.leaf for each in more)), {})
        of_leaves.setdefault(first.name, Column(first.name, column.origin))
    keys = [
        [found[name] for name in row_keys[leaf.source]]
        for (leaf, *more), found in by_leaves.items()
        if not more and _has_key(leaf, found, row_keys)
    ]
    return keys, sorted(([*found.values()] for found in by_leaves.values()), key=len, reverse=True)


def _keys_used(handle: Handle, row_keys: RowKeys) -> int:
    """How many lookups of a handle find one row for each value."""
    return sum(_has_key(each.leaf, each.columns, row_keys) for each in handle.recompute)


def _has_key(leaf: Leaf, names: Collection[str], row_keys: RowKeys) -> bool:
    key = row_keys.get(leaf.source, ())
    return bool(key) and {*key} <= {*names}

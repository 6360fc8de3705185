"""The plan of a view that is maintained by patching: the first rows of each partition in a total order.

Let J be the rows that are numbered: inner joins, filters and projections of the leaves. The stored rows of a partition
are its first k rows of J, or all of them if they are fewer. A change removes some rows of J and adds others. Then

    let M be the stored rows that stay, and the rows that are added;
    let s be a stored row that stays. The rows of J that are neither stored nor added come after s.

So the first k rows of M are those of the new J, if fewer than k rows were stored, or if no stored row was removed, or
if k rows of M come before or at s. strategies/patch.py decides this, and computes other partitions again by their keys.

The view's text is run over reduced leaves that give at least M. To give more is harmless, as long as these are rows of
the new J: the first k rows of the new J are then among them, too. J is monotone, which means that over a part of the
leaves it gives a part of its rows. So the leaf rows behind M are looked up, for all partitions together:

- the leaf rows behind the stored rows, from the values that these have in columns of the view;
- the rows that were added to a leaf, and the rows of other leaves that join them.

A stored row was removed if one of its leaf rows was. The columns of the view that have the values of a leaf's columns
tell this: if they differ from each removed row of the leaf, the stored row stays, with its place among the others.

    SELECT user_id, id FROM (SELECT user_id, id, row_number() OVER (PARTITION BY user_id ORDER BY at, id) AS place
    FROM posts) WHERE place <= 2
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.keys import is_aggregated, makes_rows, nested_queries, own_nodes, windows
from cdc_views.plan.incremental.build import build, build_from
from cdc_views.plan.incremental.columns import Column, Leaf, LeafColumn, Path, is_exact
from cdc_views.plan.incremental.delta_plans.linear import (
    all_columns,
    leaf_among,
    require_handle,
    require_multilinear,
    require_only,
)
from cdc_views.plan.incremental.delta_plans.shown_columns import ShownColumns, shown_columns
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.operators import InnerJoin, Operator
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Restriction, Values
from cdc_views.plan.incremental.strategy import KeysPlan, equal_to, outputs_of
from cdc_views.views.expression_text import Texts
from cdc_views.views.references import ParsedQuery

_OF_OUTER: Final = frozenset({"with_", "expressions", "from_", "where"})
_OF_SUBQUERY: Final = frozenset({"this", "alias"})
_OF_NUMBERED: Final = frozenset({"with_", "expressions", "from_", "joins", "where", "windows", "qualify"})
_STORED: Final = "stored rows"

_Carried = Mapping[Leaf, Mapping[str, str]]
"""For each leaf, its columns whose value a row of the view has, and the column of the view that has it."""


@dataclass(frozen=True)
class OrderColumn:
    """The first column of an ORDER BY, whether its largest values come first, and whether it is never NULL.

    If it may be, NULL comes last.
    """

    column: LeafColumn
    is_largest: bool
    has_values: bool


@dataclass(frozen=True)
class PatchPlan:
    """How the first rows of each partition, or of the whole view, are maintained.

    `leaves` are those of the view. `keys` finds the affected partitions and computes them again; its handle are the
    columns of PARTITION BY. It is None for the whole view (first_rows.py). `most` is k. `place` is the column of the
    view with the row's number; None if there is none. `plain` are columns of the view that do not depend on that
    number. `stored` stands for the stored rows in lookups. `kept` has the lookups from these to their leaf rows,
    `added` for each leaf those from its added rows to the leaf rows that they join. `carried` has for each leaf pairs
    of a column and the column of the view with its value; `shown` what the view only shows of a leaf. For the whole
    view, `order` is the column by which the next rows can be searched for, if there is one. With an `offset` they are
    always searched for, since the rows before those of the view are not stored; and so they are without `kept`, where
    nothing tells which leaf row is behind a stored row.
    """

    leaves: tuple[Leaf, ...]
    keys: KeysPlan | None
    most: int
    place: str | None
    plain: tuple[str, ...]
    stored: Leaf
    kept: tuple[Lookup, ...]
    added: Mapping[Path, tuple[Lookup, ...]]
    carried: Mapping[Path, tuple[tuple[str, str], ...]]
    shown: Mapping[Path, ShownColumns] = field(default_factory=dict)
    order: OrderColumn | None = None
    offset: int = 0

    @property
    def is_merged(self) -> bool:
        """Whether the first rows may follow from the stored rows and the added ones."""
        return bool(self.kept) and not self.offset


@dataclass(frozen=True)
class _Numbered:
    """The SELECT whose rows are numbered, the columns that it partitions by, and k. `places` are where the view has
    the number among its columns; `around` is its query, if that is another one.
    """

    select: exp.Select
    partition: Sequence[exp.Expr]
    most: int
    places: Sequence[int]
    around: exp.Select | None = None


def patch_plan(
    query: ParsedQuery,
    columns: Mapping[str, str],
    key: Sequence[str] | None,
    keys: KeysPlan,
    row_keys: Mapping[str, Collection[str]],
    used: Mapping[str, Collection[str]],
) -> PatchPlan:
    """Plan a view. Raises NotIncremental with the reason why its stored rows are not enough.

    `keys` is its plan for KEYS, `row_keys` has the key columns of its inputs, `used` the columns that its text names;
    the rest is as for that plan.
    """
    leaf_of = leaf_among(keys.leaves)
    numbered = _numbered(query.tree, Texts(query))
    operator, scope = build_from(numbered.select, leaf_of, Expressions(query), numbered.around)
    require_multilinear(operator, numbered.select)
    require_handle(numbered.partition, scope, keys)
    built = build(query.tree, leaf_of, Expressions(query))
    outputs = outputs_of(built, columns, are_renamed=query.definition.columns is not None)
    require_keys(keys.leaves, row_keys, used)
    plan = merged_plan(operator, outputs, numbered.most, row_keys, keys)
    partition = {name for handle in keys.handles for name in handle.names}
    values = (each for lookup in plan.kept for each in lookup.values.columns)
    if {column.name for each in values for column in each if column.leaf == plan.stored} <= partition:
        raise NotIncremental("the stored rows lead to all rows of their partition")
    has_key = key is not None and set(key) <= set(plan.plain)
    place = list(columns)[numbered.places[0]] if has_key and numbered.places else None
    shown = shown_columns(query, plan.leaves, outputs, key, columns, plan.carried, row_keys, used) if key else {}
    return replace(plan, place=place, shown=shown)


def require_keys(
    leaves: Sequence[Leaf], row_keys: Mapping[str, Collection[str]], used: Mapping[str, Collection[str]]
) -> None:
    """Raise NotIncremental if the text does not name the whole key of each table."""
    if any(not row_keys[leaf.source] or not set(row_keys[leaf.source]) <= set(used[leaf.source]) for leaf in leaves):
        raise NotIncremental("a table whose key is not in the query")


def merged_plan(
    operator: Operator,
    outputs: Sequence[Column],
    most: int,
    row_keys: Mapping[str, Collection[str]],
    keys: KeysPlan | None = None,
) -> PatchPlan:
    """Plan how stored rows and added rows are merged, for the operator of the rows that are ordered, and the columns of
    the view. Raises NotIncremental if the stored rows do not lead to their leaf rows.
    """
    leaves = tuple(sorted(operator.leaves, key=lambda leaf: leaf.path))
    carried = _carried(outputs, operator)
    stored = Leaf((-1,), _STORED, {name: each.type for name, each in _exact(outputs)})
    return PatchPlan(
        leaves,
        keys,
        most,
        None,
        tuple(name for name, _ in _exact(outputs)),
        stored,
        _kept(operator, carried, stored, keys, row_keys),
        {leaf.path: tuple(operator.find(leaf, all_columns(leaves))) for leaf in leaves},
        {leaf.path: tuple(carried.get(leaf, {}).items()) for leaf in leaves},
    )


def searched_plan(leaf: Leaf, most: int) -> PatchPlan:
    """Plan how the first rows of a leaf are searched for, whose rows no key tells from equal ones."""
    stored = Leaf((-1,), _STORED, {})
    return PatchPlan((leaf,), None, most, None, (), stored, (), {leaf.path: ()}, {leaf.path: ()})


# ---- the syntax


def _numbered(tree: exp.Expr, texts: Texts) -> _Numbered:
    """The numbered rows of a query that keeps the first of them. Raises NotIncremental for any other query."""
    if not isinstance(tree, exp.Select):
        raise NotIncremental("a set operation")
    if tree.args.get("qualify") is not None:
        return _qualified(tree, texts)
    require_only(tree, _OF_OUTER)
    require_rows(tree)
    source = tree.args["from_"].this if tree.args.get("from_") else None
    where = tree.args.get("where")
    select = _derived(source, tree)
    if source is None or select is None or where is None:
        raise NotIncremental("no condition on row_number()")
    require_only(source, _OF_SUBQUERY)
    if source.alias_column_names or any(isinstance(node, exp.Window) for node in own_nodes(tree)):
        raise NotIncremental("another window, or other names of columns")
    window, partition = _window(select, texts)
    names = [item.alias.lower() for item in select.expressions if texts.are_same(item.unalias(), window)]
    if len(names) != 1 or [item.alias_or_name.lower() for item in select.expressions].count(names[0]) != 1:
        raise NotIncremental("no name for row_number()")

    def is_place(node: exp.Expr) -> bool:
        is_named = isinstance(node, exp.Column) and node.name.lower() == names[0] and not node.args.get("db")
        return is_named and node.text("table").lower() in ("", source.alias_or_name.lower())

    places = [number for number, item in enumerate(tree.expressions) if is_place(item.unalias())]
    return _Numbered(select, partition, _most(where.this, is_place), [] if _has_star(tree) else places, tree)


def _derived(source: exp.Expr | None, tree: exp.Select) -> exp.Select | None:
    """The SELECT that an item of FROM is, or that it names as a CTE without names for its columns."""
    if isinstance(source, exp.Subquery):
        return source.this if isinstance(source.this, exp.Select) else None
    with_ = tree.args.get("with_")
    if not isinstance(source, exp.Table) or source.args.get("db") or not isinstance(with_, exp.With):
        return None
    named = [cte for cte in with_.expressions if cte.alias.lower() == source.name.lower()]
    if len(named) != 1 or named[0].args["alias"].columns or not isinstance(named[0].this, exp.Select):
        return None
    return named[0].this


def _qualified(select: exp.Select, texts: Texts) -> _Numbered:
    window, partition = _window(select, texts)
    places = [number for number, item in enumerate(select.expressions) if texts.are_same(item.unalias(), window)]
    most = _most(select.args["qualify"].this, lambda node: texts.are_same(node, window))
    return _Numbered(select, partition, most, [] if _has_star(select) else places)


def _window(select: exp.Select, texts: Texts) -> tuple[exp.Window, list[exp.Expr]]:
    """The only window of a SELECT, which may be written twice and must number its rows, and its PARTITION BY."""
    require_only(select, _OF_NUMBERED)
    require_rows(select)
    found = [(window, partition) for window, _, partition in windows(select)]
    if not found or not isinstance(found[0][0].this, exp.RowNumber):
        raise NotIncremental("other windows than one row_number()")
    if not all(texts.are_same(window, found[0][0]) for window, _ in found):
        raise NotIncremental("other windows than one row_number(), or not the same text of it")
    return found[0]


def require_rows(select: exp.Select) -> None:
    """Raise NotIncremental unless each row of a SELECT comes from one row of its FROM, and depends on no other."""
    if is_aggregated(select) or any(map(makes_rows, select.expressions)) or any(nested_queries(select)):
        raise NotIncremental("an aggregate, a function that returns several rows, or a subquery in an expression")


def _most(condition: exp.Expr, is_place: Callable[[exp.Expr], bool]) -> int:
    """The number k of a condition that holds for the places 1 to k."""
    condition = condition.unnest()
    if not isinstance(condition, exp.LTE | exp.LT | exp.EQ) or not is_place(condition.left):
        raise NotIncremental("another condition than one on row_number()")
    number = condition.right
    most = int(number.name) if isinstance(number, exp.Literal) and number.is_int else 0
    most -= isinstance(condition, exp.LT)
    if most < 1 or (isinstance(condition, exp.EQ) and most != 1):
        raise NotIncremental("a condition on row_number() that the first rows do not meet")
    return most


def _has_star(select: exp.Select) -> bool:
    return any(isinstance(node, exp.Star) for item in select.expressions for node in item.walk())


# ---- the operators


def _exact(outputs: Sequence[Column]) -> Iterator[tuple[str, LeafColumn]]:
    for column in outputs:
        if len(column.origin) == 1:
            (origin,) = column.origin
            if is_exact(origin.type):
                yield column.name, origin


def _carried(outputs: Sequence[Column], operator: Operator) -> _Carried:
    equalities = operator.equalities if isinstance(operator, InnerJoin) else ()
    found: dict[Leaf, dict[str, str]] = {}
    for name, column in _exact(outputs):
        for origin in equal_to(frozenset({column}), equalities):
            if len(origin) == 1:
                (each,) = origin
                found.setdefault(each.leaf, {}).setdefault(each.name, name)
    return found


def _kept(
    operator: Operator, carried: _Carried, stored: Leaf, keys: KeysPlan | None, row_keys: Mapping[str, Collection[str]]
) -> tuple[Lookup, ...]:
    """The lookups from the stored rows to their leaf rows: by keys, and from there by joins if this reaches them all.

    A column that is no key, such as that of PARTITION BY, may be that of many rows that are not stored.
    """
    with_keys = {leaf: columns for leaf, columns in carried.items() if columns.keys() >= set(row_keys[leaf.source])}
    try:
        return tuple(operator.restrict(list(_restrictions(with_keys, stored, keys, row_keys)), finding=True))
    except NotIncremental:
        return tuple(operator.restrict(list(_restrictions(carried, stored, keys, row_keys)), finding=True))


def _restrictions(
    carried: _Carried, stored: Leaf, keys: KeysPlan | None, row_keys: Mapping[str, Collection[str]]
) -> Iterator[Restriction]:
    """Restrict each leaf to what the stored rows have of it: its key, or else columns that KEYS looks up, too.

    By other columns it is not restricted, since each set of columns that is looked up needs an index.
    """
    lookups = keys.lookups if keys is not None else []
    for leaf, columns in carried.items():
        names = tuple(row_keys[leaf.source])
        if not columns.keys() >= set(names):
            known = {name for lookup in lookups if lookup.leaf == leaf for name in lookup.columns}
            names = tuple(name for name in columns if name in known)
        if names:
            values = Values((tuple(LeafColumn(stored, columns[name]) for name in names),), is_join=False)
            yield Restriction(tuple(frozenset({LeafColumn(leaf, name)}) for name in names), values)

"""The plan of a view that is maintained by its keys: what is looked up for a change, and what is computed again.

The *handle* are columns of the view's result by which whole groups of its rows are found: its rows that a change may
add or remove have handle values that the find lookups give, and the recompute lookups reduce the leaves so that the
view's text gives exactly the rows of some handle values. A handle has a part for each leaf that its columns come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.build import Built, LeafOf, build, build_from
from cdc_views.plan.incremental.columns import Column, Leaf, LeafColumn, Origin, Path, leaf_at
from cdc_views.plan.incremental.expressions.known import Expressions
from cdc_views.plan.incremental.expressions.stored_groups import stored_groups
from cdc_views.plan.incremental.operators import Equality, InnerJoin, Operator, Scan, named_leaves
from cdc_views.plan.incremental.restrictions import Lookup, NotIncremental, Restriction, Values
from cdc_views.views.references import ParsedQuery

MOST_LOOKUPS: Final = 200
"""Of a plan."""
_AFFECTED: Final = "affected keys"


@dataclass(frozen=True)
class HandlePart:
    """Columns of a handle that come from one leaf, or from one leaf of each branch of a set operation.

    `names` are columns of the view; `origins` has, for each leaf, the leaf columns with their values. `keys` stands for
    their affected values in lookups, as if it were a leaf with columns of the same names.
    """

    names: tuple[str, ...]
    origins: tuple[tuple[LeafColumn, ...], ...]
    keys: Leaf


@dataclass(frozen=True)
class Handle:
    """One way to find groups of the view's rows.

    `find` has, for each leaf, the lookups from its changed rows to the rows of the leaves in `parts`. `recompute` has
    the lookups from the values of the parts to the reduced leaves. Both use the columns in `sought`.
    """

    parts: tuple[HandlePart, ...]
    find: Mapping[Path, tuple[Lookup, ...]]
    sought: Mapping[Leaf, frozenset[str]]
    recompute: tuple[Lookup, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of all parts."""
        return tuple(name for part in self.parts for name in part.names)


@dataclass(frozen=True)
class KeysPlan:
    """How a view is maintained by lookups. With several handles, each changed row is looked for by each of them.

    Without a handle, the view is computed from all rows of its leaves, of which there are few.

    `leaves` are those that the view's text names; lookups may lead through those of internal views, too. With several
    handles, where all columns of a part are NULL, a row of the view may have no row of their leaf at all: a full join
    gives such rows, and lookups by NULL do not find them.

    `constants` are the stored rows of subqueries, with the columns that hold their values. While these stay what they
    are, the view depends on the other leaves alone. Those in `existences` are counts, of which only matters whether
    they are 0.

    The plan holds for an epoch if no row has NULL in the columns of `without_null`, before and after the epoch.
    """

    leaves: tuple[Leaf, ...]
    handles: tuple[Handle, ...]
    constants: tuple[Leaf, ...] = ()
    existences: frozenset[Leaf] = frozenset()
    without_null: tuple[LeafColumn, ...] = ()

    @property
    def lookups(self) -> list[Lookup]:
        """All lookups, of all handles."""
        return [each for handle in self.handles for many in [handle.recompute, *handle.find.values()] for each in many]

    @property
    def internal_views(self) -> frozenset[str]:
        """The internal views that the lookups lead through, those with constants, and those that are leaves."""
        through = (lookup.leaf for lookup in self.lookups if lookup.leaf.is_internal)
        stored = (leaf for leaf in self.leaves if leaf.is_stored)
        return frozenset(leaf.source for leaf in (*through, *self.constants, *stored))


def keys_plan(
    query: ParsedQuery,
    source_of: Callable[[int], str],
    types: Mapping[str, Mapping[str, str]],
    columns: Mapping[str, str],
    key: Sequence[str] | None,
    row_keys: Mapping[str, Sequence[str]],
    expressions: Expressions,
) -> KeysPlan:
    """Plan a view. Raises NotIncremental with the reason why it must be computed in full.

    `source_of` returns the manifest's name of the table that the text names at an offset; `types` has the Arrow types
    of the columns of each; `columns` are the columns of the view's table with their types, `key` those that identify a
    row; `row_keys` has those of its inputs; `expressions` knows the stored values.
    """
    leaves: dict[Path, Leaf] = {}
    new_leaf = leaf_at(source_of, types, row_keys)

    def leaf_of(table: object, path: Path) -> Leaf:
        return leaves.setdefault(path, new_leaf(table, path))

    def planned(*, by_rows: bool) -> KeysPlan:
        built = build(query.tree, leaf_of, expressions, by_rows=by_rows)
        outputs = outputs_of(built, columns, are_renamed=query.definition.columns is not None)
        return replace(
            _plan(built, outputs, key, row_keys),
            constants=tuple(expressions.constants.values()),
            existences=frozenset(expressions.existences),
            without_null=expressions.columns_without_null,
        )

    try:
        return planned(by_rows=False)
    except NotIncremental as reason:
        try:
            return planned(by_rows=True)
        except NotIncremental:
            raise reason from None


def keys_of_totals(
    query: ParsedQuery,
    leaf_of: LeafOf,
    sources: Sequence[str],
    columns: Mapping[str, str],
    key: Sequence[str] | None,
    expressions: Expressions,
) -> KeysPlan:
    """Plan a view of totals that are stored; if they are not, they are wanted. Raises NotIncremental.

    `leaf_of` makes the leaf of a table at a place of the text; `sources` are the view's inputs; the rest is as for
    `keys_plan`.
    """
    select = query.tree
    if not isinstance(select, exp.Select):
        raise NotIncremental("a set operation")
    _, scope = build_from(select, leaf_of, Expressions(query))
    groups = stored_groups(query, select, scope, sources)
    found = expressions.rows_of(groups.wanted)
    if found is None:
        raise NotIncremental("no internal view stores the groups")
    leaf, own_key = found
    if groups.has_one_row:
        return KeysPlan((leaf,), ())
    outputs = [
        Column(name, frozenset({LeafColumn(leaf, stored)} if stored and leaf.types[stored] == type_ else ()))
        for (name, type_), stored in zip(columns.items(), groups.passed_on, strict=True)
    ]
    return _plan(Built(Scan(leaf), outputs), outputs, key, {leaf.source: own_key})


def _plan(
    built: Built, outputs: Sequence[Column], key: Sequence[str] | None, row_keys: Mapping[str, Sequence[str]]
) -> KeysPlan:
    alternatives = []
    for passable in built.operator.passable():
        chosen = _gathered(_chosen(outputs, passable, key, row_keys), passable, built.operator, row_keys)
        if not chosen:
            raise NotIncremental(_why_no_handle(built.operator, passable))
        if chosen not in alternatives:
            alternatives.append(chosen)
    handles = [handle_of(built.operator, chosen) for chosen in alternatives]
    return KeysPlan(tuple(named_leaves(built.operator)), tuple(handles))


def outputs_of(built: Built, columns: Mapping[str, str], *, are_renamed: bool) -> list[Column]:
    """The columns of a view's table, of these names and types. Raises NotIncremental if they are not certain."""
    if built.columns is None or len(built.columns) != len(columns):
        raise NotIncremental("the columns of its result are not all known")
    both = list(zip(columns, built.columns, strict=True))
    if not are_renamed and any(
        column.origin and column.name.lower() not in ("", name.lower()) for name, column in both
    ):
        raise NotIncremental("the columns of its result are in another order than is known")
    return [Column(name, column.origin if _has_type(column, columns[name]) else frozenset()) for name, column in both]


def _has_type(column: Column, type_: str) -> bool:
    """Whether a stored value has the type of the one that the view's own query computes."""
    return all(each.type == type_ for each in column.origin if each.leaf.is_internal)


def _chosen(
    outputs: Sequence[Column],
    passable: frozenset[Origin],
    key: Sequence[str] | None,
    row_keys: Mapping[str, Sequence[str]],
) -> list[Column]:
    """The columns of the handle: those of the view's key if there are any, else those of the key of an input.

    Without either, all that can be looked up.
    """
    usable: dict[Origin, Column] = {}
    for column in outputs:
        if column.origin in passable:
            usable.setdefault(column.origin, column)
    of_key = [column for column in usable.values() if key is not None and column.name in key]
    return of_key or _of_a_row(list(usable.values()), row_keys) or list(usable.values())


def _of_a_row(columns: Sequence[Column], row_keys: Mapping[str, Sequence[str]]) -> list[Column]:
    """The columns that are the whole key of each leaf that they come from.

    By others, such as a count, many more rows would be found.
    """
    for leaf in _leaves(columns):
        key = row_keys.get(leaf.source, ())
        found = [column for column in columns if any(each.leaf == leaf and each.name in key for each in column.origin)]
        leaves = {each.leaf for column in found for each in column.origin}
        if found and all(_has_key(found, each, row_keys.get(each.source, ())) for each in leaves):
            return found
    return []


def _leaves(columns: Sequence[Column]) -> list[Leaf]:
    """The leaves that columns come from, each once."""
    return list(dict.fromkeys(each.leaf for column in columns for each in sorted(column.origin, key=_place)))


def _has_key(columns: Sequence[Column], leaf: Leaf, key: Sequence[str]) -> bool:
    names = {each.name for column in columns for each in column.origin if each.leaf == leaf}
    return bool(key) and set(key) <= names


def _place(column: LeafColumn) -> Path:
    return column.leaf.path


def _gathered(
    columns: Sequence[Column], passable: frozenset[Origin], operator: Operator, row_keys: Mapping[str, Sequence[str]]
) -> list[Column]:
    """The columns with origins at as few leaves as possible, so that one lookup has many of them.

    An inner join makes columns equal in all of its rows, so each of them stands for the others: `o.id` of
    `o JOIN i ON i.order_id = o.id` is also `i.order_id`, beside `i.line`. Of two leaves that could have as many
    columns, one with its whole key is better: `line` alone would be looked up in every order.
    """
    equal = operator.equalities if isinstance(operator, InnerJoin) else ()
    choices = [[origin for origin in equal_to(column.origin, equal) if origin in passable] for column in columns]
    possible = [Column("", origin) for each in choices for origin in each]
    whole = {leaf for leaf in _leaves(possible) if _has_key(possible, leaf, row_keys.get(leaf.source, ()))}
    found: dict[int, Origin] = {}
    while len(found) < len(columns):
        rest = [number for number in range(len(columns)) if number not in found]
        at = [frozenset(each.leaf for each in origin) for number in rest for origin in choices[number]]
        best = max(sorted(at, key=whole.issuperset, reverse=True), key=at.count)
        for number in rest:
            at_best = [origin for origin in choices[number] if frozenset(each.leaf for each in origin) == best]
            if at_best:
                found[number] = at_best[0]
    gathered = [replace(column, origin=found[number]) for number, column in enumerate(columns)]
    return list({column.origin: column for column in reversed(gathered)}.values())[::-1]


def equal_to(origin: Origin, equalities: Iterable[Equality]) -> list[Origin]:
    """The columns that equal one in all rows of a join, itself first."""
    found = [origin]
    for each in found:
        for pair in equalities:
            found += [both.right for both in (pair, pair.turned()) if both.left == each and both.right not in found]
    return found


def _why_no_handle(operator: Operator, passable: frozenset[Origin]) -> str:
    try:
        operator.restrict([])
    except NotIncremental as error:
        if not passable:
            return str(error)
    return "its result has no column, unchanged from a table, by which its rows can be looked up"


def handle_of(operator: Operator, columns: Sequence[Column]) -> Handle:
    """The lookups of an operator by these columns of its output. Raises NotIncremental."""
    parts = _parts(columns)
    needed = {column.origin for column in columns}
    by_name = {column.name: column.origin for column in columns}
    restrictions = [
        Restriction(
            tuple(by_name[name] for name in part.names),
            Values((tuple(LeafColumn(part.keys, name) for name in part.names),), is_join=False),
        )
        for part in parts
    ]
    recompute = _without_unused(operator.restrict(restrictions), ())
    found = [column.leaf for part in parts for columns in part.origins for column in columns]
    find = {leaf.path: _without_unused(operator.find(leaf, needed), found) for leaf in named_leaves(operator)}
    return Handle(parts, find, _sought(parts, find, recompute), recompute)


def _without_unused(lookups: Sequence[Lookup], used: Iterable[Leaf]) -> tuple[Lookup, ...]:
    """The lookups without those in internal views that lead to no other lookup, and to no leaf in `used`."""
    leaves, kept = set(used), list[Lookup]()
    for lookup in reversed(lookups):
        if not lookup.leaf.is_internal or lookup.leaf in leaves:
            kept.insert(0, lookup)
            leaves |= {column.leaf for columns in lookup.values.columns for column in columns}
    return tuple(kept)


def _sought(
    parts: Sequence[HandlePart], find: Mapping[Path, Sequence[Lookup]], recompute: Sequence[Lookup]
) -> dict[Leaf, frozenset[str]]:
    found: dict[Leaf, frozenset[str]] = {}
    values = [lookup.values.columns for lookups in [recompute, *find.values()] for lookup in lookups]
    for column in (column for each in [*values, *(part.origins for part in parts)] for many in each for column in many):
        found[column.leaf] = found.get(column.leaf, frozenset()) | {column.name}
    return found


def _parts(columns: Sequence[Column]) -> tuple[HandlePart, ...]:
    by_leaves: dict[frozenset[Leaf], list[Column]] = {}
    for column in columns:
        by_leaves.setdefault(frozenset(each.leaf for each in column.origin), []).append(column)
    parts = []
    for number, (leaves, found) in enumerate(by_leaves.items()):
        names = tuple(column.name for column in found)
        origins = tuple(
            tuple(next(each for each in column.origin if each.leaf == leaf) for column in found)
            for leaf in sorted(leaves, key=lambda each: each.path)
        )
        types = {name: origin.type for name, origin in zip(names, origins[0], strict=True)}
        parts.append(HandlePart(names, origins, Leaf((-1 - number,), _AFFECTED, types)))
    return tuple(parts)

"""How a view is maintained: its strategy with the reason, and what the strategy needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdc_views.errors.unexpected import described
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.facts.grouping_sets import has_only_sets
from cdc_views.plan.facts.keys import is_counted
from cdc_views.plan.incremental.build import LeafOf
from cdc_views.plan.incremental.columns import Leaf, Path, leaf_at
from cdc_views.plan.incremental.delta_plans.additive import AddPlan, add_plan, changed_rows, is_total
from cdc_views.plan.incremental.delta_plans.affected_rows import RowKeys, RowsOf, affected_rows, changed_or_affected
from cdc_views.plan.incremental.delta_plans.first_rows import first_rows_plan, stored_rows_plan
from cdc_views.plan.incremental.delta_plans.group_totals import GroupPlan, group_plan, rows_of_joins, sets_plan
from cdc_views.plan.incremental.delta_plans.linear import leaf_among
from cdc_views.plan.incremental.delta_plans.top_rows import PatchPlan, patch_plan, require_keys
from cdc_views.plan.incremental.expressions.derived_table import StoredDerivedTable, WantedTable
from cdc_views.plan.incremental.expressions.known import NO_COLUMNS, Expressions, StoredValues, Wanted
from cdc_views.plan.incremental.expressions.one_row import StoredRow, WantedRow
from cdc_views.plan.incremental.inlined import Edit, LeafPlace, Substitute, inlined
from cdc_views.plan.incremental.precedence import require_same_grouping
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.strategy import MOST_LOOKUPS, KeysPlan, keys_of_totals, keys_plan
from cdc_views.views.nesting import naming_deep_nesting
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import tokens_of

# Each use of a CTE has leaves of its own, so their number doubles with each level of CTEs that are used twice.
_MOST_LEAVES: Final = 32

_WHOLE: Final = "the whole query is run and compared with the stored rows"
_ADDED: Final = "the totals over the rows that are added are added, those over the rows that are removed are subtracted"
_LISTED: Final = "the values over the rows that are added and removed are merged into the stored lists"
_COMPARED: Final = "extremes are compared with those over the rows that are added and removed"
_MERGED: Final = "the stored rows are merged with the rows that are added"
_SEARCHED: Final = "the first rows are searched for"
_AVERAGED: Final = "averages follow from sums and counts"
_FROM_TOTALS: Final = "its row is computed again from the stored totals, and compared"
_CONSTANT: Final = ", as long as the values of its subqueries stay what they are"
_NEVER_NULL: Final = " not null"  # in the Arrow type of a struct or a list
PLAN_FAILED: Final = "an error in the planner, please report it"
# A fault of ours must not keep the engine from starting: the view can be maintained in a simpler way.
_FAULTS: Final = (AssertionError, AttributeError, LookupError, TypeError, ValueError, StopIteration, SqlglotError)

StrategyName = Literal["KEYS", "ADD", "PATCH", "FULL"]
StoredPart = StoredValues | StoredRow | StoredDerivedTable
"""What an internal view stores."""
Types = Mapping[str, Mapping[str, str]]
"""The Arrow types of the columns of tables and views, by name."""


@dataclass(frozen=True)
class LeafText:
    """The view's text with a place for each leaf, and the columns of each input in it."""

    pieces: Sequence[str | LeafPlace]
    used: Mapping[str, frozenset[str]]

    def query(self, relation: Callable[[Path], str]) -> str:
        """The view's SQL over the relation of each leaf."""
        return "".join(piece if isinstance(piece, str) else relation(piece.path) + piece.after for piece in self.pieces)


@dataclass(frozen=True)
class Maintenance:
    """The strategy of a view and the reason for it.

    KEYS has `keys`, PATCH `patch` beside it, or alone for the first rows of a whole query. ADD has `adds`, or for
    groups `group_adds` beside `keys`, which grouping sets and some computed groups lack; with ordered lists, these are
    PATCH. All of these have `text`. The internal views that it uses are in `stored`, those that these use in `below`.
    FULL has the expressions that are `wanted`: internal views that store them may make it KEYS. `fault` is an error of
    the planner that ruled out a better one.
    """

    strategy: StrategyName
    reason: str
    keys: KeysPlan | None = None
    adds: AddPlan | None = None
    group_adds: GroupPlan | None = None
    patch: PatchPlan | None = None
    text: LeafText | None = None
    stored: tuple[StoredPart, ...] = ()
    below: tuple[StoredPart, ...] = ()
    wanted: tuple[Wanted | WantedRow | WantedTable, ...] = ()
    fault: str | None = None

    @property
    def internal_views(self) -> frozenset[str]:
        """The names of the internal views that it needs."""
        leaves = self.patch.leaves if self.patch is not None else ()
        own = frozenset(leaf.source for leaf in leaves if leaf.is_stored)
        return own | (self.keys.internal_views if self.keys is not None else frozenset())


def in_full(reason: object) -> Maintenance:
    """A view that is computed in full for this reason."""
    return Maintenance("FULL", f"{_WHOLE}: {reason}")


def maintenance(
    view: CompiledView,
    types: Types,
    columns: Mapping[str, str],
    row_keys: RowKeys,
    stored: Sequence[StoredPart] = (),
    not_null: Mapping[str, frozenset[str]] = NO_COLUMNS,
) -> Maintenance:
    """Choose the strategy of a view. `types` and `row_keys` describe its inputs, `columns` are those of its SELECT with
    their types; `not_null` are the columns of its inputs that the source declares so.

    `stored` are its internal views. If it is FULL for want of one, its `wanted` says which expressions that would
    store. Raises UnsupportedView for a query that is nested too deeply.
    """
    if view.parsed is None:
        return Maintenance("FULL", view.key_reason)
    edits = _edits(view)
    appended = {each.start: each.after for each in edits if each.start == each.end}
    expressions = Expressions(view.parsed, stored, not_null, appended)
    with naming_deep_nesting(view.definition):
        try:
            given = _Given(view, view.parsed, types, columns, row_keys, not_null, edits)
            found = _incremental(given, expressions)
        except NotIncremental as reason:
            found = in_full(reason)
        except _FAULTS as error:
            found = _with_fault(Maintenance("FULL", _WHOLE), error)
    if found.strategy == "FULL":
        return replace(found, wanted=tuple(expressions.wanted.values()))
    return replace(found, stored=tuple(each for each in stored if each.name in found.internal_views))


@dataclass(frozen=True)
class _Given:
    """A view that has no plan yet. `edits` are those of its text; the other fields are those of `maintenance`."""

    view: CompiledView
    parsed: ParsedQuery
    types: Types
    columns: Mapping[str, str]
    row_keys: RowKeys
    not_null: Mapping[str, frozenset[str]]
    edits: Sequence[Edit]

    @property
    def leaf_of(self) -> LeafOf:
        return leaf_at(self.view.sources.__getitem__, self.types, self.row_keys)

    @property
    def rows_of_totals(self) -> RowsOf:
        """How the rows of a total over all rows are found."""
        return changed_or_affected(changed_rows(self.parsed, self.leaf_of), self._affected_rows)

    @property
    def rows_of_groups(self) -> RowsOf:
        """How the rows of its groups are found, without KEYS."""
        return changed_or_affected(rows_of_joins(self.parsed, self.leaf_of), self._affected_rows)

    @property
    def _affected_rows(self) -> RowsOf:
        return affected_rows(self.parsed, self.leaf_of, self.row_keys, self.not_null)


def _incremental(given: _Given, expressions: Expressions) -> Maintenance:
    view, parsed, columns = given.view, given.parsed, given.columns
    require_same_grouping(parsed.tree)
    of_totals = _of_total if is_total(parsed.tree) else _of_sets if has_only_sets(parsed.tree) else None
    if of_totals is not None:
        try:
            return of_totals(given)
        except NotIncremental:
            stored = _stored_totals(given, expressions)
            if stored is None:
                raise
            return stored
    try:
        keys = keys_plan(parsed, view.sources.__getitem__, given.types, columns, view.key, given.row_keys, expressions)
    except NotIncremental:
        other = (
            _first_rows(given)
            or _first_stored_rows(given, expressions)
            or _computed_groups(given, may_lack_keys=not expressions.wanted)
        )
        if other is None:
            raise
        return other
    lookups = len(keys.lookups)
    if len(keys.leaves) > _MOST_LEAVES or lookups > MOST_LOOKUPS:
        raise NotIncremental(f"{len(keys.leaves)} places name a table, and {lookups} lookups lead from one to another")
    plan = _by_keys(given, keys, expressions)
    for better in (_added,) if keys.internal_views else (_patched, _added):
        try:
            return better(plan, given)
        except NotIncremental:
            continue
        except _FAULTS as error:
            plan = _with_fault(plan, error)
    return plan


def _by_keys(given: _Given, keys: KeysPlan, expressions: Expressions) -> Maintenance:
    names = ", ".join(dict.fromkeys(name for handle in keys.handles for name in handle.names))
    reason = (
        f"the rows of affected ({names}) are looked up, computed again, and compared" if keys.handles else _FROM_TOTALS
    )
    return Maintenance(
        "KEYS",
        f"{reason}{_CONSTANT if keys.constants else ''}{_without_null(keys)}",
        keys=keys,
        text=_text(given, [*keys.leaves, *keys.constants], _keys_of(keys), expressions),
    )


def _without_null(keys: KeysPlan | None) -> str:
    columns = ", ".join(dict.fromkeys(map(str, keys.without_null if keys is not None else ())))
    return f", as long as no row has NULL in {columns}" if columns else ""


def _with_fault(plan: Maintenance, error: Exception) -> Maintenance:
    fault = f"{PLAN_FAILED}: {described(error)}"
    return replace(plan, reason=f"{plan.reason}: {fault}", fault=fault)


def _reason(adds: AddPlan) -> str:
    kinds = {
        _ADDED: adds.totals,
        _COMPARED: adds.extremes,
        "different values are counted again if a changed row has them": adds.distincts,
        _AVERAGED: adds.averages,
    }
    before = ""
    if adds.affected is not None:
        (handle,) = adds.affected.handles
        before = f"of affected ({', '.join(handle.names)}), "
    return before + "; ".join(text for text, found in kinds.items() if found) + _without_null(adds.affected)


def _reason_of_groups(groups: GroupPlan) -> str:
    kinds = {_LISTED: groups.lists, _ADDED: groups.totals, _COMPARED: groups.extremes, _AVERAGED: groups.averages}
    reason = f"for each ({', '.join(groups.found_by)}), " + "; ".join(text for text, found in kinds.items() if found)
    return reason + _without_null(groups.affected)


def _by_groups(given: _Given, groups: GroupPlan) -> Maintenance:
    """ADD by groups without a plan for KEYS. Raises NotIncremental."""
    text = _text(given, groups.leaves, _found_by(groups.affected))
    return Maintenance("ADD", _reason_of_groups(groups), group_adds=groups, text=text)


def _of_total(given: _Given) -> Maintenance:
    adds = add_plan(given.parsed, given.rows_of_totals, given.columns)
    return Maintenance("ADD", _reason(adds), adds=adds, text=_text(given, adds.leaves, _found_by(adds.affected)))


def _of_sets(given: _Given) -> Maintenance:
    return _by_groups(given, sets_plan(given.parsed, given.rows_of_groups, given.columns, given.view.key))


def _stored_totals(given: _Given, expressions: Expressions) -> Maintenance | None:
    try:
        view = given.view
        keys = keys_of_totals(given.parsed, given.leaf_of, view.inputs, given.columns, view.key, expressions)
        return _by_keys(given, keys, expressions)
    except NotIncremental:
        return None


def _first_rows(given: _Given) -> Maintenance | None:
    try:
        patch = first_rows_plan(given.parsed, given.leaf_of, given.columns, given.row_keys)
        text = _text(given, patch.leaves)
        require_keys(patch.leaves, given.row_keys, text.used)
    except NotIncremental:
        return None
    return Maintenance("PATCH", _MERGED if patch.is_merged else _SEARCHED, patch=patch, text=text)


def _first_stored_rows(given: _Given, expressions: Expressions) -> Maintenance | None:
    try:
        patch, edits = stored_rows_plan(given.parsed, given.view.inputs, given.columns, expressions, given.edits)
        text = _text(replace(given, edits=edits), patch.leaves, expressions=expressions)
    except NotIncremental:
        return None
    return Maintenance("PATCH", _MERGED if patch.is_merged else _SEARCHED, patch=patch, text=text)


def _computed_groups(given: _Given, *, may_lack_keys: bool) -> Maintenance | None:
    """The plan for ADD by groups that KEYS cannot find; None if there is none.

    Without `may_lack_keys`, an internal view might find them: then none in which an epoch may have to be FULL.
    """
    try:
        groups = group_plan(given.parsed, given.rows_of_groups, given.columns, given.view.key, None)
        return _by_groups(given, groups) if groups.follows_always or may_lack_keys else None
    except NotIncremental:
        return None


def _patched(plan: Maintenance, given: _Given) -> Maintenance:
    """The plan for PATCH. Raises NotIncremental."""
    assert plan.keys is not None
    assert plan.text is not None
    patch = patch_plan(given.parsed, given.columns, given.view.key, plan.keys, given.row_keys, plan.text.used)
    names = ", ".join(plan.keys.handles[0].parts[0].names)
    reason = f"the stored rows of affected ({names}) are merged with the rows that are added"
    return replace(plan, strategy="PATCH", reason=reason, patch=patch)


def _added(plan: Maintenance, given: _Given) -> Maintenance:
    """The plan for ADD by groups, or for PATCH of their lists. Raises NotIncremental."""
    assert plan.keys is not None
    rows_of = rows_of_joins(given.parsed, leaf_among(plan.keys.leaves))
    groups = group_plan(given.parsed, rows_of, given.columns, given.view.key, plan.keys)
    strategy: StrategyName = "PATCH" if groups.lists else "ADD"
    return replace(plan, strategy=strategy, reason=_reason_of_groups(groups), group_adds=groups)


def _keys_of(plan: KeysPlan) -> dict[str, frozenset[str]]:
    """The columns of each table by which its rows are looked up in internal views."""
    values = (each for lookup in plan.lookups if lookup.leaf.is_internal for each in lookup.values.columns)
    return _by_source((column.leaf, [column.name]) for columns in values for column in columns)


def _found_by(plan: KeysPlan | None) -> dict[str, frozenset[str]]:
    """The columns of each table by which affected rows are found."""
    return _by_source(each for handle in (plan.handles if plan is not None else ()) for each in handle.sought.items())


def _by_source(columns: Iterable[tuple[Leaf, Iterable[str]]]) -> dict[str, frozenset[str]]:
    """The columns of all leaves of each table."""
    found: dict[str, frozenset[str]] = {}
    for leaf, names in columns:
        found[leaf.source] = found.get(leaf.source, frozenset()).union(names)
    return found


def _edits(view: CompiledView) -> list[Edit]:
    return [Edit(each.start, each.end, each.after) for each in view.replacements if each.source is None]


def _text(
    given: _Given,
    leaves: Collection[Leaf],
    keys: Mapping[str, frozenset[str]] = NO_COLUMNS,
    expressions: Expressions | None = None,
) -> LeafText:
    """The text of a view with these leaves. Raises NotIncremental if it names a table at another place.

    `keys` are columns that the text may not name, and that lookups need; the subqueries that
    `expressions` has stored are replaced.
    """
    parsed = given.parsed
    edits = given.edits
    subqueries = expressions.stored_subqueries() if expressions is not None else []
    # A subquery that is a value may be NULL, stored or not.
    are_relations = any(each.is_relation for each in subqueries)
    if are_relations and any(_NEVER_NULL in type_ for type_ in given.columns.values()):
        raise NotIncremental("a part of a nested column that is never NULL, which a stored value may be to Spark")
    substitutes = [Substitute(each.start, each.end, each.select, each.after) for each in subqueries]
    pieces = inlined(parsed, [*edits, *substitutes])
    if {piece.path for piece in pieces if isinstance(piece, LeafPlace)} != {leaf.path for leaf in leaves}:
        raise NotIncremental("a table is named where no change of it would be seen")
    used = _used(given, edits) | {each.name: frozenset(each.types) for each in subqueries}
    return LeafText(pieces, {source: names | keys.get(source, frozenset()) for source, names in used.items()})


def _used(given: _Given, edits: Sequence[Edit]) -> dict[str, frozenset[str]]:
    """The columns of each input that the text may mean: all whose name occurs in it anywhere."""
    view, parsed, types = given.view, given.parsed, given.types
    if _means_all_columns(parsed.tree):
        return {source: frozenset(types[source]) for source in view.inputs}
    definition = view.definition
    words = {token.text.lower() for token in parsed.tokens}
    for edit in edits:
        words |= {token.text.lower() for token in tokens_of(edit.after, definition.file)}
    return {source: frozenset(name for name in types[source] if name.lower() in words) for source in view.inputs}


def _means_all_columns(tree: exp.Expr) -> bool:
    """Whether a query has `*`, other than in count(*), a NATURAL join, or names like `t AS a(id, name)`."""
    stars = (star for star in tree.find_all(exp.Star) if not is_counted(star))
    return (
        any(stars)
        or any(join.method == "NATURAL" for join in tree.find_all(exp.Join))
        or any(table.alias_column_names for table in tree.find_all(exp.Table))
    )

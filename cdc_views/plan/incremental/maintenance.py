"""How a view is maintained: its strategy with the reason, and what the strategy needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.additive import AddPlan, add_plan, is_total
from cdc_views.plan.incremental.columns import Path
from cdc_views.plan.incremental.inlined import Edit, Place, inlined
from cdc_views.plan.incremental.restrictions import NotIncremental
from cdc_views.plan.incremental.strategy import KeysPlan, keys_plan
from cdc_views.views.nesting import naming_deep_nesting
from cdc_views.views.references import ParsedQuery
from cdc_views.views.text import tokens_of

StrategyName = Literal["KEYS", "ADD", "FULL"]
Types = Mapping[str, Mapping[str, str]]
"""The Arrow types of the columns of tables and views, by name."""


@dataclass(frozen=True)
class LeafText:
    """The view's text with a place for each leaf, and the columns of each input in it."""

    pieces: Sequence[str | Place]
    used: Mapping[str, frozenset[str]]

    def query(self, relation: Callable[[Path], str]) -> str:
        """The view's SQL over the relation of each leaf."""
        return "".join(piece if isinstance(piece, str) else relation(piece.path) + piece.after for piece in self.pieces)


@dataclass(frozen=True)
class Maintenance:
    """The strategy of a view and the reason for it. KEYS has `keys`, ADD has `adds`, both have `text`."""

    strategy: StrategyName
    reason: str
    keys: KeysPlan | None = None
    adds: AddPlan | None = None
    text: LeafText | None = None


def maintenance(view: CompiledView, types: Types, columns: Mapping[str, str]) -> Maintenance:
    """Choose the strategy of a view. `types` describes its inputs, `columns` are those of its SELECT with their types.

    Raises UnsupportedView for a query that is nested too deeply.
    """
    if view.parsed is None:
        return Maintenance("FULL", view.key_reason)
    with naming_deep_nesting(view.definition):
        try:
            return _incremental(view, view.parsed, types, columns)
        except NotIncremental as reason:
            return Maintenance("FULL", f"the whole query is run and compared with the stored rows: {reason}")


def _incremental(view: CompiledView, parsed: ParsedQuery, types: Types, columns: Mapping[str, str]) -> Maintenance:
    if is_total(parsed.tree):
        adds = add_plan(parsed, view.sources.__getitem__, types, columns)
        reason = (
            "the totals over the rows that are added are added, those over the rows that are removed are subtracted"
        )
        return Maintenance("ADD", reason, adds=adds, text=_text(view, parsed, types))
    keys = keys_plan(parsed, view.sources.__getitem__, types, list(columns), view.key)
    names = ", ".join(dict.fromkeys(name for handle in keys.handles for part in handle.parts for name in part.names))
    reason = f"the rows of affected ({names}) are looked up, computed again, and compared"
    return Maintenance("KEYS", reason, keys=keys, text=_text(view, parsed, types))


def _text(view: CompiledView, parsed: ParsedQuery, types: Types) -> LeafText:
    edits = [Edit(each.start, each.end, each.after) for each in view.replacements if each.source is None]
    return LeafText(inlined(parsed, edits), _used(view, parsed, edits, types))


def _used(view: CompiledView, parsed: ParsedQuery, edits: Sequence[Edit], types: Types) -> dict[str, frozenset[str]]:
    """The columns of each input that the text may mean: all whose name occurs in it anywhere."""
    if _means_all_columns(parsed.tree):
        return {source: frozenset(types[source]) for source in view.inputs}
    definition = view.definition
    words = {token.text.lower() for token in parsed.tokens}
    for edit in edits:
        words |= {token.text.lower() for token in tokens_of(edit.after, definition.file)}
    return {source: frozenset(name for name in types[source] if name.lower() in words) for source in view.inputs}


def _means_all_columns(tree: exp.Expr) -> bool:
    """Whether a query has `*`, other than in count(*), or a NATURAL join."""
    stars = (star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count))
    return any(stars) or any(join.method == "NATURAL" for join in tree.find_all(exp.Join))

"""The columns that a view shows, and uses for nothing else, such as the name of an author beside each post.

Let a row of a leaf change in such columns only. Then no filter, join, partition or order sees it: the view has the same
rows at the same places, and those that come from that row have its new values. So the stored rows of the row are found
by its key, which they carry, and get these values. Nothing is ranked again.

    SELECT f.user_id, p.id, p.author_id, a.name AS author, row_number() OVER (PARTITION BY f.user_id ORDER BY p.id)
    FROM follows f JOIN posts p ON p.author_id = f.followee_id JOIN users a ON a.id = p.author_id

Here `users.name` is only shown. A column is only shown if its name, and each name that a SELECT gives it, is nowhere
but in an item of a SELECT by itself. Names are compared, whatever they belong to, so some such columns are omitted. So
is one that an item may name by the alias of another item, as in `SELECT name AS a, a AS b`: where `b` comes from is not
known. And so is one that is in the key of the view.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import TokenType, exp

from cdc_views.plan.facts.keys import is_counted
from cdc_views.plan.incremental.columns import Column, Leaf, Path, is_exact
from cdc_views.views.references import ParsedQuery


@dataclass(frozen=True)
class ShownColumns:
    """The columns of a leaf that are only shown, and its key, each with the column of the view that has its value."""

    columns: tuple[tuple[str, str], ...]
    key: tuple[tuple[str, str], ...]


def shown_columns(
    query: ParsedQuery,
    leaves: Sequence[Leaf],
    outputs: Sequence[Column],
    key: Collection[str],
    types: Mapping[str, str],
    carried: Mapping[Path, Sequence[tuple[str, str]]],
    row_keys: Mapping[str, Collection[str]],
    used: Mapping[str, Collection[str]],
) -> dict[Path, ShownColumns]:
    """What is only shown of each leaf; leaves without such columns are omitted.

    `outputs` are the columns of the view, `types` their Arrow types, `key` those that identify a row; the rest is as
    for the plan of the view.
    """
    names = _Names.of(query)
    of_key = frozenset(origin for output in outputs if output.name in key for origin in output.origin)
    found = {}
    for leaf in leaves:
        columns = tuple(
            (origin.name, output.name)
            for output in outputs
            for origin in output.origin
            if len(output.origin) == 1 and origin.leaf == leaf and types[output.name] == origin.type
            if origin.name not in row_keys[leaf.source] and origin not in of_key
            if names.are_shown(origin.name.lower())
        )
        key = {name: shown for name, shown in carried[leaf.path] if name in row_keys[leaf.source]}
        others = {*used[leaf.source]} - {name for name, _ in columns}
        if columns and key.keys() == {*row_keys[leaf.source]} and all(is_exact(leaf.types[name]) for name in others):
            found[leaf.path] = ShownColumns(columns, tuple(key.items()))
    return found


@dataclass(frozen=True)
class _Names:
    """For each name of a column, the names that items of a SELECT give it; and the names that stand elsewhere."""

    given: Mapping[str, Collection[str]]
    elsewhere: Collection[str]
    are_certain: bool

    @classmethod
    def of(cls, query: ParsedQuery) -> _Names:
        given: defaultdict[str, set[str]] = defaultdict(set)
        shown: set[int] = set()  # where the text has the names of items, and those given to them
        for column in query.tree.find_all(exp.Column):
            name = column.name.lower()
            item = column.parent if isinstance(column.parent, exp.Alias) else column
            if _is_item(item) and not column.args.get("db") and not (column.table == "" and name in _aliases(item)):
                given[name].add(item.alias_or_name.lower())
                shown |= {each.meta["start"] for each in (column.this, item.args.get("alias")) if each is not None}
        # Of tokens, since sqlglot has no column for the unit of date_trunc(unit, at), nor for current_user. A field of
        # a column looks like a column of a table.
        others = (token for token in query.tokens if token.start not in shown)
        elsewhere = {token.text.lower() for token in others if token.token_type is not TokenType.STRING}
        return cls(given, elsewhere, not _has_other_names(query.tree))

    def are_shown(self, name: str) -> bool:
        """Whether the columns of a name, and of the names given to them, are only shown."""
        seen, pending = set[str](), {name}
        while pending:
            seen |= pending
            if seen & {*self.elsewhere}:
                return False
            pending = {given for each in pending for given in self.given.get(each, ())} - seen
        return self.are_certain


def _is_item(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Select) and node.arg_key == "expressions"


def _aliases(item: exp.Expr) -> set[str]:
    """The names that the other items of its SELECT are given."""
    assert item.parent is not None
    return {each.alias.lower() for each in item.parent.expressions if each is not item and isinstance(each, exp.Alias)}


def _has_other_names(tree: exp.Expr) -> bool:
    """Whether columns are named in another way than as columns."""
    joins = any(join.args.get("using") or join.method == "NATURAL" for join in tree.find_all(exp.Join))
    stars = any(
        any(star.args.values()) or not _is_item(star.parent if isinstance(star.parent, exp.Column) else star)
        for star in tree.find_all(exp.Star)
        if not is_counted(star)
    )
    return joins or stars or any(alias.columns for alias in tree.find_all(exp.TableAlias))

"""The key of a join, from the keys of its sides.

A side whose whole key the join condition sets equal to values of the other side adds no rows and no
columns to the key: each row of the other side finds at most one of it. That holds only for an equality
that compares values of one type: a text '1' and '01' both equal the number 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from cdc_views.plan.facts.relation import ColumnRef, FromClause, RelationFacts
from cdc_views.views.join_parentheses import is_inner

_FAMILIES: Final = {
    **dict.fromkeys(("int2", "int4", "int8", "oid"), "integer"),
    **dict.fromkeys(("text", "varchar", "name", "uuid", "enum"), "text"),
    **dict.fromkeys(("timestamp", "timestamptz"), "timestamp"),
    "bool": "bool",
    "date": "date",
}

Join = tuple[exp.Join, str, RelationFacts]  # with the alias and the facts of its right side


@dataclass(frozen=True)
class JoinFacts:
    """What is known of the rows of a FROM: their key, whether it may hold NULL, and columns that are always equal."""

    key: tuple[ColumnRef, ...] | None
    nullable: bool
    reason: str
    equal: tuple[tuple[ColumnRef, ColumnRef], ...] = ()

    def equal_to(self, column: ColumnRef) -> set[ColumnRef]:
        """Return the columns that have the value of `column` in every row."""
        found = {column}
        for _ in self.equal:
            found |= {b for pair in self.equal for a, b in (pair, pair[::-1]) if a in found}
        return found


def join_facts(
    first: str, rows: RelationFacts, joins: Sequence[Join], where: exp.Expr | None
) -> tuple[FromClause, JoinFacts]:
    """Return the FROM clause and what is known of its rows."""
    sources = FromClause({first: rows})
    key = None if rows.key is None else tuple((first, name) for name in rows.key)
    frame = JoinFacts(key, rows.nullable, rows.reason if key is None or not joins else "the keys of the joined tables")
    for join, alias, right in joins:
        before = sources
        if alias in sources.rows:
            return replace(sources, has_more=True), JoinFacts(None, False, f'"{alias}" stands for two tables')
        sources = _with_source(sources, join, alias, right)
        frame = _joined(frame, before, sources, (join, alias, right), where)
    if all(is_inner(join) for join, _, _ in joins):
        pairs = [pair for condition in _conditions(joins, where) for pair in _equal_columns(condition, sources)]
        frame = replace(frame, equal=tuple(pairs))
    return sources, frame


def _with_source(sources: FromClause, join: exp.Join, alias: str, right: RelationFacts) -> FromClause:
    hidden = sources.hidden | ({alias} if join.kind in ("SEMI", "ANTI") else frozenset())
    merged = dict(sources.merged)
    for column in join.args.get("using") or ():
        name = column.name.lower()
        # In an outer join that keeps the right side, the column has values of either side.
        merged[name] = sources.resolve(exp.column(name)) if join.side in ("", "LEFT") else None
    has_more = sources.has_more or join.method == "NATURAL" or isinstance(join.this, exp.Lateral)
    return FromClause({**sources.rows, alias: right}, hidden, has_more, merged)


def _joined(frame: JoinFacts, before: FromClause, after: FromClause, joined: Join, where: exp.Expr | None) -> JoinFacts:
    join, alias, right = joined
    if join.kind in ("SEMI", "ANTI") or frame.key is None:
        return frame
    if right.key is None:
        return JoinFacts(None, False, f'"{alias}" has no key: {right.reason}' if alias else right.reason)
    if join.method == "NATURAL" or isinstance(join.this, exp.Lateral):
        return JoinFacts(None, False, "NATURAL and LATERAL joins have no key")
    conditions = list(_conditions([joined], where if is_inner(join) else None))
    right_key = tuple((alias, name) for name in right.key)
    fixes_right = _fixed(right_key, conditions, after, frozenset(before.rows)) or _using(join, right_key, before, after)
    fixes_left = _fixed(frame.key, conditions, after, frozenset({alias}))
    if fixes_right and join.side in ("", "LEFT"):
        return frame
    if fixes_left and join.side in ("", "RIGHT"):
        return JoinFacts(right_key, right.nullable, frame.reason)
    may_miss = {"LEFT": right.nullable, "RIGHT": frame.nullable, "FULL": right.nullable or frame.nullable}
    if may_miss.get(join.side, False) or (join.side and not (right_key and frame.key)):
        return JoinFacts(None, False, f'the key of the outer-joined side may be NULL in the join with "{alias}"')
    return JoinFacts(frame.key + right_key, bool(join.side) or frame.nullable or right.nullable, frame.reason)


def _conditions(joins: Iterable[Join], where: exp.Expr | None) -> Iterator[exp.Expr]:
    """Yield the conditions that hold in every row, one by one."""
    for condition in (*(join.args.get("on") for join, _, _ in joins), where):
        if isinstance(condition, exp.And):
            yield from condition.flatten()
        elif condition is not None:
            yield condition


def _fixed(key: Sequence[ColumnRef], conditions: Sequence[exp.Expr], sources: FromClause, by: frozenset[str]) -> bool:
    """Whether each column of `key` is set equal to a column of the relations `by`, or to a literal."""
    found = set()
    for condition in conditions:
        if not isinstance(condition, exp.EQ):
            continue
        for side, other in ((condition.left, condition.right), (condition.right, condition.left)):
            column, value = sources.resolve(side), sources.resolve(other)
            if column is None:
                continue
            is_column = value is not None and value[0] in by and _same_family(column, value, sources)
            if is_column or _literal_family(other) == _FAMILIES.get(sources.type_of(column) or "", ""):
                found.add(column)
    return found.issuperset(key)


def _using(join: exp.Join, right_key: Sequence[ColumnRef], before: FromClause, after: FromClause) -> bool:
    """Whether USING names the whole key of the right side."""
    found = set()
    for column in join.args.get("using") or ():
        left = before.resolve(exp.column(column.name))
        found |= {right for right in right_key if right[1] == column.name.lower() and _same_family(left, right, after)}
    return bool(right_key) and found.issuperset(right_key)


def _equal_columns(condition: exp.Expr, sources: FromClause) -> Iterator[tuple[ColumnRef, ColumnRef]]:
    if isinstance(condition, exp.EQ):
        left, right = sources.resolve(condition.left), sources.resolve(condition.right)
        if left and right and _same_family(left, right, sources):
            yield left, right


def _same_family(left: ColumnRef | None, right: ColumnRef | None, sources: FromClause) -> bool:
    """Whether equality of two columns compares their values as they are."""
    family = _FAMILIES.get(sources.type_of(left) or "")
    return family is not None and family == _FAMILIES.get(sources.type_of(right) or "")


def _literal_family(value: exp.Expr) -> str | None:
    if not isinstance(value, exp.Literal):
        return None
    if value.is_string:
        return "text"
    return "integer" if value.name.isdigit() else None

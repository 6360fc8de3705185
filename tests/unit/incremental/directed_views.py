"""Random views of the forms that ADD and PATCH keep, which `random_views` has too rarely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tests.unit.incremental.random_tables import Column
from tests.unit.incremental.random_views import Query, Views

_ORDERS: Final = ("NULLS FIRST", "DESC NULLS LAST")


def totals(views: Views) -> Query:
    """Counts, sums and extremes by groups, by grouping sets or over all rows, of inner joins and others."""
    draws = views.draws
    kind = draws.pick(("groups", "groups", "sets", "all rows", "all rows"))
    scope, after = _affected(views) if kind == "all rows" and draws.chance(60) else _joined(views)
    if kind == "sets":
        return views.grouping_sets(scope, after)
    groups = [] if kind == "all rows" else list(dict.fromkeys([draws.column(scope), *draws.some(scope, 0, 1)]))
    if groups and draws.chance(30):
        text, type_ = views.function(draws.pick(("coalesce", "case", "plus", "lower")), scope)
        groups = [*groups[: draws.number(0, 1)], Column(text, "", type_, is_plain=False)]
    found = views.totals(scope) if groups or draws.chance(50) else [*_different(views, scope), ("count(*)", "bigint")]
    if len(found) == 1 or draws.chance(40):
        found += _extremes(views, scope)
    items = [*groups, *(Column(text, "", type_, is_plain=False) for text, type_ in found)]
    by = f" GROUP BY {', '.join(each.text for each in groups)}" if groups else ""
    return views.selected("SELECT ", items, f"{after}{by}")


def ordered_lists(views: Views) -> Query:
    """Lists of values of groups, or the first of them, in their order; their type is of no other view."""
    draws = views.draws
    scope, after = _joined(views)
    group = draws.column(scope)
    values = [each for each in scope if each.type != "double"]  # 0.0 and -0.0 are equal, but no list tells their order
    chosen = draws.some(values, 1, 2)
    value = chosen[0].text if draws.chance(40) else f"struct({', '.join(each.text for each in chosen)})"
    items = f"sort_array(collect_list({value}), {draws.pick(('true', 'false'))})"
    if draws.chance(50):
        items = f"slice({items}, 1, {draws.number(1, 2)})"
    count = ", count(*) AS n" if draws.chance(50) else ""
    return Query(f"SELECT {group.text} AS part, {items} AS items{count}{after} GROUP BY {group.text}", ())


def first_rows(views: Views) -> Query:
    """The first rows of each partition, or of all, of inner joins; with their keys."""
    draws = views.draws
    scope, after = _joined(views)
    if draws.chance(25):
        return _first_groups(views, scope, after)
    keys = [each for each in scope if each.name in ("id", "k")]
    part, order = draws.pick(scope), draws.pick(scope)
    items = list(dict.fromkeys([part, *keys, *draws.some(scope, 0, 2)]))
    words = f"{order.text} {draws.pick(_ORDERS)}, {', '.join(f'{each.text} NULLS FIRST' for each in keys)}"
    if draws.chance(35):
        query = views.selected("SELECT ", items, f"{after} ORDER BY {words} LIMIT {draws.number(1, 3)}")
        return replace(query, is_simple=False)
    place = f"row_number() OVER (PARTITION BY {part.text} ORDER BY {words})"
    if draws.chance(50):
        return views.selected("SELECT ", items, f"{after} QUALIFY {place} <= {draws.number(1, 2)}")
    numbered = views.selected("SELECT ", [*items, Column(place, "", "int", is_plain=False)], after)
    alias = views.fresh("q")
    *columns, last = [replace(each, text=f"{alias}.{each.name}") for each in numbered.columns]
    start, item = "SELECT ", f"({numbered.sql}) {alias}"
    if draws.chance(30):
        start, item = f"WITH {alias} AS ({numbered.sql}) SELECT ", alias
    where = f" FROM {item} WHERE {last.text} <= {draws.number(1, 2)}"
    return views.selected(start, [*columns, last] if draws.chance(50) else columns, where)


def _first_groups(views: Views, scope: Sequence[Column], after: str) -> Query:
    """The first groups in the order of their totals."""
    draws = views.draws
    groups = draws.some([each for each in scope if each.type != "double"], 1, 2)
    (total, type_), *_ = views.totals(scope)
    items = [*groups, Column(total, "", type_, is_plain=False)]
    places = [f"{place} {draws.pick(_ORDERS)}" for place in (len(items), *range(1, len(items)))]
    by = f" GROUP BY {', '.join(each.text for each in groups)}"
    query = views.selected("SELECT ", items, f"{after}{by} ORDER BY {', '.join(places)} LIMIT {draws.number(1, 3)}")
    return replace(query, is_simple=False)


def _extremes(views: Views, scope: Sequence[Column]) -> list[tuple[str, str]]:
    """The smallest and largest values."""
    ordered = [each for each in scope if each.type in ("int", "bigint", "decimal", "date")]
    return [(f"{views.draws.pick(('max', 'min'))}({each.text})", each.type) for each in views.draws.some(ordered, 1, 2)]


def _different(views: Views, scope: Sequence[Column]) -> list[tuple[str, str]]:
    """The number of different values."""
    return [(f"count(DISTINCT {each.text})", "bigint") for each in views.draws.some(scope, 0, 1)]


def _joined(views: Views) -> tuple[list[Column], str]:
    """The columns of one table, or of two that an equality joins, and their FROM with a WHERE."""
    draws = views.draws
    text, alias, columns = views.source(0)
    scope = [replace(each, text=f"{alias}.{each.name}") for each in columns]
    if draws.chance(50):
        item, other, more = views.source(0)
        others = [replace(each, text=f"{other}.{each.name}") for each in more]
        condition = f"{alias}.{draws.pick(('id', 'k'))} = {other}.{draws.pick(('k', 'id'))}"
        text, scope = f"{text} JOIN {item} ON {condition}", [*scope, *others]
    where = f" WHERE {views.comparison(scope)}" if draws.chance(30) else ""
    return scope, f" FROM {text}{where}"


def _affected(views: Views) -> tuple[list[Column], str]:
    """The columns of rows that neither a union nor inner joins give, and their FROM with a WHERE."""
    draws = views.draws
    text, alias, columns = views.source(0)
    item, other, more = views.source(0)
    scope, others = ([replace(each, text=f"{name}.{each.name}") for each in those]
                     for name, those in ((alias, columns), (other, more)))  # fmt: skip
    mine, theirs = f"{alias}.{draws.pick(('id', 'k'))}", f"{other}.{draws.pick(('k', 'id'))}"
    kind = draws.pick(("LEFT JOIN", "IN", "NOT EXISTS", "DISTINCT"))
    if kind == "LEFT JOIN":
        return [*scope, *others], f" FROM {text} LEFT JOIN {item} ON {mine} = {theirs}"
    if kind == "IN":
        return scope, f" FROM {text} WHERE {mine} IN (SELECT {theirs} FROM {item})"
    if kind == "NOT EXISTS":
        return scope, f" FROM {text} WHERE NOT EXISTS (SELECT 1 FROM {item} WHERE {theirs} = {mine})"
    chosen, name = draws.some(scope, 1, 2), views.fresh("q")
    rows = f"SELECT DISTINCT {', '.join(each.text for each in chosen)} FROM {text}"
    return [replace(each, text=f"{name}.{each.name}") for each in chosen], f" FROM ({rows}) {name}"

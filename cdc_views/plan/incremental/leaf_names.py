"""What `explain` calls the leaves of a view: the table, and if it occurs several times, what the query calls it there.

public.users                   the only occurrence
public.follows AS f            one of several, by its alias
public.orders in a             that of a CTE which the query names as `a`
public.users (2)               the second of those that have no other name
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from sqlglot import exp

from cdc_views.plan.incremental.columns import Leaf, Path, start_of
from cdc_views.views.references import ParsedQuery


def leaf_names(query: ParsedQuery, leaves: Iterable[Leaf]) -> Mapping[Path, str]:
    """The name of each leaf, by its path."""
    by_source: dict[str, dict[Path, Leaf]] = defaultdict(dict)
    for leaf in leaves:
        by_source[leaf.source][leaf.path] = leaf
    tables = _tables(query)
    return {
        path: name for source, found in by_source.items() for path, name in _of_source(source, sorted(found), tables)
    }


def _of_source(source: str, paths: list[Path], tables: Mapping[int, exp.Table]) -> Iterable[tuple[Path, str]]:
    if len(paths) == 1:
        return [(paths[0], source)]
    names = [source + _suffix(path, tables) for path in paths]
    seen: Counter[str] = Counter()
    repeated = {name for name, count in Counter(names).items() if count > 1}
    for number, name in enumerate(names):
        seen[name] += 1
        names[number] = f"{name} ({seen[name]})" if name in repeated else name
    return zip(paths, names, strict=True)


def _suffix(path: Path, tables: Mapping[int, exp.Table]) -> str:
    """The alias of a table, and the names of the CTEs that it is in, from the inside out."""
    *outer, own = (tables.get(start) for start in path if start >= 0)
    alias = f" AS {own.alias}" if own is not None and own.alias else ""
    return alias + "".join(f" in {each.alias_or_name}" for each in reversed(outer) if each is not None)


def _tables(query: ParsedQuery) -> dict[int, exp.Table]:
    named = (each for each in query.tree.find_all(exp.Table) if isinstance(each.this, exp.Identifier | exp.Dot))
    return {start_of(table): table for table in named}

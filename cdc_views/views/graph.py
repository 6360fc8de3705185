"""Which view reads which: the views, level by level, with every name they read resolved.

A name alone is a view, or a table of schema `public`; `schema.table` is a table. Names are compared case-insensitively,
as Spark compares them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Final

from cdc_views.base.names import TableName
from cdc_views.errors import BadView, ViewCycle
from cdc_views.views.definition import ViewDefinition
from cdc_views.views.references import ParsedQuery, Reference, parse_query

_DEFAULT_SCHEMA: Final = "public"


class ViewGraph:
    """The views of a project over its tables. The constructor raises BadView and ViewCycle."""

    def __init__(
        self, views: Sequence[ViewDefinition], tables: Collection[TableName], others: Collection[str] = ()
    ) -> None:
        """`others` are the names of views that are not in the graph, and may be read."""
        self._views = {view.name: view for view in views}
        self._others = frozenset(others)
        self._tables = sorted(tables)
        self._check_names(views)
        self._parsed = {view.name: parse_query(view) for view in views}
        self._sources: dict[str, dict[int, str]] = {
            name: {reference.start: self._resolve(query.definition, reference) for reference in query.references}
            for name, query in self._parsed.items()
        }
        self.levels: list[list[ViewDefinition]] = self._in_levels()

    def inputs(self, view: str) -> tuple[str, ...]:
        """Return what a view reads, as the manifest names it: `schema.table` for mirrors, a name for views."""
        return tuple(dict.fromkeys(self._sources[view].values()))

    def above(self, view: str) -> set[str]:
        """Return the views that read a view or table, directly or through others."""
        found: set[str] = set()
        pending = [view]
        while pending:
            source = pending.pop()
            readers = {name for name in self._views if source in self.inputs(name)} - found
            found |= readers
            pending.extend(readers)
        return found

    def query(self, view: str) -> ParsedQuery:
        """Return the parsed SELECT of a view."""
        return self._parsed[view]

    def source(self, view: str, reference: Reference) -> str:
        """Return the manifest's name of what a reference of the view stands for."""
        return self._sources[view][reference.start]

    def _check_names(self, views: Sequence[ViewDefinition]) -> None:
        seen: dict[str, ViewDefinition] = {}
        for view in views:
            if view.name in seen:
                raise BadView(f'{view.name_place}: view "{view.name}" is already defined in "{seen[view.name].file}"')
            seen[view.name] = view
            if any(_matches(table, None, view.name) for table in self._tables):
                raise BadView(
                    f'{view.name_place}: view "{view.name}" has the name of table "{_DEFAULT_SCHEMA}.{view.name}"',
                    hint="an unqualified name must have one meaning; rename the view",
                )

    def _resolve(self, view: ViewDefinition, reference: Reference) -> str:
        name = reference.name.lower()
        if reference.schema is None and (name in self._views or name in self._others):
            return name
        found = [table for table in self._tables if _matches(table, reference.schema, reference.name)]
        if len(found) > 1:
            exact = [table for table in found if table.table == reference.name]
            found = exact if len(exact) == 1 else found
        where, written = view.place(reference.start), _written(reference)
        if len(found) > 1:
            raise BadView(f'{where}: "{written}" matches more than one table: {", ".join(map(str, found))}')
        if not found:
            raise BadView(f'{where}: unknown table "{written}"', hint=self._hint(reference))
        return str(found[0])

    def _hint(self, reference: Reference) -> str:
        elsewhere = [table for table in self._tables if table.table.lower() == reference.name.lower()]
        if elsewhere:
            return f'did you mean "{elsewhere[0]}"'
        known = [table.table if table.schema == _DEFAULT_SCHEMA else str(table) for table in self._tables]
        close = get_close_matches(reference.name, [*known, *self._views], n=1)
        if close:
            return f'did you mean "{close[0]}"'
        return "a view reads the tables in the settings under source.tables, and other views"

    def _in_levels(self) -> list[list[ViewDefinition]]:
        levels: list[list[ViewDefinition]] = []
        waiting = {name: {source for source in self.inputs(name) if source in self._views} for name in self._views}
        while waiting:
            ready = [name for name, sources in waiting.items() if not sources & waiting.keys()]
            if not ready:
                raise self._cycle(waiting)
            levels.append([self._views[name] for name in ready])
            for name in ready:
                del waiting[name]
        return levels

    def _cycle(self, waiting: dict[str, set[str]]) -> ViewCycle:
        path = [min(waiting)]
        while path[-1] not in path[:-1]:
            path.append(min(waiting[path[-1]] & waiting.keys()))
        path = path[path.index(path[-1]) :]
        view = self._views[path[0]]
        start = next(start for start, source in self._sources[view.name].items() if source == path[1])
        names = " reads ".join(f'"{name}"' for name in path)
        return ViewCycle(f"{view.place(start)}: views read each other: {names}")


def _matches(table: TableName, schema: str | None, name: str) -> bool:
    wanted = (schema or _DEFAULT_SCHEMA).lower(), name.lower()
    return (table.schema.lower(), table.table.lower()) == wanted


def _written(reference: Reference) -> str:
    return str(TableName(reference.schema, reference.name)) if reference.schema is not None else reference.name

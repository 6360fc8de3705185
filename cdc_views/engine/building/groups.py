"""Which views are built beside the epochs: groups in which one reads another, so that they join together.

Only what takes long is worth it: a view over small tables is there within one epoch, and one that every epoch computes
in full would take as long again when it joins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_views.engine.tables import Tables
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.plan.compiled import CompiledView

Group = Sequence[Sequence[CompiledView]]
"""Views by the level of their graph, parents before children."""


def groups_to_build(tables: Tables, views: ViewRunner) -> list[Group]:
    """The groups of views that the last epoch does not have and that are to be built beside the next ones."""
    if tables.published is None:
        return []
    new = {view.definition.name: view for view in views.views if not tables.is_published(view.definition.name)}
    read = {name: views.read_by(view, tables) for name, view in new.items() if not views.has_failed_to_run(name)}
    return [
        [[view for view in level if view.definition.name in names] for level in views.levels]
        for names in _connected(read)
        if _is_worth_it([new[name] for name in sorted(names)], tables, views)
    ]


def _connected(read: dict[str, set[str]]) -> Iterator[set[str]]:
    """The names in groups: two are in one group if one reads the other, or a third of the group reads both."""
    left = set(read)
    while left:
        group, pending = set[str](), [min(left)]
        while pending:
            name = pending.pop()
            if name in left:
                left.remove(name)
                group.add(name)
                pending += [other for other in left if other in read[name] or name in read[other]]
        yield group


def _is_worth_it(group: Sequence[CompiledView], tables: Tables, views: ViewRunner) -> bool:
    names = {view.definition.name for view in group}
    if all(tables.is_internal(name) for name in names):
        return False  # until they are there, the views that need them cost more in every epoch
    if all(views.strategy(view, tables) == "FULL" for view in group):
        return False
    read = {source for view in group for source in views.read_by(view, tables)} - names
    if not all(tables.is_published(source) for source in read):
        return False  # it reads a view that cannot be run
    return any(_is_large(source, tables) for source in read)


def _is_large(name: str, tables: Tables) -> bool:
    return not tables.warehouse.is_small(tables.specs[name].path)

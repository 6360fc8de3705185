"""The strategies by which a view can be updated in an epoch, the cheapest first. The last one is FULL.

The others need the rows of the last epoch: stored rows that are those of the old versions of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_views.engine.tables import Tables
from cdc_views.engine.views.inputs import Inputs
from cdc_views.engine.views.queries.relations import Relations
from cdc_views.engine.views.queries.small_queries import SmallQueries
from cdc_views.engine.views.saved import KeptQueries, SavedWork, all_matches, changed_matches, is_saved, searches_of
from cdc_views.engine.views.search.postings import Counted, SearchWork, add_documents, all_documents
from cdc_views.engine.views.search.tables import SearchTable
from cdc_views.engine.views.strategies import (
    STRATEGIES,
    Incremental,
    Plan,
    Recompute,
    add,
    add_groups,
    keys,
    patch,
)
from cdc_views.engine.views.strategies.guards import Bound
from cdc_views.metrics import WhyFull
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.store.warehouse import Changes, WrittenRows

FULL: Final = "full"

Kept = MutableMapping[str, KeptQueries]
"""The stored queries of views of saved searches, by view, which stay in memory from one epoch to the next."""

Update = Callable[[], Changes | WrittenRows | None]
"""Computes the changes to commit; None if nothing changed. Raises TooMany where another strategy is to be used."""


@dataclass(frozen=True)
class Choice:
    """The ways to update the views in one epoch. `has_failed`: whether a view has failed in it so far.

    `by_changes`: no view may be computed in full.
    """

    tables: Tables
    inputs: Inputs
    relations: Relations
    queries: SmallQueries
    has_failed: Callable[[str], bool]
    kept_queries: Kept = field(default_factory=dict)
    by_changes: bool = False
    counted: Counted = field(default_factory=dict)

    def updates(self, view: CompiledView, plan: Maintenance, base: int) -> Iterator[tuple[str, Update]]:
        """Yield the updates of a view whose stored rows are at version `base`, with their names in `ways`."""
        if isinstance(view, SearchTable):
            updates = self._of_documents(view, base)
        elif is_saved(view):
            updates = self._of_searches(view, base)
        else:
            updates = self._incremental(view, plan, base)
        yield from updates
        if not self.by_changes:
            yield FULL, self._in_full(view, base)

    def why_full(self, view: CompiledView, plan: Maintenance) -> WhyFull | None:
        """Why a view has no strategy but FULL in this epoch; None if it has others."""
        is_of_index = isinstance(view, SearchTable) or is_saved(view)
        if plan.text is None and not is_of_index:
            return "strategy"
        if not self.tables.is_live(view.definition.name):
            return "new view"
        if not is_of_index and not self._can_look_up():
            return "no lookups"
        internal = plan.internal_views
        if any(self.has_failed(each) or not self.tables.is_live(each) for each in internal):
            return "internal view"
        read = (*self._read(view), *internal)
        return "new input" if any(self.inputs.versions(each) is None for each in read) else None

    def _read(self, view: CompiledView) -> Sequence[str]:
        """What a view reads, besides internal views with values."""
        if not is_saved(view):
            return view.inputs
        searches = searches_of(view, self.tables.specs)
        return (searches.queries, searches.documents, searches.postings)

    def _incremental(self, view: CompiledView, plan: Maintenance, base: int) -> Iterator[tuple[str, Update]]:
        """The strategies before FULL; none if its table or an internal view is not as of the last epoch."""
        tables = self.tables
        if plan.text is None or self.why_full(view, plan) is not None:
            return
        versions = {source: self.inputs.versions(source) for source in (*view.inputs, *plan.internal_views)}
        known = {source: found for source, found in versions.items() if found is not None}
        spec, text, warehouse = tables.specs[view.definition.name], plan.text, tables.warehouse

        def work(chosen: Plan) -> Incremental[Plan]:
            return Incremental(view, spec, base, chosen, text, self.inputs, known, warehouse, self.queries)

        if plan.adds is not None:
            yield "add", partial(add, work(plan.adds))
        if plan.patch is not None:
            yield "patch", partial(patch, work(plan.patch))
        if plan.group_adds is not None:
            yield "patch" if plan.group_adds.lists else "add", partial(add_groups, work(plan.group_adds))
        if plan.keys is not None:
            yield "keys", partial(keys, work(plan.keys))

    def _in_full(self, view: CompiledView, base: int) -> Update:
        if isinstance(view, SearchTable):
            return partial(all_documents, self._search_work(view, base))
        if is_saved(view):
            return partial(all_matches, self._saved_work(view, base))
        return partial(self._recomputed, view, base)

    def _of_documents(self, table: SearchTable, base: int) -> Iterator[tuple[str, Update]]:
        """The updates of a table of a search index before FULL."""
        versions = self.inputs.versions(table.documents)
        if versions is not None and self.tables.is_live(table.definition.name):
            yield "add", partial(add_documents, self._search_work(table, base), versions)

    def _search_work(self, table: SearchTable, base: int) -> SearchWork:
        tables, name = self.tables, table.documents
        spec, version = tables.specs[table.definition.name], self.inputs.version(name)
        return SearchWork(table, spec, base, tables.specs[name], version, self.inputs, tables.warehouse, self.counted)

    def _of_searches(self, view: CompiledView, base: int) -> Iterator[tuple[str, Update]]:
        """The updates of a view of saved searches before FULL."""
        work = self._saved_work(view, base)
        postings = work.searches.postings
        read = (work.searches.queries, work.searches.documents, postings)
        versions = [found for name in read if (found := self.inputs.versions(name)) is not None]
        if len(versions) == len(read) and self.tables.is_live(work.spec.name) and self.tables.is_live(postings):
            yield "keys", partial(changed_matches, work, *versions)

    def _saved_work(self, view: CompiledView, base: int) -> SavedWork:
        tables, spec = self.tables, self.tables.specs[view.definition.name]
        searches = searches_of(view, tables.specs)
        queries, documents = tables.specs[searches.queries], tables.specs[searches.documents]
        kept = self.kept_queries.setdefault(spec.name, KeptQueries())
        return SavedWork(searches, spec, base, queries, documents, self.inputs, tables.warehouse, kept)

    def _can_look_up(self) -> bool:
        return self.tables.warehouse.allows_direct and self.queries.is_possible

    def _recomputed(self, view: CompiledView, base: int) -> Changes | None:
        tables = self.tables
        spec, session = tables.specs[view.definition.name], self.relations.session
        inputs = {source: (tables.specs[source].path, self.inputs.version(source)) for source in view.inputs}
        with self.relations.reading(inputs) as relations:
            stored = self._stored(view, base, session)
            most = Bound(tables.warehouse.driver_rows, tables.warehouse.driver_bytes)
            return STRATEGIES["FULL"](Recompute(view, spec, session, relations, stored, most))

    def _stored(self, view: CompiledView, base: int, session: SparkSession) -> pa.Table | DataFrame | None:
        tables, name = self.tables, view.definition.name
        ways = tables.warehouse.ways
        small = {each: tables.warehouse.is_small(tables.specs[each].path) for each in (name, *view.inputs)}
        for source in view.inputs:
            ways.took("read", source, "driver" if small[source] else "spark")
        if all(small.values()):
            ways.took("diff", name, "driver")
            return tables.warehouse.rows(tables.specs[name], base)
        # The table of a view that was dropped, or changed and changed back, still has the rows that it had.
        if tables.warehouse.is_empty(tables.specs[name].path):
            return None
        ways.took("diff", name, "spark")
        return tables.warehouse.frame(tables.specs[name].path, base, session)

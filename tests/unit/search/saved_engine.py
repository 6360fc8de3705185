"""Epochs of a view of saved searches over real tables, without a JVM: the way of the engine, without its recovery."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from cdc_views.base.names import TableName
from cdc_views.config import StoreSettings
from cdc_views.engine.tables import Tables
from cdc_views.engine.views.choice import Choice, Kept
from cdc_views.engine.views.inputs import Inputs
from cdc_views.engine.views.saved import BY_TERMS, searches_of
from cdc_views.engine.views.search.tables import search_spec, search_table
from cdc_views.engine.views.strategies import TooMany
from cdc_views.metrics import Work, counting
from cdc_views.plan.compiled import CompiledView, compile_view
from cdc_views.search import IndexOptions
from cdc_views.store.control import TableVersion, table_kind
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Stamp, TableSpec, Warehouse
from cdc_views.testing.rows import Row
from cdc_views.testing.saved_searches import saved_from_scratch
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph
from tests.unit.published import Published

INDEX = """CREATE MATERIALIZED VIEW post_search
WITH (kind = 'search_index', key = 'post_id', text = 'title^2, body') AS
SELECT id AS post_id, title, body, likes FROM posts"""
OPTIONS = "index = 'post_search', document = 'post_id', query = 'query', filter = 'filter'"
SELECT = "SELECT id AS search_id, owner, query, filter FROM searches"
COLUMNS = {
    "public.posts": {"id": "int8", "title": "text", "body": "text", "likes": "int4"},
    "public.searches": {"id": "int8", "owner": "text", "query": "text", "filter": "text"},
}
SEARCHES = TableSpec(
    "public.searches",
    "mirrors/public/searches/a",
    pa.schema([("id", pa.int64()), ("owner", pa.string()), ("query", pa.string()), ("filter", pa.string())]),
    ("id",),
)
DOCUMENTS = TableSpec(
    "post_search",
    "views/post_search/a",
    pa.schema([("post_id", pa.int64()), ("title", pa.string()), ("body", pa.string()), ("likes", pa.int32())]),
    ("post_id",),
    kind={"kind": "search_index", **IndexOptions("post_id", {"title": 2.0, "body": 1.0}).record()},
)
ALERTS = TableSpec(
    "alerts",
    "views/alerts/a",
    pa.schema([("search_id", pa.int64()), ("owner", pa.string()), ("post_id", pa.int64()), ("error", pa.string())]),
    ("search_id", "post_id"),
)

Changed = tuple[Iterable[Row], Iterable[Row]]
"""The rows to put, and the keys to delete."""
NOTHING: Changed = ((), ())


def saved_view(options: str = OPTIONS, select: str = SELECT) -> tuple[CompiledView, CompiledView]:
    """The search index, and a view of saved searches."""
    text = f"CREATE MATERIALIZED VIEW alerts WITH (kind = 'saved_searches', {options}) AS\n{select}"
    definitions = [parse_view(INDEX, Path("post_search.sql")), parse_view(text, Path("alerts.sql"))]
    graph = ViewGraph(definitions, [TableName.parse(name) for name in COLUMNS])
    keys: dict[str, tuple[str, ...]] = dict.fromkeys(COLUMNS, ("id",))
    index = compile_view(definitions[0], graph, COLUMNS, keys)
    assert index.key is not None
    return index, compile_view(definitions[1], graph, COLUMNS, {**keys, "post_search": index.key})


class SavedEngine:
    """Publishes epochs. `way` and `work` are those of the view in the last one."""

    def __init__(self, root: Path, settings: StoreSettings | None = None) -> None:
        self.published = Published(root)
        if settings is not None:
            self.published.warehouse = Warehouse(root, cast(Any, None), settings)
        index, self.view = saved_view()
        options = IndexOptions.of_record(DOCUMENTS.kind)
        self.parts = [search_table(index, options, "postings")]
        self.tables = Tables(self.published.warehouse, "g", [])
        for spec in (SEARCHES, DOCUMENTS, ALERTS, *(search_spec(part, DOCUMENTS) for part in self.parts)):
            self.tables.add(spec)
        self.kept: Kept = {}
        self.way, self.work = "", Work()

    def epoch(self, searches: Changed = NOTHING, documents: Changed = NOTHING, *, publish: bool = True) -> None:
        """Commit the changes of an epoch, and update the view and the index."""
        changed: dict[str, int] = {}
        for spec, (put, gone) in ((SEARCHES, searches), (DOCUMENTS, documents)):
            self.published.write(spec, put, gone)
            changed[spec.name] = self.published.tables[spec.name].version
        for view in (self.view, *self.parts):
            self._update(view, changed)
        if publish:
            self.tables.advance(self.published.publish())

    def roll_back(self) -> None:
        """Bring all tables back to what the last epoch has, as after an epoch that was begun and not published."""
        assert self.tables.published is not None
        for name, table in self.tables.published.tables.items():
            stamp = Stamp(self.published.epoch, self.published.control.new_attempt(), "0/1")
            version = self.tables.warehouse.restore(table.path, table.version, stamp)
            self.published.tables[name] = TableVersion(table.path, version, "live", table_kind(table.path))
            self.tables.stand_at({name: version})

    def rows(self) -> list[Row]:
        """The stored rows of the view, sorted."""
        return sorted(map(tuple, (row.values() for row in self._stored(ALERTS).to_pylist())), key=repr)

    def from_scratch(self) -> list[Row]:
        """What its rows are to be."""
        searches = searches_of(self.view, self.tables.specs)
        return sorted(saved_from_scratch(searches, self._stored(SEARCHES), self._stored(DOCUMENTS)), key=repr)

    def _stored(self, spec: TableSpec) -> pa.Table:
        table = self.published.tables[spec.name]
        return read_table(self.published.root, table.path, table.version)

    def _update(self, view: CompiledView, changed: dict[str, int]) -> None:
        name, tables = view.definition.name, self.tables
        spec, base = tables.specs[name], tables.version(name)
        inputs = Inputs(tables, changed)
        choice = Choice(tables, inputs, cast(Any, None), cast(Any, None), lambda _: False, self.kept)
        for way, update in choice.updates(view, BY_TERMS, base):
            work = Work()
            try:
                with counting(work):
                    changes = update()
            except TooMany:
                continue
            if view is self.view:
                self.way, self.work = way, work
            break
        stamp = Stamp(self.published.epoch + 1, self.published.control.new_attempt(), "0/1")
        version = base if changes is None else tables.warehouse.commit(spec, base, changes, stamp)
        changed[name] = version
        self.published.tables[name] = TableVersion(spec.path, version, "live", table_kind(spec.path))

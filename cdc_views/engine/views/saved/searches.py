"""What a view of kind `saved_searches` reads: its stored queries, and the documents of a search index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cdc_views.base.names import HIDDEN
from cdc_views.engine.views.search.tables import postings_name
from cdc_views.errors import BadView
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.search import IndexOptions, QueryColumns, QueryIndex
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.kinds.options import spelled
from cdc_views.views.kinds.saved_searches import SavedSearchesKind, columns_read
from cdc_views.views.kinds.search_index import SearchIndexKind

BY_TERMS: Final = Maintenance(
    "KEYS",
    "changed documents are matched with the queries that are filed under one of their terms, and changed queries with "
    "the postings of the index",
)
"""How such a view is maintained."""


@dataclass(frozen=True)
class SavedSearches:
    """A view of saved searches.

    `columns` has the name of each column of its SELECT, and the column of the table `queries` that it is; `read` are
    those names in the roles that they have. `documents` is the search index, with the columns `schema` that matter.
    """

    queries: str
    columns: Mapping[str, str]
    read: QueryColumns
    documents: str
    schema: pa.Schema
    options: IndexOptions
    postings: str

    @property
    def index(self) -> QueryIndex:
        """An index without queries."""
        return QueryIndex(self.read, self.options, self.schema)

    @property
    def document(self) -> str:
        """The column that identifies a document."""
        return self.options.key

    def selected(self, rows: pa.Table) -> pa.Table:
        """The columns of the SELECT, from rows of the table of queries."""
        return pa.table({name: rows.column(column) for name, column in self.columns.items()})


def is_saved(view: CompiledView) -> bool:
    """Whether a view is one of saved searches."""
    return view.definition.kind == SavedSearchesKind.name


def searches_of(view: CompiledView, specs: Mapping[str, TableSpec]) -> SavedSearches:
    """What a view of saved searches reads; `specs` describe its inputs. Raises BadView at the place of an option."""
    definition = view.definition
    options, (start, end) = definition.kind_options, definition.written
    of_queries, of_documents = sorted(view.sources, key=lambda offset: not start <= offset < end)
    queries, documents = specs[view.sources[of_queries]], specs[view.sources[of_documents]]
    if documents.kind.get("kind") != SearchIndexKind.name:
        options.refuse("index", f'"{documents.name}" is not a view of kind "{SearchIndexKind.name}"')
    if queries.name == documents.name:
        options.refuse("index", "the stored queries are the documents themselves", hint="read them from another table")
    index = IndexOptions.of_record(documents.kind)
    if options.values["document"].lower() != index.key.lower():
        options.refuse("document", f'the key of "{documents.name}" is "{index.key}", wanted that column')
    columns = _columns(view, queries)
    roles = {name: options.spelled(name, options.values[name], list(columns))
             for name in ("query", "filter") if options.values[name]}  # fmt: skip
    for option, name in roles.items():
        if (found := queries.schema.field(columns[name]).type) != pa.string():
            options.refuse(option, f'column "{name}" is of type {found}, wanted a text')
    assert view.key is not None
    return SavedSearches(
        queries=queries.name,
        columns=columns,
        read=QueryColumns(
            key=view.key[:-1],
            query=roles["query"],
            conditions=roles.get("filter"),
            returned=tuple(name for name in columns if name not in roles.values()),
        ),
        documents=documents.name,
        schema=_read_of(documents.schema, index, has_conditions="filter" in roles),
        options=index,
        postings=postings_name(documents.name),
    )


def _columns(view: CompiledView, queries: TableSpec) -> dict[str, str]:
    """The columns of the SELECT, and the columns of the table, spelled as there. Raises BadView."""
    definition = view.definition
    start, end = definition.written
    assert view.parsed is not None
    names = view.parsed.tree.args["from_"].this.alias_column_names  # which the kind has given to the SELECT
    known = [name for name in queries.schema.names if not name.startswith(HIDDEN)]
    try:
        read = [spelled(column, known) for column in columns_read(definition.sql[start:end])]
    except BadView as error:
        raise BadView(f"{definition.place()}: {error.message}", hint=error.hint) from None
    return dict(zip(names, read, strict=True))


def _read_of(documents: pa.Schema, index: IndexOptions, *, has_conditions: bool) -> pa.Schema:
    """The columns of documents that decide what matches; with conditions, that may be any column of one value."""
    named = (index.key, *index.fields)
    return pa.schema(
        [each for each in documents if each.name in named or (has_conditions and not pa.types.is_nested(each.type))]
    )

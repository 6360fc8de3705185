"""The rows of a view of saved searches from scratch: every stored query is run over an index of all documents.

It shares the query language and the analyzer with the engine, and neither the index of the queries nor the way in which
a single document is matched.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from cdc_views.base.names import HIDDEN
from cdc_views.engine.views.saved import SavedSearches, searches_of
from cdc_views.errors import BadSearch
from cdc_views.plan.compiled import CompiledView
from cdc_views.search import StoredQuery, matching_documents
from cdc_views.search.postings import Indexer
from cdc_views.store.commits import frame_of
from cdc_views.store.warehouse import TableSpec
from cdc_views.testing.rows import Row


@dataclass(frozen=True)
class _Index:
    """The postings of all documents."""

    postings: pa.Table

    def of_term(self, term: str, columns: Collection[str]) -> pa.Table:
        return self.postings.filter(pc.equal(self.postings["term"], term)).select(list(columns))

    def of_prefix(self, prefix: str, columns: Collection[str]) -> pa.Table:
        return self.postings.filter(pc.starts_with(self.postings["term"], prefix)).select(list(columns))


def create_matches(
    session: SparkSession, name: str, view: CompiledView, specs: Mapping[str, TableSpec], relations: Mapping[str, str]
) -> None:
    """Create a temporary view with the rows of a view of saved searches; `relations` are its inputs."""
    searches, spec = searches_of(view, specs), specs[view.definition.name]

    def rows_of(source: str) -> pa.Table:
        schema = pa.schema([field for field in specs[source].schema if not field.name.startswith(HIDDEN)])
        return session.table(relations[source]).toArrow().select(schema.names).cast(schema)

    rows = saved_from_scratch(searches, rows_of(searches.queries), rows_of(searches.documents))
    columns = [list(each) for each in zip(*rows, strict=True)] or [[] for _ in spec.schema]
    frame_of(session, pa.table(columns, schema=spec.schema)).createOrReplaceTempView(name)


def saved_from_scratch(searches: SavedSearches, queries: pa.Table, documents: pa.Table) -> list[Row]:
    """The rows of the view: the columns of the query that are returned, the key of the document, and the error.

    `queries` are all rows of the table of queries, `documents` those of the search index.
    """
    key = searches.document
    index = _Index(Indexer(searches.options, searches.schema.field(key).type).analysed(documents).postings)
    found: list[Row] = []
    for row in searches.selected(queries).to_pylist():
        returned = tuple(row[name] for name in searches.read.returned)
        conditions = None if searches.read.conditions is None else row[searches.read.conditions]
        try:
            query = StoredQuery.parse(row[searches.read.query], conditions, searches.options, searches.schema)
        except BadSearch as error:
            found.append((*returned, None, error.message))
            continue
        matching = matching_documents(query.query, index).cast(documents.schema.field(key).type)  # none have any type
        rows = documents.filter(pc.is_in(documents[key], value_set=matching))
        if query.conditions:
            rows = rows.filter(reduce(pc.and_, (each.mask(rows) for each in query.conditions)))
        found += [(*returned, document, None) for document in rows[key].to_pylist()]
    return found

"""The rows of a view of saved searches: pairs of a query and a document that matches it, and the malformed queries.

    documents that changed     are matched with the queries that could match them
    queries that changed       are run over the postings of the last epoch, without the documents that changed
    stored rows of both        are compared with what was found

The postings of this epoch are made after all views. Of a document that did not change they are those of the last epoch,
and of the others the rows themselves are at hand.

Where the changed rows are not known, or are too many, all documents are read, a few thousand at a time, and matched
with all queries: then the new rows replace all that are stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views import metrics
from cdc_views.engine.views.inputs import Inputs, InputVersions
from cdc_views.engine.views.lookups import distinct
from cdc_views.engine.views.saved.kept import KeptQueries
from cdc_views.engine.views.saved.searches import SavedSearches
from cdc_views.engine.views.strategies.difference import difference
from cdc_views.engine.views.strategies.incremental import TooMany
from cdc_views.engine.views.strategies.results import changes_of
from cdc_views.errors import TableUnavailable
from cdc_views.search import QueryIndex, StoredQuery, matching_documents
from cdc_views.search.query_index import ERROR, Matches
from cdc_views.store.commits import Written, WrittenRows
from cdc_views.store.delta_log import Add
from cdc_views.store.files import bounded_columns, write_rows
from cdc_views.store.warehouse import Changes, RowsChanged, TableSpec, Warehouse

ROWS_PER_FILE: Final = 500_000
_BATCH_DOCUMENTS: Final = 1000
# To run a query over the postings takes about as long as to match this many documents with all queries.
_DOCUMENTS_PER_QUERY: Final = 100
_FEW_QUERIES: Final = 100


@dataclass(frozen=True)
class SavedWork:
    """A view of saved searches to update. `queries` and `documents` are the tables that it reads."""

    searches: SavedSearches
    spec: TableSpec
    base: int
    queries: TableSpec
    documents: TableSpec
    inputs: Inputs
    warehouse: Warehouse
    kept: KeptQueries

    def indexes(self) -> Iterator[QueryIndex]:
        """All queries after the epoch."""
        version = self.inputs.version(self.queries.name)
        return self.kept.pieces(self.searches, self.queries, version, self.warehouse)

    def rows(self, found: Matches) -> pa.Table:
        """Rows of the view for pairs that match. A query that was compared with a document counts as a key."""
        metrics.count(keys_looked_up=found.examined, rows_recomputed=len(found.documents))
        return self._as_stored(found.queries, found.documents, None)

    def malformed(self, rows: pa.Table) -> pa.Table:
        """Rows of the view for queries that cannot be understood."""
        return self._as_stored(rows.drop_columns([ERROR]), None, rows.column(ERROR))

    def _as_stored(
        self, queries: pa.Table, documents: pa.ChunkedArray | None, errors: pa.ChunkedArray | None
    ) -> pa.Table:
        nothing = pa.nulls(queries.num_rows)
        rows = queries.append_column(self.spec.key[-1], nothing if documents is None else documents)
        rows = rows.append_column(ERROR, nothing if errors is None else errors)
        return rows.select(self.spec.schema.names).cast(self.spec.schema)


@dataclass(frozen=True)
class Postings:
    """The postings of an index as the last epoch has them."""

    versions: InputVersions
    warehouse: Warehouse

    def of_term(self, term: str, columns: Collection[str]) -> pa.Table:
        """The postings of a term in all text columns, in no order. Raises TooMany."""
        return self._rows(term, columns, is_prefix=False)

    def of_prefix(self, prefix: str, columns: Collection[str]) -> pa.Table:
        """The postings of all terms that begin so. Raises TooMany."""
        return self._rows(prefix, columns, is_prefix=True)

    def _rows(self, text: str, columns: Collection[str], *, is_prefix: bool) -> pa.Table:
        spec, version = self.versions.spec, self.versions.old
        try:
            rows = self.warehouse.with_text(spec, version, text, list(columns), is_prefix=is_prefix)
        except (OSError, TableUnavailable) as error:  # the next epoch builds a table of an index again
            raise TooMany("the postings cannot be read", "error") from error
        if rows is None:
            raise TooMany("there are more postings than the driver holds")
        return rows


def changed_matches(
    work: SavedWork, queries: InputVersions, documents: InputVersions, postings: InputVersions
) -> Changes | None:
    """The rows that an epoch changes; None if it changes none. Raises TooMany."""
    searches = work.searches
    of_queries = _delta(work, queries, set(searches.columns.values()))
    of_queries = RowsChanged(searches.selected(of_queries.old), searches.selected(of_queries.new))
    of_documents = _delta(work, documents, searches.schema.names)
    documents_changed = _keys(of_documents, [searches.document])
    queries_changed = _keys(of_queries, searches.read.key)
    if not documents_changed.num_rows and not queries_changed.num_rows:
        return None
    _require_few(work, queries_changed, documents)
    stored = _stored(work, queries_changed, documents_changed)
    without = documents_changed.column(0).combine_chunks()
    found, count = [work.spec.schema.empty_table()], 0
    for index in work.indexes():
        for rows in chain(
            _of_documents(work, index, of_documents.new.to_batches()),
            _of_queries(work, index, of_queries.new, without, Postings(postings, work.warehouse)),
            [work.malformed(index.malformed(of_queries.new))],
        ):
            found.append(rows)
            count += rows.num_rows
            if count > work.warehouse.driver_rows:
                raise TooMany("there are more rows than the driver holds")
    return changes_of(*difference(pa.concat_tables(found), stored, work.spec.key))


def all_matches(work: SavedWork) -> WrittenRows:
    """All rows, which replace those that are stored."""

    def write(spec: TableSpec, folder: Path) -> Written:
        added, waiting, rows = list[Add](), list[pa.Table](), 0
        for part in _all_rows(work):
            waiting.append(part)
            rows += part.num_rows
            if rows >= ROWS_PER_FILE:
                added.append(write_rows(folder, pa.concat_tables(waiting), bounded_columns(spec)))
                waiting, rows = [], 0
        if rows:
            added.append(write_rows(folder, pa.concat_tables(waiting), bounded_columns(spec)))
        nothing = pa.schema([spec.schema.field(name) for name in spec.key]).empty_table()
        return Written(added, nothing)

    return WrittenRows(write, all_new=False, replaces_all=True)


def _all_rows(work: SavedWork) -> Iterator[pa.Table]:
    version, columns = work.inputs.version(work.documents.name), work.searches.schema.names
    for index in work.indexes():
        yield work.malformed(index.malformed())
        if len(index):
            yield from _of_documents(work, index, work.warehouse.batches(work.documents, version, columns))


def _of_documents(work: SavedWork, index: QueryIndex, documents: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of documents, for all queries of an index."""
    for batch in documents:
        for start in range(0, batch.num_rows, _BATCH_DOCUMENTS):
            rows = pa.Table.from_batches([batch.slice(start, _BATCH_DOCUMENTS)])
            yield work.rows(index.matches(rows.select(work.searches.schema.names).cast(work.searches.schema)))


def _of_queries(
    work: SavedWork, index: QueryIndex, queries: pa.Table, without: pa.Array, postings: Postings
) -> Iterator[pa.Table]:
    """The rows of those of these queries that an index has, for all documents but some."""
    for place, query in index.understood(queries):
        found = matching_documents(query.query, postings)
        if len(found):
            found = found.filter(pc.invert(pc.is_in(found, value_set=without)))
        if len(found):
            kept = _meeting(work, query, found)
            copies = queries.select(list(work.searches.read.returned)).take(pa.array([place] * len(kept), pa.int64()))
            yield work.rows(Matches(copies, kept, len(found)))


def _meeting(work: SavedWork, query: StoredQuery, found: pa.Array) -> pa.ChunkedArray:
    """Those of some documents, by their keys, that meet the conditions of a query. Raises TooMany."""
    if not query.conditions:
        return pa.chunked_array([found])
    key, version = work.searches.document, work.inputs.version(work.documents.name)
    columns = [key, *(each.column for each in query.conditions)]
    rows = work.warehouse.find(work.documents, version, pa.table({key: found}), columns)
    if rows is None:
        raise TooMany("there are more documents than the driver looks up")
    return rows.column(key).take(pa.array(query.meeting(rows), pa.int64()))


def _stored(work: SavedWork, queries: pa.Table, documents: pa.Table) -> pa.Table:
    """The stored rows of these queries and of these documents, by their keys. Raises TooMany."""
    spec, find = work.spec, work.warehouse.find
    by_query = find(spec, work.base, queries)
    by_document = find(spec, work.base, documents.rename_columns([spec.key[-1]]))
    if by_query is None or by_document is None:
        raise TooMany("there are more stored rows than the driver looks up")
    # The row of a malformed query has no document. So may a document have no key.
    by_document = by_document.filter(pc.is_null(by_document.column(ERROR)))
    _, others = difference(by_document, by_query, spec.key)
    return pa.concat_tables([by_query, others])


def _delta(work: SavedWork, versions: InputVersions, columns: Collection[str]) -> RowsChanged:
    """The rows of an input that the epoch removes and adds, in these columns. Raises TooMany."""
    delta = work.inputs.delta(versions, columns)
    if delta is None:
        raise TooMany(f'"{versions.spec.name}" has more changed rows than the driver holds')
    return delta


def _keys(delta: RowsChanged, key: Sequence[str]) -> pa.Table:
    """The keys of the rows that an epoch removes and adds, each once."""
    return distinct(pa.concat_tables([delta.old.select(list(key)), delta.new.select(list(key))]))


def _require_few(work: SavedWork, queries: pa.Table, documents: InputVersions) -> None:
    """Raise TooMany if it is quicker to match all documents with all queries than to run these."""
    count, of_documents = queries.num_rows, work.inputs.row_count(documents)
    if count > _FEW_QUERIES and (of_documents is None or count * _DOCUMENTS_PER_QUERY > of_documents):
        raise TooMany(f"{count} queries have changed, and all documents are {of_documents}")

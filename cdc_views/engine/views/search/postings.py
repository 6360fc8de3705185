"""The postings and the totals of a search index, from the rows of its documents that an epoch changes.

The driver makes them itself, without Spark. Of a document that changes, all postings are removed and made again; the
table of postings has the document as its key, and a document has many rows. The totals are those of the last epoch,
less those of the rows that are removed, plus those of the rows that are added.

Where the changed rows are not known, or are too many, all documents are read, a few thousand at a time: then the new
postings replace all that are stored.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views import metrics
from cdc_views.engine.views.inputs import Inputs, InputVersions
from cdc_views.engine.views.search.tables import SearchTable
from cdc_views.engine.views.strategies.difference import difference
from cdc_views.engine.views.strategies.incremental import TooMany
from cdc_views.engine.views.strategies.results import changes_of
from cdc_views.search.postings import DOCUMENT, ORDER, IndexCounts, Indexer
from cdc_views.store.commits import Written, WrittenRows
from cdc_views.store.delta_log import Add
from cdc_views.store.files import SortedRuns, bounded_columns, write_rows
from cdc_views.store.warehouse import Changes, RowsChanged, TableSpec, Warehouse

POSTINGS_PER_FILE = 500_000

Counted = MutableMapping[tuple[str, int], IndexCounts]
"""The totals of all documents, by path and version, that were counted while their postings were made."""


@dataclass(frozen=True)
class SearchWork:
    """A table of a search index to update. `documents` is the table of its view, at `version` after the epoch."""

    table: SearchTable
    spec: TableSpec
    base: int
    documents: TableSpec
    version: int
    inputs: Inputs
    warehouse: Warehouse
    counted: Counted

    @property
    def indexer(self) -> Indexer:
        """What makes postings of documents."""
        return Indexer(self.table.options, self.documents.schema.field(self.table.options.key).type)

    @property
    def columns(self) -> list[str]:
        """The columns of the documents that are indexed."""
        return list(dict.fromkeys((self.table.options.key, *self.table.options.fields)))

    def all_documents(self) -> Iterator[pa.RecordBatch]:
        """All documents after the epoch."""
        return self.warehouse.batches(self.documents, self.version, self.columns)


def add_documents(work: SearchWork, versions: InputVersions) -> Changes | WrittenRows | None:
    """Update a table by the changed documents; returns None if nothing changes. Raises TooMany."""
    delta = work.inputs.delta(versions, work.columns)
    if delta is None:
        raise TooMany("there are more changed documents than the driver holds")
    if not delta.old.num_rows and not delta.new.num_rows:
        return None
    return _postings(work, delta) if work.table.part == "postings" else _totals(work, delta)


def all_documents(work: SearchWork) -> Changes | WrittenRows | None:
    """Make a table from all documents."""
    if work.table.part == "postings":
        return _all_postings(work)
    known = (work.documents.path, work.version)
    counts = work.counted.get(known)
    if counts is None:  # the postings were committed by an earlier attempt
        counts, indexer = IndexCounts(), work.indexer
        for batch in work.all_documents():
            counts.add(indexer.counted(pa.Table.from_batches([batch])))
    return _changed_totals(work, counts)


def _postings(work: SearchWork, delta: RowsChanged) -> WrittenRows:
    key = work.table.options.key
    removed = pc.unique(delta.old.column(key))

    def write(spec: TableSpec, folder: Path) -> Written:
        added = list[Add]()
        for found in work.indexer.in_batches(delta.new.to_batches(), POSTINGS_PER_FILE):
            metrics.count(rows_recomputed=found.postings.num_rows)
            if found.postings.num_rows:
                added.append(write_rows(folder, found.postings, bounded_columns(spec)))
        return Written(added, pa.table({DOCUMENT: removed}))

    return WrittenRows(write, all_new=not len(removed))


def _all_postings(work: SearchWork) -> WrittenRows:
    """The postings of all documents, in files of which each has other terms: a search opens one for a rare term."""

    def write(spec: TableSpec, folder: Path) -> Written:
        counts, runs = IndexCounts(), SortedRuns(folder, ORDER)
        for found in work.indexer.in_batches(work.all_documents(), POSTINGS_PER_FILE):
            metrics.count(rows_recomputed=found.postings.num_rows)
            counts.add(found.counts)
            runs.add(found.postings)
        added = [write_rows(folder, rows, bounded_columns(spec)) for rows in runs.merged(POSTINGS_PER_FILE)]
        work.counted[work.documents.path, work.version] = counts
        return Written(added, pa.table({DOCUMENT: pa.array([], spec.schema.field(DOCUMENT).type)}))

    return WrittenRows(write, all_new=False, replaces_all=True)


def _totals(work: SearchWork, delta: RowsChanged) -> Changes | None:
    counts, indexer = IndexCounts.of(work.warehouse.rows(work.spec, work.base)), work.indexer
    counts.add(indexer.counted(delta.new))
    counts.add(indexer.counted(delta.old), -1)
    return _changed_totals(work, counts)


def _changed_totals(work: SearchWork, counts: IndexCounts) -> Changes | None:
    stored = work.warehouse.rows(work.spec, work.base)
    rows = counts.rows(work.table.options)
    return changes_of(*difference(rows, stored, work.spec.key))

"""Documents to postings: one row for each term of each text column of a document.

term, field   what is looked for, and the text column that has it; a form (analyzer.py) begins with =
document      the key of the document
frequency     how often the column of this document has the term
length        how many words with a term the column of this document has
positions     the places of the term among the words of the column, counted from 0

Rows are sorted by term, so that a reader finds those of a term in few row groups.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.search.analyzer import FORM
from cdc_views.search.options import IndexOptions

Numbers = np.ndarray[Any, Any]

ORDER: Final = ("term", "field", "document")
"""The columns by which the rows of a file are sorted."""

DOCUMENT: Final = "document"
ALL_DOCUMENTS: Final = "*"
"""In the totals, instead of a text column: the number of all documents."""

TOTALS_SCHEMA: Final = pa.schema([("field", pa.string()), ("documents", pa.int64()), ("length", pa.int64())])


def postings_schema(key: pa.DataType) -> pa.Schema:
    """The columns of postings whose documents have a key of this type."""
    return pa.schema(
        [
            ("term", pa.string()),
            ("field", pa.string()),
            (DOCUMENT, key),
            ("frequency", pa.int32()),
            ("length", pa.int32()),
            ("positions", pa.list_(pa.int32())),
        ]
    )


@dataclass
class IndexCounts:
    """The totals of an index: its documents, and for each text column the documents with a term and all lengths."""

    documents: int = 0
    by_field: defaultdict[str, tuple[int, int]] = field(default_factory=lambda: defaultdict(lambda: (0, 0)))

    def add(self, other: IndexCounts, sign: int = 1) -> None:
        """Add the totals of further documents; with `sign` -1, subtract them."""
        self.documents += sign * other.documents
        for name, (documents, length) in other.by_field.items():
            self.add_field(name, sign * documents, sign * length)

    def add_field(self, name: str, documents: int, length: int) -> None:
        """Add documents with a term in a text column, and their lengths."""
        before = self.by_field[name]
        self.by_field[name] = before[0] + documents, before[1] + length

    def rows(self, options: IndexOptions) -> pa.Table:
        """The totals as a table: a row for each text column, and one for all documents."""
        values = [(name, *self.by_field[name]) for name in options.fields]
        values.append((ALL_DOCUMENTS, self.documents, sum(length for _, _, length in values)))
        return pa.Table.from_pylist([dict(zip(TOTALS_SCHEMA.names, row, strict=True)) for row in values], TOTALS_SCHEMA)

    @classmethod
    def of(cls, rows: pa.Table) -> IndexCounts:
        """The totals that a table has."""
        counts = cls()
        for row in rows.to_pylist():
            if row["field"] == ALL_DOCUMENTS:
                counts.documents = row["documents"]
            else:
                counts.add_field(row["field"], row["documents"], row["length"])
        return counts


@dataclass(frozen=True)
class Analysed:
    """The postings of some documents, sorted, and what these add to the totals."""

    postings: pa.Table
    counts: IndexCounts


class Indexer:
    """Makes postings of documents."""

    def __init__(self, options: IndexOptions, key: pa.DataType) -> None:
        self._options = options
        self._analyzer = options.analyzer
        self._schema = postings_schema(key)

    def counted(self, documents: pa.Table) -> IndexCounts:
        """What documents add to the totals."""
        counts = IndexCounts(documents.num_rows)
        for name in self._options.fields:
            for text in documents.column(name).to_pylist():
                _count(counts, name, len(self._analyzer.tokens(text)) if text else 0)
        return counts

    def analysed(self, documents: pa.Table) -> Analysed:
        """The postings and the totals of documents, which the caller bounds."""
        counts, rows = IndexCounts(documents.num_rows), _PostingNumbers()
        for number, name in enumerate(self._options.fields):
            for document, text in enumerate(documents.column(name).to_pylist()):
                positions = self._analyzer.positions(text) if text else {}
                _count(counts, name, rows.add(number, document, positions))
        keys = pa.array(documents.column(self._options.key).to_pylist(), self._schema.field(DOCUMENT).type)
        return Analysed(rows.table(self._schema, self._options.fields, keys), counts)

    def in_batches(self, documents: Iterable[pa.RecordBatch], rows: int) -> Iterator[Analysed]:
        """The same of any number of documents, with about this many postings at a time."""
        waiting: list[pa.RecordBatch] = []
        characters = 0
        for batch in documents:
            for start in range(0, batch.num_rows, _BATCH_DOCUMENTS):
                part = batch.slice(start, _BATCH_DOCUMENTS)
                waiting.append(part)
                characters += sum(part.column(name).nbytes for name in self._options.fields)
                if characters >= rows * _CHARACTERS_PER_POSTING:
                    yield self.analysed(pa.Table.from_batches(waiting))
                    waiting, characters = [], 0
        if waiting:
            yield self.analysed(pa.Table.from_batches(waiting))


_BATCH_DOCUMENTS: Final = 1000
# Of ordinary text; it decides only how large the files are that a first fill writes.
_CHARACTERS_PER_POSTING: Final = 7


class _PostingNumbers:
    """Postings as numbers, which take far less memory than a Python object for each."""

    def __init__(self) -> None:
        self._terms: dict[str, int] = {}
        self._numbers = [array("i") for _ in ("term", "field", "document", "frequency", "length")]
        self._positions = array("i")

    def add(self, field: int, document: int, positions: Mapping[str, list[int]]) -> int:
        """Add what a text column of a document has; returns its length in terms."""
        terms, (codes, fields, documents, frequencies, lengths) = self._terms, self._numbers
        length = sum(len(places) for term, places in positions.items() if not term.startswith(FORM))
        codes.extend([terms.setdefault(term, len(terms)) for term in positions])
        frequencies.extend(map(len, positions.values()))
        self._positions.extend(chain.from_iterable(positions.values()))
        count = len(positions)
        fields.extend([field] * count)
        documents.extend([document] * count)
        lengths.extend([length] * count)
        return length

    def table(self, schema: pa.Schema, names: Sequence[str], keys: pa.Array) -> pa.Table:
        """The rows, sorted by term, column and document."""
        codes, fields, documents, frequencies, lengths = (np.array(each, np.int32) for each in self._numbers)
        terms = pa.array(list(self._terms), pa.string())
        by_term, by_name = _ranks(terms), _ranks(pa.array(names, pa.string()))
        order = np.lexsort((_ranks(keys)[documents], by_name[fields], by_term[codes]))
        ends = np.concatenate([[0], np.cumsum(frequencies)]).astype(np.int32)
        positions = pa.ListArray.from_arrays(ends, pa.array(np.array(self._positions, np.int32)))
        columns = [
            terms.take(pa.array(codes[order])),
            pa.array(names, pa.string()).take(pa.array(fields[order])),
            keys.take(pa.array(documents[order])),
            pa.array(frequencies[order]),
            pa.array(lengths[order]),
            positions.take(pa.array(order)),
        ]
        return pa.table(columns, schema=schema)


def _ranks(values: pa.Array) -> Numbers:
    """The place of each value in their order."""
    ranks = np.empty(len(values), np.int32)
    ranks[np.asarray(pc.sort_indices(values))] = np.arange(len(values), dtype=np.int32)
    return ranks


def _count(counts: IndexCounts, name: str, length: int) -> None:
    if length:
        counts.add_field(name, 1, length)

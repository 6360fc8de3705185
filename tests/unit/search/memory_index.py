"""An index in memory, from the postings that the code under test makes of documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.search import IndexOptions, Query, ScoredDocuments, Scoring, Totals, answer
from cdc_views.search.postings import Indexer

SCHEMA = pa.schema([("id", pa.int64()), ("title", pa.string()), ("body", pa.string())])


class MemoryIndex:
    """The postings of documents (`id`, `title`, `body`), and the answers to queries."""

    def __init__(self, options: IndexOptions, documents: Sequence[Mapping[str, object]]) -> None:
        found = Indexer(options, pa.int64()).analysed(pa.Table.from_pylist(list(documents), SCHEMA))
        self.options = options
        self.postings = found.postings
        self.counts = found.counts

    def of_term(self, term: str, columns: Collection[str]) -> pa.Table:
        return self.postings.filter(pc.equal(self.postings["term"], term)).select(list(columns))

    def of_prefix(self, prefix: str, columns: Collection[str]) -> pa.Table:
        return self.postings.filter(pc.starts_with(self.postings["term"], prefix)).select(list(columns))

    def answer(self, text: str) -> ScoredDocuments:
        totals = {name: Totals(*found) for name, found in self.counts.by_field.items()}
        return answer(Query.parse(text, self.options), self, Scoring(self.options, totals))

    def found(self, text: str) -> list[int]:
        """The keys of all documents that match, best first."""
        found = self.answer(text)
        return [found.documents[number].as_py() for number in found.best(1_000_000)]


def index_of(*bodies: str, language: str = "none", stop_words: tuple[str, ...] = ()) -> MemoryIndex:
    """An index of documents 1, 2, ... that have only a body."""
    options = IndexOptions("id", {"title": 2.0, "body": 1.0}, language, stop_words)
    return MemoryIndex(options, [{"id": number, "title": None, "body": body} for number, body in enumerate(bodies, 1)])

"""The tables of a search index at one epoch: the documents, their postings, and the totals."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cdc_views.base.names import HIDDEN
from cdc_views.errors import AnalyzerDiffers, BadSearch, ResultTooLarge, ViewFailed
from cdc_views.search import IndexOptions, Scoring, Totals
from cdc_views.search.postings import TOTALS_SCHEMA
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.table_reader import TableReader
from cdc_views.serve.values.time_limit import TimeLimit
from cdc_views.store.control import TableVersion
from cdc_views.store.reading import StoredTables
from cdc_views.views.kinds.search_index import SearchIndexKind

MOST_OF_PREFIX: Final = 2_000_000
"""The most postings that a prefix may have: they are held in memory."""


_SMALLER: Final = "search for rarer words, and filter and sort by smaller columns"


@dataclass(frozen=True)
class SearchLimits:
    """The limits of one search; None is no limit. `most_bytes` is the most that it may read."""

    most_bytes: int | None = None
    seconds: float | None = None


class SearchIndex:
    """A search index as it is in an epoch."""

    def __init__(
        self, epoch: PublishedEpoch, name: str, stored: StoredTables, limits: SearchLimits | None = None
    ) -> None:
        """With `limits`, reading beyond them raises ResultTooLarge or QueryTooLong.

        Raises UnknownView, ViewFailed, WrongKind, AnalyzerDiffers.
        """
        limits = limits or SearchLimits()
        self._stored = stored
        self._most_bytes, self._read_bytes = limits.most_bytes, 0
        self._time = TimeLimit(limits.seconds, "the search", _SMALLER)
        self._documents = TableReader(epoch, name, stored)
        hint = "declare the view WITH (kind = 'search_index', ...), or read it by a query"
        self.options = IndexOptions.of_record(self._documents.require_kind(SearchIndexKind.name, hint))
        self.name = name
        self.schema = self._documents.schema
        self._postings = _part(epoch, name, "postings")
        self._totals = _part(epoch, name, "totals")
        self._require_analyzer()

    def of_term(self, term: str, columns: Collection[str]) -> pa.Table:
        """The postings of a term in all text columns, in no order."""
        return self._counted(self._stored.with_text(self._postings.path, self._postings.version, "term", term, columns))

    def of_prefix(self, prefix: str, columns: Collection[str]) -> pa.Table:
        """The postings of all terms that begin so. Raises BadSearch if they are too many."""
        postings = self._postings
        rows = self._stored.with_prefix(postings.path, postings.version, "term", prefix, columns, MOST_OF_PREFIX)
        if rows is None:
            raise BadSearch(
                f"the words that begin with a prefix of the query have more than {MOST_OF_PREFIX:,} postings",
                hint="write more of the word",
            )
        return self._counted(rows)

    def scoring(self) -> Scoring:
        """The formula with the totals of the epoch."""
        fields, totals = pa.array(self.options.fields), self._totals
        rows = self._stored.columns_of(totals.path, totals.version, "field", fields, TOTALS_SCHEMA.names).to_pylist()
        return Scoring(self.options, {row["field"]: Totals(row["documents"], row["length"]) for row in rows})

    def documents(self, keys: pa.Array, columns: Iterable[str]) -> pa.Table:
        """Some columns of the documents with these keys, in no order."""
        documents, key = self._documents, self.options.key
        wanted = list(dict.fromkeys([key, *columns]))
        return self._counted(self._stored.columns_of(documents.relative_path, documents.version, key, keys, wanted))

    def check_time(self) -> None:
        """Raise QueryTooLong if the search has taken longer than it may."""
        self._time.check()

    def _counted(self, rows: pa.Table) -> pa.Table:
        self.check_time()
        self._read_bytes += rows.nbytes
        if self._most_bytes is not None and self._read_bytes > self._most_bytes:
            raise ResultTooLarge(
                f"the search needs more memory than {self._most_bytes >> 20} MiB, which is the limit",
                hint=_SMALLER,
            )
        return rows

    def _require_analyzer(self) -> None:
        wanted, found = self.options.analyzer.identity, self._stored.describe(self._postings.path).kind["analyzer"]
        if found != wanted:
            raise AnalyzerDiffers(
                f'search index "{self.name}" was made by the analyzer "{found}", and here is "{wanted}"',
                hint="search with the versions of Python and of the libraries that the engine has",
            )


def _part(epoch: PublishedEpoch, name: str, part: str) -> TableVersion:
    """The postings or the totals of an index. Raises ViewFailed."""
    internal = f"{HIDDEN}{name}_{part}"
    table = epoch.record.tables.get(internal)
    if table is None or table.status == "failed":
        failure = epoch.detail.failures.get(internal, "the epoch has none")
        raise ViewFailed(
            f'the {part} of search index "{name}" have failed: {failure}', hint="the next epoch tries again"
        )
    return table

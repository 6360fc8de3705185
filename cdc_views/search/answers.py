"""A query over the postings of one epoch: which documents match, their scores, and how these come about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.search.bm25 import Numbers, ScorePart, Scoring
from cdc_views.search.query import Clause, Query

_COLUMNS: Final = ("field", "document", "frequency", "length")
_POSITIONS: Final = (*_COLUMNS, "positions")


class Index(Protocol):
    """The postings of one epoch."""

    def of_term(self, term: str, columns: Collection[str]) -> pa.Table:
        """The postings of a term in all text columns, in no order."""

    def of_prefix(self, prefix: str, columns: Collection[str]) -> pa.Table:
        """The postings of all terms that begin so."""


@dataclass(frozen=True)
class PostingList:
    """The documents whose text column matches a clause, each once: how often, and how long the column is in terms."""

    documents: pa.Array
    frequencies: Numbers
    lengths: Numbers


@dataclass(frozen=True)
class _Match:
    """The documents that match a clause in one text column, as numbers of `ScoredDocuments.documents`."""

    clause: Clause
    field: str
    documents: Numbers
    found: PostingList


@dataclass(frozen=True)
class ScoredDocuments:
    """The documents that match a query, in no order, with their scores."""

    documents: pa.Array
    scores: Numbers
    _numbers: Numbers
    _matches: tuple[_Match, ...]
    _scoring: Scoring

    def best(self, count: int) -> list[int]:
        """The numbers of the documents with the highest scores, best first; equal scores by key."""
        if len(self.scores) > count:
            # All that may be among them: more than `count`, where scores are equal.
            least = np.partition(self.scores, -count)[-count] if count else np.inf
            candidates = np.flatnonzero(self.scores >= least)
        else:
            candidates = np.arange(len(self.scores))
        keys = self.documents.take(pa.array(candidates, pa.int64())).to_pylist()
        # One document may have no key.
        is_null = [key is None for key in keys]
        ranked = sorted(zip(-self.scores[candidates], is_null, keys, candidates.tolist(), strict=True))
        return [number for *_, number in ranked[:count]]

    def only(self, numbers: Numbers) -> ScoredDocuments:
        """The same answer with these of its documents."""
        kept = self.documents.take(pa.array(numbers, pa.int64()))
        return ScoredDocuments(kept, self.scores[numbers], self._numbers[numbers], self._matches, self._scoring)

    def explain(self, number: int) -> list[ScorePart]:
        """What the score of a document is the sum of."""
        parts = []
        for match in self._matches:
            for place in np.flatnonzero(match.documents == self._numbers[number]):
                found = match.found
                frequency, length = int(found.frequencies[place]), int(found.lengths[place])
                matching = len(found.documents)
                parts.append(self._scoring.part(match.clause.text, match.field, frequency, length, matching))
        return parts


def answer(query: Query, index: Index, scoring: Scoring) -> ScoredDocuments:
    """Find the documents that match a query, and their scores."""
    documents, matches, matching = _found(query, index)
    scores = np.zeros(len(documents))
    scored = tuple(match for match in matches if match.clause.occurs != "not")
    for match in scored:
        scores[match.documents] += scoring.scores(match.field, match.found.frequencies, match.found.lengths)
    everything = ScoredDocuments(documents, scores, np.arange(len(documents)), scored, scoring)
    return everything.only(np.flatnonzero(matching))


def matching_documents(query: Query, index: Index) -> pa.Array:
    """The documents that match a query, each once and in no order. It needs no totals."""
    documents, _, matching = _found(query, index)
    return documents.filter(pa.array(matching))


def _found(query: Query, index: Index) -> tuple[pa.Array, tuple[_Match, ...], Numbers]:
    """The documents that a wanted clause matches, the matches of all clauses, and which documents match the query."""
    found = {clause: _lists(clause, index) for clause in query.clauses}
    wanted = [clause for clause in query.clauses if clause.occurs != "not"]
    documents = _unique(each.documents for clause in wanted for each in found[clause].values())
    matches = tuple(
        _Match(clause, field, _numbers(each.documents, documents), each)
        for clause in query.clauses
        for field, each in found[clause].items()
    )
    return documents, matches, _matching(query, matches, len(documents))


def _matching(query: Query, matches: Iterable[_Match], count: int) -> Numbers:
    """Which documents match: all that must, and none that must not."""
    by_clause = {id(clause): np.zeros(count, bool) for clause in query.clauses}
    for match in matches:
        by_clause[id(match.clause)][match.documents[match.documents >= 0]] = True
    matching = np.ones(count, bool)
    for clause in query.clauses:
        if clause.occurs == "must":
            matching &= by_clause[id(clause)]
        elif clause.occurs == "not":
            matching &= ~by_clause[id(clause)]
    return matching


def _lists(clause: Clause, index: Index) -> dict[str, PostingList]:
    """The documents that match a clause, by text column; none for a column in which none does."""
    if clause.prefix is not None:
        lists = _by_field(clause, index.of_prefix(clause.prefix, _COLUMNS))
        found = {field: _together(rows) for field, rows in lists}
    elif len(clause.terms) == 1:
        rows = index.of_term(clause.terms[0][0], _COLUMNS)
        found = {field: _posting_list(each) for field, each in _by_field(clause, rows)}
    else:
        found = _phrases(clause, index)
    return {field: each for field, each in found.items() if len(each.documents)}


def _by_field(clause: Clause, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    for field in clause.fields:
        yield field, rows.filter(pc.equal(rows.column("field"), field))


def _posting_list(rows: pa.Table) -> PostingList:
    return PostingList(_array(rows.column("document")), _ints(rows.column("frequency")), _ints(rows.column("length")))


def _together(rows: pa.Table) -> PostingList:
    """The rows of several terms: each document once, with the sum of the frequencies."""
    grouped = rows.group_by("document", use_threads=False).aggregate([("frequency", "sum"), ("length", "max")])
    return PostingList(
        _array(grouped.column("document")), _ints(grouped.column("frequency_sum")), _ints(grouped.column("length_max"))
    )


def _phrases(clause: Clause, index: Index) -> dict[str, PostingList]:
    """The documents in which the terms stand at their distances."""
    terms = dict.fromkeys(term for term, _ in clause.terms)
    rows = {term: index.of_term(term, _POSITIONS) for term in terms}
    found = {}
    for field in clause.fields:
        of_field = {term: each.filter(pc.equal(each.column("field"), field)) for term, each in rows.items()}
        found[field] = _phrase(clause, of_field)
    return found


def _phrase(clause: Clause, rows: Mapping[str, pa.Table]) -> PostingList:
    common: pa.Array = None
    for each in rows.values():
        documents = _array(each.column("document"))
        common = documents if common is None else documents.filter(pc.is_in(documents, value_set=common))
    most = max(distance for _, distance in clause.terms)
    of_terms = {term: _places(each, common) for term, each in rows.items()}
    places: Numbers | None = None
    for term, distance in clause.terms:
        moved = of_terms[term] + (most - distance)
        places = moved if places is None else np.intersect1d(places, moved, assume_unique=True)
    assert places is not None
    numbers, frequencies = np.unique(places >> 32, return_counts=True)
    first = rows[clause.terms[0][0]]
    lengths = first.take(pc.index_in(common.take(pa.array(numbers, pa.int64())), value_set=_array(first["document"])))
    return PostingList(common.take(pa.array(numbers, pa.int64())), frequencies, _ints(lengths.column("length")))


def _places(rows: pa.Table, documents: pa.Array) -> Numbers:
    """Where a term is in these documents: the number of the document, and the position in the lower half."""
    numbers = pc.index_in(_array(rows.column("document")), value_set=documents)
    is_known = pc.is_valid(numbers)
    positions = _array(rows.column("positions")).filter(is_known)
    of_lists = np.asarray(numbers.filter(is_known)).astype(np.int64)
    of_positions = of_lists[np.asarray(pc.list_parent_indices(positions))]
    places: Numbers = (of_positions << 32) + np.asarray(pc.list_flatten(positions)).astype(np.int64)
    return places


def _unique(arrays: Iterable[pa.Array]) -> pa.Array:
    found = [array for array in arrays if len(array)]
    if len(found) == 1:
        return found[0]
    return pc.unique(pa.chunked_array(found)) if found else pa.array([], pa.int64())


def _numbers(documents: pa.Array, among: pa.Array) -> Numbers:
    """The place of each document among others; -1 if it is not there."""
    if documents is among:
        return np.arange(len(documents))
    if not len(among):
        return np.full(len(documents), -1)
    numbers: Numbers = np.asarray(pc.fill_null(pc.index_in(documents, value_set=among), -1))
    return numbers


def _array(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole


def _ints(column: pa.ChunkedArray) -> Numbers:
    values: Numbers = column.to_numpy()
    return values

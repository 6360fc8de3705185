"""The score of a document: Okapi BM25 of each text column, times the column's weight, added up.

For a clause of the query and a text column, let n be the number of documents whose column matches the clause, N that of
documents whose column has a term at all, f how often the column of this document matches, l its length in terms, and L
the mean length of the columns that have a term:

    idf   = ln(1 + (N - n + 0.5) / (n + 0.5))
    tf    = f * (k1 + 1) / (f + k1 * (1 - b + b * l / L))
    score = the sum over clauses, and over the columns in which each matches, of weight * idf * tf

A phrase is a clause like a word: n is the number of documents with the phrase, and f how often it occurs. So is a
prefix: f is how often words occur that begin so. (Robertson and Zaragoza, "The Probabilistic Relevance Framework",
2009; the idf is Lucene's, which is never negative.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cdc_views.search.options import IndexOptions

Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Totals:
    """Of a text column: the documents that have a term in it, and the sum of their lengths in terms."""

    documents: int
    length: int


@dataclass(frozen=True)
class ScorePart:
    """What one clause in one text column adds to a score, and the numbers that it follows from."""

    clause: str
    field: str
    score: float
    weight: float
    idf: float
    tf: float
    frequency: int
    length: int
    matching_documents: int
    documents: int
    mean_length: float


@dataclass(frozen=True)
class Scoring:
    """The formula with the options and the totals of an index."""

    options: IndexOptions
    totals: Mapping[str, Totals]

    def scores(self, field: str, frequencies: Numbers, lengths: Numbers) -> Numbers:
        """What a clause adds to the scores of the documents that match it in a text column."""
        tf = self._tf(field, frequencies.astype(np.float64), lengths.astype(np.float64))
        scores: Numbers = self.options.weights[field] * self._idf(field, len(frequencies)) * tf
        return scores

    def part(self, clause: str, field: str, frequency: int, length: int, matching: int) -> ScorePart:
        """The same for one document, with its numbers."""
        idf, tf = self._idf(field, matching), float(self._tf(field, float(frequency), float(length)))
        weight, totals = self.options.weights[field], self.totals[field]
        return ScorePart(
            clause=clause,
            field=field,
            score=weight * idf * tf,
            weight=weight,
            idf=idf,
            tf=tf,
            frequency=frequency,
            length=length,
            matching_documents=matching,
            documents=totals.documents,
            mean_length=self._mean_length(field),
        )

    def _idf(self, field: str, matching: int) -> float:
        return math.log(1 + (self.totals[field].documents - matching + 0.5) / (matching + 0.5))

    def _tf(self, field: str, frequency: Any, length: Any) -> Any:
        k1, b = self.options.k1, self.options.b
        return frequency * (k1 + 1) / (frequency + k1 * (1 - b + b * length / self._mean_length(field)))

    def _mean_length(self, field: str) -> float:
        totals = self.totals[field]
        return totals.length / totals.documents

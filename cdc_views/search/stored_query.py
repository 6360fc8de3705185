"""A stored query: a text of the query language, conditions on columns, and whether a document matches both.

It decides by the words of the document alone, without the postings of an index, and agrees with `answers`: a document
matches a query if an index that has it finds it by the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.errors import BadSearch
from cdc_views.search.columns import Condition, require_columns
from cdc_views.search.options import IndexOptions
from cdc_views.search.query import Clause, Query

Positions = Mapping[str, list[int]]
"""The places of each term of a text, as `Analyzer.positions` gives them."""

# About what a stored query takes in memory with its place in an index; a test measures it.
_BYTES: Final = 1200
_BYTES_OF_CLAUSE: Final = 700
_BYTES_OF_CONDITION: Final = 300


@dataclass(frozen=True)
class StoredQuery:
    """A query that is run on each document that changes. All of its conditions must hold, too."""

    query: Query
    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, text: str | None, conditions: str | None, options: IndexOptions, documents: pa.Schema) -> Self:
        """Parse a query and its conditions, one a line, for documents with these columns. Raises BadSearch."""
        query = Query.parse(text or "", options)
        parsed = tuple(Condition.parse(line) for line in (conditions or "").split("\n") if line.strip())
        require_columns(documents, [each.column for each in parsed])
        for each in parsed:
            _require_comparable(each, documents)
        return cls(query, parsed)

    @property
    def size(self) -> int:
        """About how many bytes it takes in memory."""
        characters = sum(len(clause.text) for clause in self.query.clauses)
        clauses, conditions = len(self.query.clauses), len(self.conditions)
        return _BYTES + clauses * _BYTES_OF_CLAUSE + conditions * _BYTES_OF_CONDITION + 8 * characters

    def matches(self, texts: Mapping[str, Positions]) -> bool:
        """Whether a document matches the query, but for the conditions. `texts` has its text columns."""
        is_found = False
        for clause in self.query.clauses:
            is_there = any(_has(clause, texts[name]) for name in clause.fields)
            if is_there == (clause.occurs == "not") and clause.occurs != "may":
                return False
            is_found = is_found or (is_there and clause.occurs != "not")
        return is_found

    def meeting(self, rows: pa.Table) -> list[int]:
        """The numbers of the rows of documents that meet all conditions."""
        if not self.conditions:
            return list(range(rows.num_rows))
        kept: list[int] = np.flatnonzero(reduce(pc.and_, (each.mask(rows) for each in self.conditions))).tolist()
        return kept


def _has(clause: Clause, positions: Positions) -> bool:
    """Whether a text matches a clause."""
    if clause.prefix is not None:
        return any(term.startswith(clause.prefix) for term in positions)
    if any(term not in positions for term, _ in clause.terms):
        return False
    (first, _), *others = clause.terms
    if not others:
        return True
    places = {term: set(positions[term]) for term, _ in others}
    return any(all(start + distance in places[term] for term, distance in others) for start in positions[first])


def _require_comparable(condition: Condition, documents: pa.Schema) -> None:
    """Raise BadSearch if a column cannot be compared in this way."""
    try:
        condition.mask(documents.empty_table())
    except pa.ArrowException:
        kind = documents.field(condition.column).type
        raise BadSearch(
            f'column "{condition.column}" is of type {kind}, which has no "{condition.operator}"',
            hint="compare it by a column of another type",
        ) from None

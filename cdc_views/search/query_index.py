"""An index of stored queries by their terms: which queries could match a document, without looking at the others.

Each query is filed where every document that it matches leads to it. If it has words with `+`, one of these is enough:
the one under which the fewest queries are filed. If it has none, it is filed under each of its words. A phrase is filed
under one of its terms, a prefix under itself: a term of a document leads to the prefixes that it begins with. So a
document is compared only with the queries that are filed under one of its terms.

Rows of queries have columns of any types, of which the index returns those of the queries that match. What takes part
in the comparison are the key, the text of the query, and its conditions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cdc_views.base.python_values import plain_values
from cdc_views.errors import BadSearch
from cdc_views.search.options import IndexOptions
from cdc_views.search.query import Clause, Query
from cdc_views.search.stored_query import Positions, StoredQuery

ERROR: Final = "error"
"""The column that says why a query cannot be understood."""

# An edited query leaves its old row behind, until there are as many of these.
_MOST_DEAD_ROWS: Final = 10_000
_MOST_CHUNKS: Final = 64
_BYTES_OF_KEY: Final = 250


@dataclass(frozen=True)
class QueryColumns:
    """The columns of stored queries: those that identify one, its text, its conditions, and those that are returned."""

    key: tuple[str, ...]
    query: str
    conditions: str | None
    returned: tuple[str, ...]


@dataclass(frozen=True)
class Matches:
    """Pairs of a query and a document: `queries` has the returned columns of the query, `documents` the key.

    `examined` counts the documents that were compared with a query, once for each such query.
    """

    queries: pa.Table
    documents: pa.ChunkedArray
    examined: int


class QueryIndex:
    """Stored queries in memory. Queries that cannot be understood match nothing, and are listed with the reason."""

    def __init__(self, columns: QueryColumns, options: IndexOptions, documents: pa.Schema) -> None:
        """`documents` has the columns of the documents."""
        self._columns = columns
        self._options = options
        self._documents = documents
        self._rows: pa.Table | None = None
        self._numbers: dict[tuple[object, ...], int] = {}  # of the row of each query
        self._queries: dict[int, StoredQuery] = {}
        self._errors: dict[int, str] = {}
        self._by_term: defaultdict[str, set[int]] = defaultdict(set)
        self._by_prefix: defaultdict[str, set[int]] = defaultdict(set)
        self._prefix_lengths: Counter[int] = Counter()
        self._filed: dict[int, tuple[list[str], list[str]]] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def size(self) -> int:
        """About how many bytes the queries take in memory."""
        rows = self._rows.nbytes if self._rows is not None else 0
        return rows + len(self._numbers) * _BYTES_OF_KEY + self._size

    def add(self, rows: pa.Table) -> None:
        """Add queries whose keys are not in the index."""
        columns = self._columns
        returned = rows.select(list(columns.returned))
        first = self._rows.num_rows if self._rows is not None else 0
        self._rows = returned if self._rows is None else pa.concat_tables([self._rows, returned])
        if self._rows.column(0).num_chunks > _MOST_CHUNKS:
            self._rows = self._rows.combine_chunks()
        texts = rows.column(columns.query).to_pylist()
        no_conditions = [None] * rows.num_rows
        conditions = rows.column(columns.conditions).to_pylist() if columns.conditions else no_conditions
        found = zip(_keys(rows, columns.key), texts, conditions, strict=True)
        for number, (key, text, of_query) in enumerate(found, first):
            self._numbers[key] = number
            try:
                self._put(number, StoredQuery.parse(text, of_query, self._options, self._documents))
            except BadSearch as error:
                self._errors[number] = error.message

    def remove(self, rows: pa.Table) -> None:
        """Remove the queries with the keys of these rows, where there are such."""
        for key in _keys(rows, self._columns.key):
            number = self._numbers.pop(key, None)
            if number is None or self._errors.pop(number, None) is not None:
                continue
            self._size -= self._queries.pop(number).size
            terms, prefixes = self._filed.pop(number)
            for term in terms:
                _discard(self._by_term, term, number)
            for prefix in prefixes:
                _discard(self._by_prefix, prefix, number)
                self._prefix_lengths[len(prefix)] -= 1
        self._drop_dead_rows()

    def matches(self, documents: pa.Table) -> Matches:
        """The queries that match each of some documents, which the caller bounds."""
        names, analyzer = self._options.fields, self._options.analyzer
        texts = [documents.column(name).to_pylist() for name in names]
        found: defaultdict[int, list[int]] = defaultdict(list)
        examined = 0
        for place, of_document in enumerate(zip(*texts, strict=True)):
            words = {
                name: analyzer.positions(text) if text else {}
                for name, text in zip(names, of_document, strict=True)
            }  # fmt: skip
            candidates = self._candidates(words)
            examined += len(candidates)
            for number in candidates:
                if self._queries[number].matches(words):
                    found[number].append(place)
        numbers, places = list[int](), list[int]()
        for number, of_query in found.items():
            kept = self._meeting(number, documents, of_query)
            numbers += [number] * len(kept)
            places += kept
        keys = documents.column(self._options.key).take(pa.array(places, pa.int64()))
        return Matches(self._returned(numbers), keys, examined)

    def malformed(self, among: pa.Table | None = None) -> pa.Table:
        """The queries that cannot be understood: their returned columns, and the reason.

        With `among`, only those that have the keys of these rows.
        """
        numbers = self._errors if among is None else [number for _, number in self._known(among)]
        numbers = [number for number in numbers if number in self._errors]
        errors = pa.array([self._errors[number] for number in numbers], pa.string())
        return self._returned(numbers).append_column(ERROR, errors)

    def understood(self, among: pa.Table) -> Iterator[tuple[int, StoredQuery]]:
        """Yield the queries with the keys of these rows that can be understood, each with the number of its row."""
        for place, number in self._known(among):
            if number in self._queries:
                yield place, self._queries[number]

    def _known(self, rows: pa.Table) -> Iterator[tuple[int, int]]:
        """The numbers of rows whose keys are in the index, and our numbers of these queries."""
        for place, key in enumerate(_keys(rows, self._columns.key)):
            if key in self._numbers:
                yield place, self._numbers[key]

    def _put(self, number: int, query: StoredQuery) -> None:
        terms, prefixes = list[str](), list[str]()
        for clause in self._leading(query.query):
            if clause.prefix is not None:
                prefixes.append(clause.prefix)
            else:
                terms.append(min((term for term, _ in clause.terms), key=self._crowd))
        for term in terms:
            self._by_term[term].add(number)
        for prefix in prefixes:
            self._by_prefix[prefix].add(number)
            self._prefix_lengths[len(prefix)] += 1
        self._queries[number], self._filed[number] = query, (terms, prefixes)
        self._size += query.size

    def _leading(self, query: Query) -> Iterable[Clause]:
        """The clauses of which each document that matches has one."""
        if not (required := query.of("must")):
            return query.of("may")
        words = [clause for clause in required if clause.prefix is None]
        return [min(words or required, key=self._crowd_of)]

    def _crowd_of(self, clause: Clause) -> tuple[int, int]:
        if clause.prefix is not None:
            return len(self._by_prefix.get(clause.prefix, ())), -len(clause.prefix)
        return min(self._crowd(term) for term, _ in clause.terms)

    def _crowd(self, term: str) -> tuple[int, int]:
        """How many queries are filed under a term; of two with equally many, the longer one is rarer in texts."""
        return len(self._by_term.get(term, ())), -len(term)

    def _candidates(self, words: Mapping[str, Positions]) -> set[int]:
        """The numbers of the queries that are filed under a term of a document."""
        lengths = [length for length, count in self._prefix_lengths.items() if count]
        found = set[int]()
        for term in {term for positions in words.values() for term in positions}:
            found |= self._by_term.get(term, set())
            for length in lengths:
                if length <= len(term):
                    found |= self._by_prefix.get(term[:length], set())
        return found

    def _meeting(self, number: int, documents: pa.Table, places: list[int]) -> list[int]:
        """Those of the documents that meet the conditions of a query."""
        query = self._queries[number]
        if not query.conditions:
            return places
        return [places[each] for each in query.meeting(documents.take(pa.array(places, pa.int64())))]

    def _returned(self, numbers: list[int]) -> pa.Table:
        assert self._rows is not None, "no rows were added"
        return self._rows.take(pa.array(numbers, pa.int64()))

    def _drop_dead_rows(self) -> None:
        if self._rows is None or self._rows.num_rows < 2 * len(self._numbers) + _MOST_DEAD_ROWS:
            return
        places = {number: place for place, number in enumerate(self._numbers.values())}
        self._rows = self._returned(list(places)).combine_chunks()
        self._numbers = {key: places[number] for key, number in self._numbers.items()}
        self._queries = {places[number]: each for number, each in self._queries.items()}
        self._errors = {places[number]: each for number, each in self._errors.items()}
        self._filed = {places[number]: each for number, each in self._filed.items()}
        for filed in (self._by_term, self._by_prefix):
            for term, numbers in filed.items():
                filed[term] = {places[number] for number in numbers}


def _discard(filed: defaultdict[str, set[int]], term: str, number: int) -> None:
    filed[term].discard(number)
    if not filed[term]:
        del filed[term]


def _keys(rows: pa.Table, key: Iterable[str]) -> list[tuple[object, ...]]:
    return list(zip(*(plain_values(rows.column(name)) for name in key), strict=True))

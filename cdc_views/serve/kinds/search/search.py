"""A search of one index at one epoch: what is asked, and a page of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.base.python_values import python_rows
from cdc_views.errors import BadPage, BadSearch
from cdc_views.search import Query, ScoredDocuments, ScorePart, answer
from cdc_views.search.columns import Condition, FilterValues, SortKey, conditions_of, in_order, keys_of, require_columns
from cdc_views.search.snippets import Snippet, snippet
from cdc_views.serve.epochs.moment import Moment
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.kinds.search.cursor import Cursor, question_of
from cdc_views.serve.kinds.search.index import SearchIndex, SearchLimits
from cdc_views.store.reading import StoredTables

MOST_HITS: Final = 1000
"""The most documents on one page."""

_SCORE: Final = "_cv_score"
_NUMBER: Final = "_cv_number"


@dataclass(frozen=True)
class Hit:
    """A document that matches.

    `document` has its columns; `snippets` has the matching part of each text column that matches, `explanation` what
    its score is the sum of, if that was asked for.
    """

    key: Any
    score: float
    document: Mapping[str, Any]
    snippets: Mapping[str, Snippet]
    explanation: tuple[ScorePart, ...] = ()


@dataclass(frozen=True)
class SearchResult:
    """A page of an answer: its documents, and how many match in all.

    `cursor` gives the next page, None if this is the last one. `epoch` is the epoch of all pages.
    """

    hits: tuple[Hit, ...]
    total: int
    epoch: int
    cursor: str | None


@dataclass(frozen=True)
class SearchRequest:
    """What is asked of an index. Raises BadSearch, BadPage.

    `conditions` are on columns of the documents, all of which must hold; `sort` has the columns to sort by: by the
    score if there are none. `limit` is the number of documents of a page, at most 1,000.
    """

    index: str
    text: str
    limit: int = 10
    conditions: tuple[Condition, ...] = ()
    sort: tuple[SortKey, ...] = ()
    cursor: Cursor | None = None
    explain: bool = field(default=False, kw_only=True)

    @classmethod
    def of(
        cls,
        index: str,
        text: str,
        *,
        limit: int = 10,
        filter: FilterValues | None = None,  # noqa: A002 (what it is called in searches)
        sort: str | Iterable[str] | None = None,
        cursor: str | None = None,
        explain: bool = False,
    ) -> SearchRequest:
        """Check what a caller gives. `filter` and `sort` are as of WarehouseReader.search."""
        if type(limit) is not int or not 1 <= limit <= MOST_HITS:
            raise BadPage(
                f"the limit is {limit!r}, wanted a whole number from 1 to {MOST_HITS}",
                hint="the cursor of a page leads to the next one",
            )
        if not isinstance(text, str):
            raise BadSearch(f"the query is of type {type(text).__name__}, wanted a text", hint='write "rust delta"')
        conditions = conditions_of(filter)
        keys = keys_of(sort)
        question = question_of(index, text, conditions, keys)
        parsed = None if cursor is None else Cursor.parse(cursor, question)
        return cls(index, text, limit, conditions, keys, parsed, explain=explain)

    def moment(self, given: Moment) -> Moment:
        """At which moment to read: as given, or else for a further page at the epoch of the first one."""
        return given if self.cursor is None or given.at is not None else Moment(at=self.cursor.epoch)

    @property
    def next_page(self) -> Cursor:
        """The cursor of the page after this one, but for its epoch."""
        skipped = self.cursor.skipped if self.cursor is not None else 0
        return Cursor(question_of(self.index, self.text, self.conditions, self.sort), 0, skipped + self.limit)


def search(
    epoch: PublishedEpoch, stored: StoredTables, request: SearchRequest, limits: SearchLimits | None = None
) -> SearchResult:
    """Answer a request at an epoch, within limits if there are any.

    Raises BadSearch, BadPage, WrongKind, AnalyzerDiffers, UnknownView, ViewFailed, TableUnavailable, WarehouseUnusable,
    ResultTooLarge, QueryTooLong.
    """
    if request.cursor is not None and request.cursor.epoch != epoch.number:
        raise BadPage(
            f"the cursor is of epoch {request.cursor.epoch}, and epoch {epoch.number} is read",
            hint="read at the epoch of the cursor, or begin with the first page",
        )
    index = SearchIndex(epoch, request.index, stored, limits)
    require_columns(
        index.schema, [*(each.column for each in request.conditions), *(key.column for key in request.sort)]
    )
    query = Query.parse(request.text, index.options)
    for condition in request.conditions:
        condition.mask(index.schema.empty_table())  # refuses a wrong value, whatever the query finds
    found = _filtered(answer(query, index, index.scoring()), index, request.conditions)
    skipped = request.cursor.skipped if request.cursor is not None else 0
    page = _ranked(found, index, request, skipped + request.limit)[skipped:]
    total = len(found.documents)
    after = request.next_page
    cursor = str(Cursor(after.question, epoch.number, after.skipped)) if after.skipped < total else None
    return SearchResult(_hits(page, found, index, query, request), total, epoch.number, cursor)


def _filtered(found: ScoredDocuments, index: SearchIndex, conditions: tuple[Condition, ...]) -> ScoredDocuments:
    """The part of an answer whose documents meet the conditions."""
    if not conditions or not len(found.documents):
        return found
    rows = index.documents(found.documents, [each.column for each in conditions])
    kept = rows.filter(reduce(pc.and_, (each.mask(rows) for each in conditions))).column(index.options.key)
    return found.only(np.flatnonzero(pc.is_in(found.documents, value_set=kept.combine_chunks())))


def _ranked(found: ScoredDocuments, index: SearchIndex, request: SearchRequest, count: int) -> list[int]:
    """The numbers of the first documents in the wanted order."""
    if not request.sort or not len(found.documents):
        return found.best(count)
    key = index.options.key
    rows = index.documents(found.documents, [each.column for each in request.sort])
    numbers = pc.index_in(rows.column(key), value_set=found.documents)
    scores = pa.array(found.scores).take(numbers)
    rows = rows.append_column(_NUMBER, numbers).append_column(_SCORE, scores)
    order = in_order(rows, request.sort, [(_SCORE, "descending"), (key, "ascending")])
    ranked: list[int] = rows.column(_NUMBER).take(order.slice(0, count)).to_pylist()
    return ranked


def _hits(
    page: list[int], found: ScoredDocuments, index: SearchIndex, query: Query, request: SearchRequest
) -> tuple[Hit, ...]:
    """The documents of a page, in their order."""
    keys = found.documents.take(pa.array(page, pa.int64()))
    analyzer, key = index.options.analyzer, index.options.key
    rows = {row[key]: row for row in python_rows(index.documents(keys, index.schema.names))} if page else {}
    hits = []
    for number, of_hit in zip(page, keys.to_pylist(), strict=True):
        index.check_time()  # a snippet is made of a whole text
        row = rows[of_hit]
        texts = {name: row[name] for name in index.options.fields if row[name]}
        snippets = {name: snippet(text, name, query, analyzer) for name, text in texts.items()}
        hits.append(
            Hit(
                key=of_hit,
                score=float(found.scores[number]),
                document={name: row[name] for name in index.schema.names},
                snippets={name: each for name, each in snippets.items() if each is not None},
                explanation=tuple(found.explain(number)) if request.explain else (),
            )
        )
    return tuple(hits)

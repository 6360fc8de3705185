"""Search indexes without an engine: text to terms, terms to postings, and ranked answers from them.

analyzer.py      text to terms: words, folding, stop words, stems
options.py       what a view of kind `search_index` declares
postings.py      documents to postings and totals
query.py         the query language
answers.py       a query over the postings of one epoch: which documents match, and their scores
bm25.py          the formula of a score, and its explanation
columns.py       conditions on the columns of documents, and their order
snippets.py      the part of a text that a query matches
stored_query.py  a query that is kept, and whether a document matches it
query_index.py   stored queries by their terms: which of them could match a document

docs/search.md says what all of this means for users.
"""

from __future__ import annotations

from cdc_views.search.analyzer import Analyzer, Token
from cdc_views.search.answers import Index, PostingList, ScoredDocuments, answer, matching_documents
from cdc_views.search.bm25 import ScorePart, Scoring, Totals
from cdc_views.search.options import IndexOptions
from cdc_views.search.postings import IndexCounts, postings_schema
from cdc_views.search.query import Query
from cdc_views.search.query_index import QueryColumns, QueryIndex
from cdc_views.search.stored_query import StoredQuery

__all__ = [
    "Analyzer",
    "Index",
    "IndexCounts",
    "IndexOptions",
    "PostingList",
    "Query",
    "QueryColumns",
    "QueryIndex",
    "ScorePart",
    "ScoredDocuments",
    "Scoring",
    "StoredQuery",
    "Token",
    "Totals",
    "answer",
    "matching_documents",
    "postings_schema",
]

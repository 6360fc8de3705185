"""Searching an index at one epoch, without an engine.

search.py   what is asked, and the page of the answer
cursor.py   where the next page of an answer begins
index.py    the three tables of an index at an epoch: documents, postings, totals
"""

from __future__ import annotations

from cdc_views.serve.kinds.search.index import SearchIndex, SearchLimits
from cdc_views.serve.kinds.search.search import Hit, SearchRequest, SearchResult, search

__all__ = ["Hit", "SearchIndex", "SearchLimits", "SearchRequest", "SearchResult", "search"]

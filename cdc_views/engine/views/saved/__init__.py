"""Views of kind `saved_searches`: stored queries, matched with the documents of a search index.

searches.py  what such a view reads, from its declaration and the tables of its inputs
kept.py      the stored queries of a view, in memory from one epoch to the next
matches.py   its rows: those that an epoch changes, or all
"""

from __future__ import annotations

from cdc_views.engine.views.saved.kept import KeptQueries
from cdc_views.engine.views.saved.matches import SavedWork, all_matches, changed_matches
from cdc_views.engine.views.saved.searches import BY_TERMS, SavedSearches, is_saved, searches_of

__all__ = [
    "BY_TERMS",
    "KeptQueries",
    "SavedSearches",
    "SavedWork",
    "all_matches",
    "changed_matches",
    "is_saved",
    "searches_of",
]

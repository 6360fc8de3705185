"""The kinds of views: shapes on top of a SELECT, each with its own options, and the options that all of them have.

kind.py            what a kind decides; a kind overrides what differs from a plain SELECT
options.py         how the options of kinds are written: columns, an order, a number
plain.py           kind `sql`: the SELECT as written
cache.py           kind `cache`: rows by key
saved_searches.py  kind `saved_searches`: stored queries, and the documents that they match
search_index.py    kind `search_index`: documents, and what to search in
timeline.py        kind `timeline`: the first rows of each owner

To add a kind, write its file and add it to `KINDS` (docs/architecture.md has the recipe).
"""

from __future__ import annotations

from typing import Final

from cdc_views.views.kinds.cache import CacheKind
from cdc_views.views.kinds.kind import Kind, Options, ProvenKey
from cdc_views.views.kinds.options import Option
from cdc_views.views.kinds.plain import PlainKind
from cdc_views.views.kinds.saved_searches import SavedSearchesKind
from cdc_views.views.kinds.search_index import SearchIndexKind
from cdc_views.views.kinds.timeline import TimelineKind

__all__ = ["COMMON_OPTIONS", "DEFAULT_KIND", "FLAGS", "KINDS", "Kind", "Option", "Options", "ProvenKey"]

DEFAULT_KIND: Final = PlainKind.name

_ALL: Final = (PlainKind(), CacheKind(), TimelineKind(), SearchIndexKind(), SavedSearchesKind())
KINDS: Final[dict[str, Kind]] = {kind.name: kind for kind in _ALL}

# Options of every kind, and their allowed values; the first value is the default.
COMMON_OPTIONS: Final = {"layout": ("vectors", "plain"), "strict": ("false", "true")}
# Options that may be named without a value, which means true. They decide nothing about the rows of a view.
FLAGS: Final = frozenset({"strict"})

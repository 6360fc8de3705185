"""Kind `search_index`: the rows of the SELECT are documents, found by the words of their text columns.

The table of the view has the documents, as for a plain SELECT. The engine keeps the postings and the totals of its text
columns beside it (engine/views/search/tables.py), and the search of `serve` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from cdc_views.search.analyzer import NO_LANGUAGE
from cdc_views.search.options import IndexOptions, language, number, stop_words, weights
from cdc_views.views.kinds.kind import Kind, Options, ProvenKey
from cdc_views.views.kinds.options import Option, column

_KEYS = frozenset({"int8", "int16", "int32", "int64", "string"})


class SearchIndexKind(Kind):
    """Documents with a key, and the text columns to search in, each with its weight."""

    name: ClassVar[str] = "search_index"
    options: ClassVar[Mapping[str, Option]] = MappingProxyType(
        {
            "key": Option(column, is_required=True),
            "text": Option(weights, is_required=True),
            "language": Option(language, NO_LANGUAGE),
            "stop_words": Option(stop_words, ()),
            "k1": Option(number(0, 100), 1.2),
            "b": Option(number(0, 1), 0.75),
        }
    )

    def key(self, options: Options, proven: ProvenKey) -> tuple[str, ...] | None:
        """The proven key, which must be the one that is declared."""
        wanted = options.values["key"]
        if proven.key is None or [each.lower() for each in proven.key] != [wanted.lower()]:
            found = "no key is proven" if proven.key is None else f"the key is ({', '.join(proven.key)})"
            options.refuse("key", f'column "{wanted}" does not identify a row: {found}', hint=proven.reason)
        return proven.key

    def record(self, options: Options, types: Mapping[str, str], key: tuple[str, ...] | None) -> Mapping[str, Any]:
        """The options of the index, its columns spelled as in the table."""
        spelled = {name.lower(): name for name in types}
        assert key is not None
        if types[key[0]] not in _KEYS:
            problem = f'key column "{key[0]}" is of type {types[key[0]]}, wanted a whole number or a text'
            options.refuse("key", problem, hint=f"select CAST({key[0]} AS STRING)")
        fields = {}
        for name, weight in options.values["text"].items():
            found = spelled.get(name.lower())
            if found is None:
                options.refuse("text", f'the view has no column "{name}"', hint=f"columns: {', '.join(types)}")
            if types[found] != "string":
                options.refuse("text", f'column "{found}" is of type {types[found]}, wanted a text')
            fields[found] = weight
        values = {**options.values, "key": key[0]}
        del values["text"]
        return IndexOptions(weights=fields, **values).record()

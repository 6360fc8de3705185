"""What a view of kind `search_index` declares: `WITH (kind = 'search_index', key = 'id', text = 'title^2, body')`."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Final, Self

from cdc_views.errors import BadView
from cdc_views.search.analyzer import ENGLISH_STOP_WORDS, LANGUAGES, NO_LANGUAGE, Analyzer

_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
_FIELD: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\s*\^\s*([0-9]+(?:\.[0-9]+)?))?")


@dataclass(frozen=True)
class IndexOptions:
    """A search index: the column that identifies a document, its text columns with weights, and BM25's k1 and b."""

    key: str
    weights: Mapping[str, float]
    language: str = NO_LANGUAGE
    stop_words: tuple[str, ...] = ()
    k1: float = 1.2
    b: float = 0.75

    @property
    def fields(self) -> tuple[str, ...]:
        """The text columns, in the order of their declaration."""
        return tuple(self.weights)

    @cached_property
    def analyzer(self) -> Analyzer:
        """What makes terms of the texts."""
        return Analyzer(self.language, self.stop_words)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> Self:
        """Read what `record` has returned."""
        found = {each.name: record[each.name] for each in dataclasses.fields(cls)}
        return cls(**{**found, "stop_words": tuple(found["stop_words"])})

    def record(self) -> dict[str, Any]:
        """The options as values of JSON, as they are kept with the index."""
        return asdict(self)


def weights(text: str) -> dict[str, float]:
    """Parse `title^2, body`. Raises BadView, as all functions here do, with the problem and without its place."""
    found: dict[str, float] = {}
    for part in text.split(","):
        field = _FIELD.fullmatch(part.strip())
        if field is None:
            hint = "wanted names of columns with their weights, as in 'title^2, body'"
            raise BadView(f'found "{part.strip()}", wanted a column', hint=hint)
        if field[1].lower() in map(str.lower, found):
            raise BadView(f'column "{field[1]}" appears twice')
        found[field[1]] = weight = float(field[2] or 1)
        if not 0 < weight < math.inf:
            raise BadView(f'the weight of column "{field[1]}" is {weight:g}, wanted a finite number above 0')
    return found


def language(text: str) -> str:
    """Parse the name of a language of Snowball, or `none`."""
    name = text.strip().lower()
    if name not in LANGUAGES:
        close = get_close_matches(name, LANGUAGES, n=1)
        hint = f'did you mean "{close[0]}"' if close else f"languages are {', '.join(LANGUAGES)}"
        raise BadView(f'unknown language "{text}"', hint=hint)
    return name


def stop_words(text: str) -> tuple[str, ...]:
    """Parse `none`, `english` or a list of words."""
    if text.strip().lower() == "none":
        return ()
    if text.strip().lower() == "english":
        return ENGLISH_STOP_WORDS
    words = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    plain = Analyzer()
    for word in words:
        if plain.prefix(word) is None:
            raise BadView(f'found "{word}", wanted one word', hint="stop words are separated by commas: 'the, a'")
    return words


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a function that parses a number within these limits."""

    def parse(text: str) -> float:
        found = float(text) if _NUMBER.fullmatch(text) else -1.0
        if not low <= found <= high:
            raise BadView(f'found "{text}", wanted a number from {low:g} to {high:g}')
        return found

    return parse

"""The query language.

    rust delta            documents with one of the words, those with both first
    "exactly once"        a phrase
    post*                 words that begin so
    +rust -delta          must have it; must not
    title:rust            only in this text column; also title:"a phrase", title:post*, -title:rust

A word of which the analyzer makes several terms, as wi-fi or 中文, is a phrase. A query without `+` needs one of its
words at least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal, Self

import regex

from cdc_views.errors import BadSearch
from cdc_views.search.analyzer import Analyzer
from cdc_views.search.options import IndexOptions

Occurs = Literal["may", "must", "not"]

MOST_WORDS: Final = 64
_SIGNS: Final[dict[str, Occurs]] = {"+": "must", "-": "not", "": "may"}
_FORM: Final = 'a query has words, "phrases", prefix*, +must, -not and column:word'
# Sign, column, and a phrase or a word. A sign and a column count only at the start of a word: wi-fi is a word.
_CLAUSE: Final = regex.compile(r'([+-]?)(?:([\p{L}_]\w*):(?!//))?(?:"([^"]*)("?)|([^\s"]+))|([+-])')

_COLUMN_ALONE: Final = regex.compile(r"[\p{L}_]\w*:")


@dataclass(frozen=True)
class Clause:
    """What a document may, must or must not have: `terms` with their distances from the first one, or a `prefix`.

    `fields` are the text columns in which it counts; `text` is the clause as written, without its sign.
    """

    occurs: Occurs
    fields: tuple[str, ...]
    terms: tuple[tuple[str, int], ...]
    prefix: str | None
    text: str


@dataclass(frozen=True)
class Query:
    """The clauses of a query, in their order, without those of stop words only."""

    clauses: tuple[Clause, ...]

    @classmethod
    def parse(cls, text: str, options: IndexOptions) -> Self:
        """Parse the text of a query. Raises BadSearch."""
        parser = _Parser(text, options)
        clauses = tuple(parser.clauses())
        if not parser.has_found_any:
            raise BadSearch("the query has no word", hint=_FORM)
        if parser.has_only_negative:
            raise BadSearch('the query has only words with "-"', hint="add a word that documents are to have")
        if (words := sum(len(clause.terms) or 1 for clause in clauses)) > MOST_WORDS:
            raise BadSearch(f"the query has {words} words, wanted at most {MOST_WORDS}", hint="omit the common ones")
        return cls(clauses)

    def of(self, occurs: Occurs) -> list[Clause]:
        """The clauses that may, must or must not match."""
        return [clause for clause in self.clauses if clause.occurs == occurs]


class _Parser:
    def __init__(self, text: str, options: IndexOptions) -> None:
        self._text = text
        self._options = options
        self._analyzer: Analyzer = options.analyzer
        self.has_found_any = False
        self.has_only_negative = True

    def clauses(self) -> Iterator[Clause]:
        place = 0
        while place < len(self._text):
            if self._text[place].isspace():
                place += 1
                continue
            found = _CLAUSE.match(self._text, place)
            assert found is not None  # it matches any character that is not a space
            place = found.end()
            if clause := self._clause(found):
                yield clause

    def _clause(self, found: regex.Match[str]) -> Clause | None:
        sign, column, phrase, closing, word, alone = found.groups()
        at = f"character {found.start() + 1}"
        if alone:
            raise BadSearch(f'"{alone}" at {at} has no word', hint=f'write it directly before a word: "{alone}rust"')
        if phrase is not None and not closing:
            raise BadSearch(f"the phrase at {at} has no closing quotation mark", hint='write "exactly once"')
        if word in ("+", "-"):
            raise BadSearch(f'"{sign}{word}" at {at} has no word', hint=_FORM)
        if word is not None and word[0] in "+-":
            raise BadSearch(
                f'"{found[0]}" at {at} has a sign that is not its first character',
                hint='write "-rust" or "-title:rust"',
            )
        if word is not None and column is None and _COLUMN_ALONE.fullmatch(word):
            hint = f'write a word directly after it: "{word}rust"; quote a word that has a ":"'
            raise BadSearch(f'"{word}" at {at} has no word', hint=hint)
        text = phrase if phrase is not None else word
        occurs, fields = _SIGNS[sign or ""], self._fields(column, at)
        written = f"{column}:" if column else ""
        if phrase is None and text.endswith("*"):
            return self._found(Clause(occurs, fields, (), self._prefix(text[:-1], at), written + text))
        tokens = self._analyzer.tokens(text)
        if not tokens:
            # Marks, which stand for nothing, or stop words.
            if self._analyzer.has_words(text):
                self._note(occurs)
            return None
        first = tokens[0].position
        terms = tuple((token.term, token.position - first) for token in tokens)
        return self._found(Clause(occurs, fields, terms, None, written + (f'"{text}"' if phrase is not None else text)))

    def _found(self, clause: Clause) -> Clause:
        self._note(clause.occurs)
        return clause

    def _note(self, occurs: Occurs) -> None:
        self.has_found_any = True
        self.has_only_negative = self.has_only_negative and occurs == "not"

    def _fields(self, column: str | None, at: str) -> tuple[str, ...]:
        fields = self._options.fields
        if column is None:
            return fields
        if column not in fields:
            close = get_close_matches(column, fields, n=1)
            hint = f'did you mean "{close[0]}"' if close else f"text columns are {', '.join(fields)}"
            raise BadSearch(f'unknown text column "{column}" at {at}', hint=f'{hint}; quote a word that has a ":"')
        return (column,)

    def _prefix(self, text: str, at: str) -> str:
        prefix = self._analyzer.prefix(text)
        if prefix is None:
            raise BadSearch(f'"*" at {at} follows no word', hint="a prefix is the beginning of one word, as in post*")
        return prefix

"""The part of a text that matches a query, with the matching words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cdc_views.search.analyzer import Analyzer, Token
from cdc_views.search.query import Clause, Query

LENGTH: Final = 160
"""About how many characters a snippet has."""

_LEAD: Final = 30
_CUT: Final = "…"


@dataclass(frozen=True)
class Snippet:
    """A part of a text in pieces: the text of each, and whether it matches the query."""

    pieces: tuple[tuple[str, bool], ...]

    def marked(self, before: str = "**", after: str = "**") -> str:
        """The text with marks around what matches. It is not escaped: for HTML, use the pieces."""
        return "".join(f"{before}{text}{after}" if matches else text for text, matches in self.pieces)

    def __str__(self) -> str:
        return self.marked()


def snippet(text: str, field: str, query: Query, analyzer: Analyzer) -> Snippet | None:
    """The part of a document's text column with the most different words of a query; None if it has none."""
    clauses = [clause for clause in query.clauses if clause.occurs != "not" and field in clause.fields]
    tokens = analyzer.tokens(text)
    whole = _in_phrases(tokens, clauses)
    found = [(token, term) for token in tokens if (term := _matched(token, clauses, whole)) is not None]
    if not found:
        return None
    start, end = _window(text, found)
    pieces, place = [(_CUT, False)] if start else [], start
    for token, _ in found:
        if start <= token.start < end:
            last = min(token.end, end)  # a word may be longer than the snippet
            pieces += [(text[place : token.start], False), (text[token.start : last], True)]
            place = last
    pieces += [(text[place:end], False), (_CUT if end < len(text) else "", False)]
    return Snippet(tuple((piece, matches) for piece, matches in pieces if piece))


def _in_phrases(tokens: Sequence[Token], clauses: Sequence[Clause]) -> frozenset[int]:
    """The positions of the words of a text that are a part of a whole phrase."""
    terms = {token.position: token.term for token in tokens}
    return frozenset(
        first + distance
        for clause in clauses
        if len(clause.terms) > 1
        for first in terms
        if all(terms.get(first + further) == term for term, further in clause.terms)
        for _, distance in clause.terms
    )


def _matched(token: Token, clauses: Sequence[Clause], whole: frozenset[int]) -> str | None:
    """The term or prefix of a query that a word of a text matches; `whole` are the positions within phrases."""
    for clause in clauses:
        if clause.prefix is not None:
            if token.form.startswith(clause.prefix):
                return clause.prefix + "*"
        elif len(clause.terms) == 1 and token.term == clause.terms[0][0]:
            return token.term
    return token.term if token.position in whole else None


def _window(text: str, found: Sequence[tuple[Token, str]]) -> tuple[int, int]:
    """Where the snippet begins and ends."""
    if len(text) <= LENGTH:
        return 0, len(text)
    best, most = found[0][0].start, 0
    inside, last = Counter[str](), 0  # the terms of found[number:last]
    for number, (token, term) in enumerate(found):
        while last < len(found) and found[last][0].end <= token.start + LENGTH - _LEAD:
            inside[found[last][1]] += 1
            last += 1
        if len(inside) > most:
            best, most = token.start, len(inside)
        if last == number:  # a word that is longer than the snippet
            last += 1
            continue
        inside[term] -= 1
        if not inside[term]:
            del inside[term]
    start = max(0, best - _LEAD)
    while 0 < start < best and not text[start - 1].isspace():
        start += 1
    end = min(len(text), start + LENGTH)
    while end < len(text) and not text[end].isspace() and end > best:
        end -= 1
    return start, end if end > best else min(len(text), start + LENGTH)

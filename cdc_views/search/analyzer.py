"""Text to terms, the same way for documents and for queries.

1. Words are those of Unicode (UAX 29), as `regex` finds them, if they have a letter, a digit or an emoji. Chinese
   characters, Hiragana and Thai have no spaces between words: each character is a word of its own, and a query of
   several of them is a phrase. In French, Italian and Catalan a word begins after its apostrophe: été in l'été.
2. A word is normalized (NFKC) and case-folded. Accents of Latin and Greek letters are removed, before it is stemmed, so
   that a text with accents and the same text without them have the same terms.
3. Stop words are dropped. Their place counts, so a phrase does not match across it.
4. The word is stemmed by Snowball for the language, if there is one. The word before that, its form, is a second term,
   with which prefixes are compared: runn* begins running, and not its stem.

What decides the terms is part of `identity`: an index whose analyzer has another one is built again.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from typing import Final, NamedTuple

import regex
import Stemmer

# Raise it when the same text is to get other terms.
_VERSION: Final = 2

NO_LANGUAGE: Final = "none"
LANGUAGES: Final = (NO_LANGUAGE, *sorted(Stemmer.algorithms()))

ENGLISH_STOP_WORDS: Final = (
    *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
    *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
    *("will", "with"),
)

_IGNORED: Final = r"[\p{Word_Break=Extend}\p{Word_Break=Format}\p{Word_Break=ZWJ}]*+"
# A flag, unless an emoji is joined to it. `regex` finds it by \b, too, but counts all flags before each place.
_FLAG: Final = (
    rf"\p{{Regional_Indicator}}{_IGNORED}\p{{Regional_Indicator}}{_IGNORED}(?!(?<=\u200d)\p{{Extended_Pictographic}})"
)
# Between two boundaries of words; (?w) makes \b the boundary of UAX 29.
_SEGMENT: Final = regex.compile(rf"(?w){_FLAG}|\b.+?\b", regex.DOTALL)
_WORD: Final = regex.compile(r"[\p{L}\p{N}\p{Extended_Pictographic}\p{Regional_Indicator}]")
_ACCENTS: Final = regex.compile(r"(?<=[\p{Latin}\p{Greek}])\p{Mn}+")
_ELISION: Final = regex.compile(r"^.*'(?=\p{L})", regex.DOTALL)
_ELIDING: Final = frozenset({"french", "italian", "catalan"})
# Latin letters that Unicode does not decompose, after case folding.
_LETTERS: Final = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i",
                                 "’": "'", "ʼ": "'"})  # fmt: skip
FORM: Final = "="
"""Begins the terms that are forms; a word that begins with it loses it. An index without a language needs none."""

_KEPT_WORDS: Final = 100_000


class Token(NamedTuple):
    """A word of a text: its term, its place among the words, where it is in the text, and what prefixes see of it."""

    term: str
    position: int
    start: int
    end: int
    form: str


@dataclass(frozen=True)
class Analyzer:
    """Makes terms of texts. `stop_words` are as a user writes them."""

    language: str = NO_LANGUAGE
    stop_words: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Prepare what every text needs."""
        stemmer = None if self.language == NO_LANGUAGE else Stemmer.Stemmer(self.language, 0)
        stopped = frozenset(self._normal(word) for word in self.stop_words)

        @lru_cache(_KEPT_WORDS)
        def terms_of(word: str) -> tuple[str, ...] | None:
            """The terms of a word, the form last; none for a stop word, and None for a blank or a mark."""
            if not _WORD.search(word):
                return None
            form = self._normal(word)
            if form in stopped:
                return ()
            return (form,) if stemmer is None else (str(stemmer.stemWord(form)), FORM + form)

        object.__setattr__(self, "_terms_of", terms_of)

    @property
    def identity(self) -> str:
        """Everything that decides the terms: two analyzers with one identity give the same terms."""
        language = self.language if self.language == NO_LANGUAGE else f"{self.language} with forms"
        return f"words {_VERSION} ({_libraries()}), language {language}, without {','.join(self.stop_words)}"

    def tokens(self, text: str) -> list[Token]:
        """The words of a text that have a term, in their order."""
        terms_of, found, position = self._terms_of, list[Token](), 0  # type: ignore[attr-defined]
        for match in _SEGMENT.finditer(text):
            terms = terms_of(match[0])
            if terms:
                found.append(Token(terms[0], position, match.start(), match.end(), terms[-1]))
            position += terms is not None
        return found

    def positions(self, text: str) -> dict[str, list[int]]:
        """The places of each term, forms included, among the words of a text.

        It is what an index of many texts takes its time for.
        """
        terms_of, found, position = self._terms_of, dict[str, list[int]](), 0  # type: ignore[attr-defined]
        for segment in _SEGMENT.findall(text):
            terms = terms_of(segment)
            if terms is None:
                continue
            for term in terms:
                places = found.get(term)
                if places is None:
                    found[term] = [position]
                else:
                    places.append(position)
            position += 1
        return found

    def has_words(self, text: str) -> bool:
        """Whether a text has words, stop words included."""
        return bool(_words(text))

    def prefix(self, text: str) -> str | None:
        """The beginning of the forms that a prefix stands for; None if it is not one word."""
        words = _words(text)
        if len(words) != 1:
            return None
        return self._normal(words[0]) if self.language == NO_LANGUAGE else FORM + self._normal(words[0])

    def _normal(self, word: str) -> str:
        """A word as it is before it is stemmed."""
        plain = _ELISION.sub("", folded(word)) if self.language in _ELIDING else folded(word)
        return plain.lstrip(FORM)  # a mark and an emoji may be one word


def _words(text: str) -> list[str]:
    return [segment for segment in _SEGMENT.findall(text) if _WORD.search(segment)]


@cache
def _libraries() -> str:
    """What the analyzers stand on; read once, since the versions are in files."""
    return f"regex {version('regex')}, pystemmer {version('pystemmer')}, Unicode {unicodedata.unidata_version}"


def folded(word: str) -> str:
    """A word without differences of case, width, and accents on Latin and Greek letters."""
    plain = unicodedata.normalize("NFKC", word).casefold().translate(_LETTERS)
    if plain.isascii():
        return plain
    bare = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", plain)))
    return bare.translate(_LETTERS)  # again: "ǿ" has become "ø"

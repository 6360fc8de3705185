"""Text to terms."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from cdc_views.errors import BadView
from cdc_views.search import Analyzer
from cdc_views.search.analyzer import _SEGMENT, ENGLISH_STOP_WORDS, FORM, folded
from cdc_views.search.options import stop_words, weights


def terms(text: str, language: str = "none", stop_words: tuple[str, ...] = ()) -> list[str]:
    return [token.term for token in Analyzer(language, stop_words).tokens(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Café, naïve! ÉTÉ", ["cafe", "naive", "ete"]),
        ("e\u0301te\u0301", ["ete"]),  # decomposed
        ("中文 分词", ["中", "文", "分", "词"]),
        ("テスト ひら", ["テスト", "ひ", "ら"]),
        ("I ❤️ 👨‍👩‍👧 🇩🇪🇫🇷", ["i", "❤️", "👨‍👩‍👧", "🇩🇪", "🇫🇷"]),
        ("Straße Øre Łódź", ["strasse", "ore", "lodz"]),
        ("Ё й हिन्दी", ["ё", "й", "हिन्दी"]),  # marks that make another letter stay
        ("ｆｕｌｌ ﬁne", ["full", "fine"]),
        ("wi-fi 3.14 foo_bar can't", ["wi", "fi", "3.14", "foo_bar", "can't"]),
        ("-- !?", []),
    ],
)
def test_words_are_those_of_unicode(text: str, wanted: list[str]) -> None:
    assert terms(text) == wanted


_FLAGS = st.text(st.sampled_from("🇩🇪🇫a1 \u200d\u0301\u00ad\ufe0f👍'"))


@given(_FLAGS)
@example("🇩🇪\u200d👍🇩🇪")
@example("🇩\u0301🇪🇫")
def test_flags_are_where_unicode_has_boundaries(text: str) -> None:
    plain = regex.compile(r"(?w)\b.+?\b", regex.DOTALL)
    assert _SEGMENT.findall(text) == plain.findall(text)


def test_text_of_many_flags_has_a_word_for_each() -> None:
    assert len(terms("🇩🇪" * 200_000)) == 200_000


def test_stems_are_those_of_the_language() -> None:
    assert terms("Running runs dog's", "english") == ["run", "run", "dog"]
    assert terms("l’été de l'homme", "french") == terms("ete de homme", "french")


def test_forms_are_words_before_they_are_stemmed() -> None:
    english = Analyzer("english", ENGLISH_STOP_WORDS)
    assert [token.form for token in english.tokens("The Runners ran")] == ["=runners", "=ran"]
    assert (english.prefix("Runn"), Analyzer().prefix("Runn")) == ("=runn", "runn")
    assert [token.form for token in Analyzer("french").tokens("l’Étoile")] == ["=etoile"]
    assert Analyzer("french").prefix("l'ét") == "=et"


@given(st.text())
@example("=\u200d👍 =\u200d©")
def test_only_forms_begin_as_forms_do(text: str) -> None:
    english = Analyzer("english")
    tokens = english.tokens(text)
    assert not any(token.term.startswith(FORM) for token in tokens)
    counted = [place for term, places in english.positions(text).items() if term[0] != FORM for place in places]
    assert sorted(counted) == [token.position for token in tokens]


def test_letters_with_accents_are_those_without() -> None:
    assert [folded(letter) for letter in "ǿǽØÆ"] == ["o", "ae", "o", "ae"]


@pytest.mark.parametrize("given", ["the a", "wi-fi", "", "a,,the", "中文"])
def test_stop_word_that_is_not_one_word_is_refused(given: str) -> None:
    with pytest.raises(BadView, match="wanted one word"):
        stop_words(given)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("title^5, TITLE", 'column "TITLE" appears twice'),
        ("title^0", "wanted a finite number above 0"),
        (f"title^{10**400}", "is inf, wanted a finite number above 0"),
    ],
)
def test_weights_that_are_none_are_refused(given: str, problem: str) -> None:
    with pytest.raises(BadView, match=problem):
        weights(given)


def test_stop_word_is_the_word_that_texts_have() -> None:
    assert terms("aujourd'hui rust", "french", ("aujourd'hui",)) == ["rust"]


def test_stop_words_leave_their_place() -> None:
    tokens = Analyzer("english", ENGLISH_STOP_WORDS).tokens("The end of the world")
    assert [(token.term, token.position) for token in tokens] == [("end", 1), ("world", 4)]


@given(st.text())
def test_places_in_the_text_are_those_of_the_words(text: str) -> None:
    for token in Analyzer().tokens(text):
        assert folded(text[token.start : token.end]) == token.term == token.form


@given(st.text())
def test_positions_and_tokens_agree(text: str) -> None:
    analyzer = Analyzer("english")
    found: dict[str, list[int]] = {}
    for token in analyzer.tokens(text):
        found.setdefault(token.term, []).append(token.position)
        found.setdefault(token.form, []).append(token.position)
    assert analyzer.positions(text) == found


@given(st.text(alphabet=st.characters(max_codepoint=0x24F)), st.sampled_from(["none", "german", "french"]))
def test_a_text_without_its_accents_has_the_same_terms(text: str, language: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    assert terms(decomposed, language) == terms(unicodedata.normalize("NFC", text), language)


def test_identity_names_what_decides_the_terms() -> None:
    identity = Analyzer("english", ("the",)).identity
    assert all(part in identity for part in ("regex ", "pystemmer ", "Unicode ", "english", "the"))
    assert identity != Analyzer("english").identity != Analyzer("german").identity

"""Scores equal those of BM25 from scratch, by code that shares nothing with ours but the options."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_views.search import IndexOptions, Query
from cdc_views.search.snippets import snippet
from tests.samples import sample
from tests.unit.search.memory_index import MemoryIndex

WORDS = ["ada", "bob", "cat", "cats", "catalog", "dogs"]
WEIGHTS = {"title": 2.5, "body": 1.0}
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
documents = st.lists(st.fixed_dictionaries({"title": st.one_of(st.none(), texts), "body": texts}), max_size=12)


# A sign, a column, and a word, a prefix or a phrase.
CLAUSE = re.compile(r'([+-]?)(title:|body:|)(?:"([^"]*)"|(\S+))')


def occurrences(words: Sequence[str], phrase: str, word: str, stem: Callable[[str], str]) -> int:
    """How often a text has a phrase, a word, or words with a prefix."""
    if word.endswith("*"):
        return sum(each.startswith(word[:-1]) for each in words)
    wanted = [stem(each) for each in (phrase or word).split()]
    return sum([stem(each) for each in words[place : place + len(wanted)]] == wanted for place in range(len(words)))


def bm25(
    corpus: Sequence[Mapping[str, str | None]], query: str, k1: float, b: float, stem: Callable[[str], str]
) -> list[tuple[float, int]]:
    """The score and number of each document that matches a query, from the definition in bm25.py."""
    scores: dict[int, float] = {}
    refused: set[int] = set()
    for sign, column, phrase, word in CLAUSE.findall(query):
        having: set[int] = set()
        for field in [column[:-1]] if column else WEIGHTS:
            split = [(document[field] or "").split() for document in corpus]
            with_terms = [words for words in split if words]
            counts = [occurrences(words, phrase, word, stem) for words in split]
            n = sum(count > 0 for count in counts)
            if not n:
                continue
            having |= {number for number, count in enumerate(counts) if count}
            mean = sum(map(len, with_terms)) / len(with_terms)
            idf = math.log(1 + (len(with_terms) - n + 0.5) / (n + 0.5))
            for number, (words, count) in enumerate(zip(split, counts, strict=True)):
                if count and sign != "-":
                    tf = count * (k1 + 1) / (count + k1 * (1 - b + b * len(words) / mean))
                    scores[number] = scores.get(number, 0.0) + WEIGHTS[field] * idf * tf
        refused |= {"-": having, "+": set(range(len(corpus))) - having, "": set()}[sign]
    return sorted((-score, number) for number, score in scores.items() if number not in refused)


parts = st.one_of(
    st.sampled_from([*WORDS, "cat*", "cats*", "zebra"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(lambda words: f'"{" ".join(words)}"'),
)
columns = st.sampled_from(["", "", "title:", "body:"])
wanted_clauses = st.tuples(st.sampled_from(["", "", "+"]), columns, parts).map("".join)
excluded_clauses = st.tuples(st.just("-"), columns, parts).map("".join)


@settings(max_examples=sample(60, 300), deadline=None)
@given(documents, st.lists(wanted_clauses, min_size=1, max_size=3), st.lists(excluded_clauses, max_size=1), st.data(),
       st.sampled_from([(1.2, 0.75), (0.0, 0.0), (2.0, 1.0)]), st.sampled_from(["none", "english"]))  # fmt: skip
def test_scores_and_ranking_equal_bm25_from_scratch(
    corpus: list[dict[str, str | None]], wanted: list[str], excluded: list[str], data: st.DataObject,
    parameters: tuple[float, float], language: str,
) -> None:  # fmt: skip
    k1, b = parameters
    query = " ".join(data.draw(st.permutations([*wanted, *excluded])))
    index = MemoryIndex(
        IndexOptions("id", WEIGHTS, language, k1=k1, b=b),
        [{"id": number, **each} for number, each in enumerate(corpus)],
    )
    found = index.answer(query)
    ranked = found.best(len(corpus))
    stem = str if language == "none" else Stemmer.Stemmer(language).stemWord
    expected = bm25(corpus, query, k1, b, stem)
    scores = {found.documents[number].as_py(): found.scores[number] for number in ranked}
    assert scores == pytest.approx({number: -score for score, number in expected}, rel=1e-12)
    assert [found.scores[number] for number in ranked] == sorted(scores.values(), reverse=True)
    for number in ranked:
        assert sum(part.score for part in found.explain(number)) == pytest.approx(found.scores[number], rel=1e-12)


@settings(max_examples=sample(40, 200), deadline=None)
@given(documents, st.lists(wanted_clauses, min_size=1, max_size=3), st.lists(excluded_clauses, max_size=1),
       st.sampled_from(["none", "english"]))  # fmt: skip
def test_column_of_a_hit_has_a_snippet_exactly_if_it_adds_to_the_score(
    corpus: list[dict[str, str | None]], wanted: list[str], excluded: list[str], language: str
) -> None:
    options = IndexOptions("id", WEIGHTS, language)
    text = " ".join([*wanted, *excluded])
    query = Query.parse(text, options)
    found = MemoryIndex(options, [{"id": number, **each} for number, each in enumerate(corpus)]).answer(text)
    for number in found.best(len(corpus)):
        document = corpus[found.documents[number].as_py()]
        shown = {field for field in WEIGHTS if snippet(document[field] or "", field, query, options.analyzer)}
        assert shown == {part.field for part in found.explain(number)}


def test_best_takes_equal_scores_by_key() -> None:
    index = MemoryIndex(
        IndexOptions("id", WEIGHTS), [{"id": number, "title": None, "body": "cat"} for number in (5, 3, 9, 1)]
    )
    found = index.answer("cat")
    assert [found.documents[number].as_py() for number in found.best(2)] == [1, 3]

"""Scores equal those of BM25 from scratch, by code that shares nothing with ours but the options."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
import Stemmer
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_views.search import IndexOptions
from tests.samples import sample
from tests.unit.search.memory_index import MemoryIndex

WORDS = ["ada", "bob", "cat", "cats", "catalog", "dogs"]
WEIGHTS = {"title": 2.5, "body": 1.0}
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
documents = st.lists(st.fixed_dictionaries({"title": st.one_of(st.none(), texts), "body": texts}), max_size=12)


def bm25(
    corpus: Sequence[Mapping[str, str | None]], query: str, k1: float, b: float, stem: Callable[[str], str]
) -> list[tuple[float, int]]:
    """The score and number of each document with one of the words, from the definition in bm25.py."""
    scores: dict[int, float] = {}
    for word in query.split():
        for field, weight in WEIGHTS.items():
            split = [(document[field] or "").split() for document in corpus]
            with_terms = [words for words in split if words]
            counts = [sum(each.startswith(word[:-1]) if word[-1] == "*" else stem(each) == stem(word) for each in words)
                      for words in split]  # fmt: skip
            n = sum(count > 0 for count in counts)
            if not n:
                continue
            mean = sum(map(len, with_terms)) / len(with_terms)
            idf = math.log(1 + (len(with_terms) - n + 0.5) / (n + 0.5))
            for number, (words, count) in enumerate(zip(split, counts, strict=True)):
                if count:
                    tf = count * (k1 + 1) / (count + k1 * (1 - b + b * len(words) / mean))
                    scores[number] = scores.get(number, 0.0) + weight * idf * tf
    return sorted(((-score, number) for number, score in scores.items()))


@settings(max_examples=sample(40, 200))
@given(documents, st.lists(st.sampled_from([*WORDS, "cat*", "cats*", "zebra"]), min_size=1, max_size=3, unique=True),
       st.sampled_from([(1.2, 0.75), (0.0, 0.0), (2.0, 1.0)]), st.sampled_from(["none", "english"]))  # fmt: skip
def test_scores_and_ranking_equal_bm25_from_scratch(
    corpus: list[dict[str, str | None]], query: list[str], parameters: tuple[float, float], language: str
) -> None:
    k1, b = parameters
    index = MemoryIndex(
        IndexOptions("id", WEIGHTS, language, k1=k1, b=b),
        [{"id": number, **each} for number, each in enumerate(corpus)],
    )
    found = index.answer(" ".join(query))
    ranked = found.best(len(corpus))
    stem = str if language == "none" else Stemmer.Stemmer(language).stemWord
    wanted = bm25(corpus, " ".join(query), k1, b, stem)
    assert [found.documents[number].as_py() for number in ranked] == [number for _, number in wanted]
    assert [-found.scores[number] for number in ranked] == pytest.approx([score for score, _ in wanted], rel=1e-12)
    for number in ranked:
        assert sum(part.score for part in found.explain(number)) == pytest.approx(found.scores[number], rel=1e-12)


def test_best_takes_equal_scores_by_key() -> None:
    index = MemoryIndex(
        IndexOptions("id", WEIGHTS), [{"id": number, "title": None, "body": "cat"} for number in (5, 3, 9, 1)]
    )
    found = index.answer("cat")
    assert [found.documents[number].as_py() for number in found.best(2)] == [1, 3]

"""The query language: which documents match, and which queries are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_views.errors import BadSearch
from cdc_views.search import IndexOptions, Query
from cdc_views.search.snippets import LENGTH, snippet
from tests.unit.search.memory_index import MemoryIndex, index_of

OPTIONS = IndexOptions("id", {"title": 2.0, "body": 1.0}, stop_words=("the",))
DOCUMENTS = [
    {"id": 1, "title": "Rust and Delta", "body": "exactly once, all tables together"},
    {"id": 2, "title": "Postgres", "body": "rust belt; a delta of rivers. Once exactly"},
    {"id": 3, "title": None, "body": "posters of the sea; wi-fi"},
    {"id": 4, "title": "中文分词", "body": ""},
    {"id": 5, "title": "文中", "body": None},
]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("rust", {1, 2}),
        ("RÛST", {1, 2}),
        ("+rust +sea", set()),
        ("rust sea", {1, 2, 3}),
        ("+rust -belt", {1}),
        ("rust -title:rust", {2}),
        ("title:rust", {1}),
        ("body:Postgres", set()),
        ('"exactly once"', {1}),
        ('"once exactly"', {2}),
        ('title:"exactly once"', set()),
        ("post*", {2, 3}),
        ("title:post*", {2}),
        ("+post* +sea", {3}),
        ("rust -post*", {1}),
        ("rust +title:rust", {1}),
        ('rust sea -"exactly once"', {2, 3}),
        ('rust sea +"exactly once"', {1}),
        ('rust -title:"exactly once"', {1, 2}),
        ('rust -body:"exactly once"', {2}),
        ('rust -title:"rust and delta"', {2}),
        ("wi-fi", {3}),
        ('"of the sea"', {3}),  # the stop word stands for any word
        ('"of sea"', set()),
        ("中文", {4}),
        ("文", {4, 5}),
        ("the", set()),
        ("+the rust", {1, 2}),
        ("https://rust", set()),  # two words, and no column
        ("absent", set()),
        ("the-the", set()),  # two stop words
        ("rust, !", {1, 2}),
    ],
)
def test_query_matches(text: str, wanted: set[int]) -> None:
    assert set(MemoryIndex(OPTIONS, DOCUMENTS).found(text)) == wanted


def test_column_that_begins_with_an_underscore_is_one() -> None:
    [clause] = Query.parse("_title:rust", IndexOptions("id", {"_title": 1.0, "body": 1.0})).clauses
    assert clause.fields == ("_title",)


@pytest.mark.parametrize(
    ("column", "text", "shown"),
    [
        ("title", "once", None),
        ("body", "sci-fi film over wi-fi", "sci-fi film over **wi**-**fi**"),
        ("body", "once, exactly once", "once, **exactly** **once**"),
    ],
)
def test_snippet_marks_whole_phrases_only(column: str, text: str, shown: str | None) -> None:
    found = snippet(text, column, Query.parse('"exactly once" wi-fi', OPTIONS), OPTIONS.analyzer)
    assert (found and str(found)) == shown


@pytest.mark.parametrize(
    ("query", "text", "shown"),
    [
        ("runn*", "she is running, the runner ran", "she is **running**, the **runner** ran"),
        ("run", "she is running, the runner ran", "she is **running**, the runner ran"),
        ("cat -dog", "a cat and a dog", "a **cat** and a dog"),
        ('cat -"a dog"', "a cat and a dog", "a **cat** and a dog"),
        ("cat title:dog", "a cat and a dog", "a **cat** and a dog"),
        ("cat -title:cat", "a cat and a dog", "a **cat** and a dog"),
        ("+cat body:d*", "a cat and a dog", "a **cat** and a **dog**"),
        ("title:cat", "a cat and a dog", None),
    ],
)
def test_snippet_marks_what_the_query_wants_in_this_column(query: str, text: str, shown: str | None) -> None:
    options = replace(OPTIONS, language="english")
    found = snippet(text, "body", Query.parse(query, options), options.analyzer)
    assert (found and str(found)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"cat{' word' * 40}", f"**cat**{' word' * 31}…"),
        (f"{'word ' * 40}cat", f"…{'word ' * 6}**cat**"),
        (f"{'word ' * 40}cat{' word' * 40}", f"…{'word ' * 6}**cat**{' word' * 25}…"),
        (f"{'文' * 200}猫{'文' * 200}", f"…**猫**{'文' * 159}…"),
        (f"{'word ' * 31}cat", f"{'word ' * 31}**cat**"),
    ],
)
def test_snippet_of_a_long_text_has_marks_where_it_is_cut(text: str, shown: str) -> None:
    found = snippet(text, "body", Query.parse("cat 猫", OPTIONS), OPTIONS.analyzer)
    assert str(found) == shown


def test_snippet_of_a_word_that_is_longer_than_a_snippet_marks_its_beginning() -> None:
    word = "x" * 300
    found = snippet(f"{'a few words ' * 20}{word} and more", "body", Query.parse(word, OPTIONS), OPTIONS.analyzer)
    assert found is not None
    [marked] = [text for text, matches in found.pieces if matches]
    assert 100 < len(marked) <= LENGTH
    assert word.startswith(marked)


def test_snippet_of_many_matches_has_the_most_different_words() -> None:
    many = "cat " * 200_000
    found = snippet(f"{many} a cat and a dog {many}", "body", Query.parse("cat dog", OPTIONS), OPTIONS.analyzer)
    assert found is not None
    assert ("dog", True) in found.pieces


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the query has no word"),
        ("  ?! ", "the query has no word"),
        ('"! ?"', "the query has no word"),
        ("-rust", 'the query has only words with "-"'),
        ('rust "delta', "the phrase at character 6 has no closing quotation mark"),
        ("author:rust", 'unknown text column "author" at character 1'),
        ("rust *", '"*" at character 6 follows no word'),
        ("a-b*", '"*" at character 1 follows no word'),
        ("rust + delta", '"+" at character 6 has no word'),
        ("rust +-delta", '"+-delta" at character 6 has a sign that is not its first character'),
        ("rust title:-delta", '"title:-delta" at character 6 has a sign that is not its first character'),
        ("rust -title:", '"title:" at character 6 has no word'),
        ("title: rust", '"title:" at character 1 has no word'),
        (" ".join(f"w{number}" for number in range(70)), "the query has 70 words, wanted at most 64"),
        (f'rust* "{"a " * 64}"', "the query has 65 words, wanted at most 64"),
    ],
)
@pytest.mark.proves(
    wrong="A search query, its filter or its sort cannot be understood.",
    seen="`BadSearch`, with the place",
    do="Follow the hint: [search.md](search.md) has the query language.",
)
def test_malformed_query_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadSearch) as caught:
        Query.parse(text, OPTIONS)
    assert caught.value.message == problem
    assert caught.value.hint or "quotation" in problem or "at most" in problem


def test_phrase_counts_each_place() -> None:
    index = index_of("a b a b a", "a b", "b a a b c")
    [part] = index.answer('"a b"').explain(0)
    assert (part.frequency, part.matching_documents) == (2, 3)
    assert index.found('"a b a"') == [1]
    assert index.found('"a a"') == [3]


def test_prefix_is_compared_with_words_before_they_are_stemmed() -> None:
    index = index_of("she is running", "the runner ran", "happy", "a run", language="english", stop_words=("the",))
    assert set(index.found("runn*")) == {1, 2}
    assert set(index.found("run*")) == {1, 2, 4}
    assert (index.found("happy*"), index.found("happi*"), index.found("happi")) == ([3], [], [3])
    assert index.found("th*") == []
    assert index.found("=running") == index.found("running") == [4, 1]
    # A word counts once for the length of its text.
    assert (index.answer("happy").explain(0)[0].length, index.counts.by_field["body"]) == (1, (4, 8))


def test_prefix_counts_all_words_that_begin_so() -> None:
    index = index_of("post posts poster", "pos", "postal")
    found = index.answer("post*")
    parts = {found.documents[number].as_py(): found.explain(number)[0] for number in found.best(10)}
    assert {key: part.frequency for key, part in parts.items()} == {1: 3, 3: 1}
    assert parts[1].matching_documents == 2

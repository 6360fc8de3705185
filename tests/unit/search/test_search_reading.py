"""Searching a warehouse at one epoch, without an engine."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cdc_views
from cdc_views.errors import AnalyzerDiffers, BadPage, BadSearch, UnknownView, ViewFailed, WrongKind
from cdc_views.search import IndexOptions, postings_schema
from cdc_views.search.columns import Condition
from cdc_views.search.postings import ORDER, TOTALS_SCHEMA, IndexCounts, Indexer
from cdc_views.serve.kinds.search import index as search_tables
from cdc_views.store.warehouse import TableSpec
from tests.unit.published import BEGIN, ORDERS, Published

OPTIONS = IndexOptions("id", {"title": 2.0, "body": 1.0}, "english")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("title", pa.string()),
        ("body", pa.string()),
        ("author", pa.string()),
        ("created_at", pa.timestamp("us", tz="UTC")),
    ]
)
KIND = {"kind": "search_index", **OPTIONS.record()}
DOCUMENTS = TableSpec("posts", "views/posts/a", SCHEMA, ("id",), kind=KIND)
ANALYZER = {"analyzer": OPTIONS.analyzer.identity}
POSTINGS = TableSpec(
    "_cv_posts_postings",
    "internal_views/_cv_posts_postings/a",
    postings_schema(pa.int64()),
    ("document",),
    kind=ANALYZER,
    sorted_by=ORDER,
)
TOTALS = TableSpec("_cv_posts_totals", "internal_views/_cv_posts_totals/a", TOTALS_SCHEMA, ("field",))

Document = tuple[Any, ...]


class Posts:
    """A warehouse with a search index, whose tables are written as the engine writes them."""

    def __init__(
        self, root: Path, postings: TableSpec = POSTINGS, name: str = "posts", schema: pa.Schema = SCHEMA
    ) -> None:
        """`schema` has the columns of the documents, as SCHEMA and more."""
        self.published = Published(root)
        documents = dataclasses.replace(DOCUMENTS, schema=schema)
        self._specs = [
            dataclasses.replace(spec, name=spec.name.replace("posts", name)) for spec in (documents, postings, TOTALS)
        ]
        self._counts = IndexCounts()
        self._documents: dict[int, Document] = {}

    def put(self, documents: Sequence[Document] = (), gone: Sequence[int] = (), **statuses: str) -> None:
        indexer = Indexer(OPTIONS, pa.int64())
        replaced = [number for number in (*gone, *(each[0] for each in documents)) if number in self._documents]
        for number in replaced:
            self._counts.add(indexer.counted(_rows([self._documents.pop(number)])), -1)
        found = indexer.analysed(_rows(documents))
        self._counts.add(found.counts)
        self._documents |= {each[0]: each for each in documents}
        of_documents, of_postings, of_totals = self._specs
        self.published.write(of_documents, documents, [(number,) for number in gone])
        self.published.write(of_postings, _tuples(found.postings), [(number,) for number in replaced])
        self.published.write(of_totals, _tuples(self._counts.rows(OPTIONS)))
        self.published.publish(**statuses)


def _rows(documents: Sequence[Document]) -> pa.Table:
    """The columns of SCHEMA, which are the first ones."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=False)) for each in documents], SCHEMA)


def _tuples(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def at(minute: int) -> datetime:
    return BEGIN + timedelta(minutes=minute)


@pytest.fixture
def posts(tmp_path: Path) -> Posts:
    posts = Posts(tmp_path)
    posts.put(
        [
            (1, "Rust and Delta", "Exactly once: a cat, and dogs.", "ada", at(1)),
            (2, "Cats", "The dog sleeps.", "bob", at(2)),
            (3, None, "Nothing but a mouse", "ada", None),
        ]
    )
    return posts


def keys(result: cdc_views.SearchResult) -> list[Any]:
    return [hit.key for hit in result.hits]


def test_hit_has_its_document_and_what_matched(posts: Posts) -> None:
    result = cdc_views.open(posts.published.root).search("posts", "dog cat", explain=True)
    assert (keys(result), result.total, result.cursor, result.epoch) == ([2, 1], 2, None, 1)
    hit = result.hits[1]
    assert hit.document == {"id": 1, "title": "Rust and Delta", "body": "Exactly once: a cat, and dogs.",
                            "author": "ada", "created_at": at(1)}  # fmt: skip
    assert {name: str(each) for name, each in hit.snippets.items()} == {
        "body": "Exactly once: a **cat**, and **dogs**."
    }
    assert sum(part.score for part in hit.explanation) == pytest.approx(hit.score)


def test_a_document_that_changed_is_found_by_its_new_words(posts: Posts) -> None:
    wh = cdc_views.open(posts.published.root)
    assert keys(wh.search("posts", "mouse")) == [3]
    posts.put([(3, "Horse", "of course", "ada", None)], gone=[2])
    assert (keys(wh.search("posts", "mouse")), keys(wh.search("posts", "horse"))) == ([], [3])
    assert keys(wh.search("posts", "dog")) == [1]
    assert keys(wh.search("posts", "mouse dog", at=1)) == [3, 2, 1]  # the epoch before


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"author": "ada"}, {1, 3}),
        ({"author": None}, set()),
        ([("created_at", ">=", at(2))], {2}),
        ([("created_at", "=", None)], {3}),
        ([("created_at", "!=", None)], {1, 2}),
        ([("created_at", "<", None)], set()),
        ([("id", "!=", 2), ("author", "=", "ada")], {1, 3}),
        ([("id", "<", "3")], {1, 2}),
    ],
)
def test_filter_keeps_documents_that_meet_it(posts: Posts, given: Any, wanted: set[int]) -> None:
    result = cdc_views.open(posts.published.root).search("posts", "cat dog mouse", filter=given)
    assert (set(keys(result)), result.total) == (wanted, len(wanted))


@pytest.mark.parametrize(
    ("sort", "wanted"), [("created_at", [1, 2, 3]), ("-created_at", [2, 1, 3]), (["author", "-id"], [3, 1, 2])]
)
def test_sort_has_null_last(posts: Posts, sort: Any, wanted: list[int]) -> None:
    assert keys(cdc_views.open(posts.published.root).search("posts", "cat dog mouse", sort=sort)) == wanted


@pytest.mark.parametrize(("sort", "wanted"), [("rank", [2, 1, 3, 4]), ("-rank", [1, 2, 3, 4])])
def test_sort_has_nan_before_null(tmp_path: Path, sort: str, wanted: list[int]) -> None:
    posts = Posts(tmp_path, schema=SCHEMA.append(pa.field("rank", pa.float64())))
    ranks = [2.5, float("-inf"), float("nan"), None]
    posts.put([(number, "cat", None, "ada", None, rank) for number, rank in enumerate(ranks, 1)])
    assert keys(cdc_views.open(tmp_path).search("posts", "cat", sort=sort)) == wanted


@pytest.mark.parametrize("sort", [None, "created_at"])
def test_pages_are_of_one_epoch(posts: Posts, sort: str | None) -> None:
    wh = cdc_views.open(posts.published.root)
    whole = keys(wh.search("posts", "cat dog mouse", sort=sort))
    first = wh.search("posts", "cat dog mouse", limit=1, sort=sort)
    posts.put([(9, "cat dog mouse", "cat dog mouse", "zoe", at(0))], gone=[1])
    second = wh.search("posts", "cat dog mouse", limit=1, sort=sort, cursor=first.cursor)
    third = wh.search("posts", "cat dog mouse", limit=1, sort=sort, cursor=second.cursor)
    assert [*keys(first), *keys(second), *keys(third)] == whole
    assert (third.cursor, third.epoch) == (None, 1)


def test_next_page_is_asked_for_as_the_first_was(posts: Posts) -> None:
    wh = cdc_views.open(posts.published.root)
    first = wh.search("posts", "cat dog mouse", limit=1, max_age=timedelta(days=10_000))
    posts.put([(9, "cat dog mouse", "cat dog mouse", "zoe", at(0))])
    second = wh.search("posts", "cat dog mouse", limit=1, max_age=timedelta(days=10_000), cursor=first.cursor)
    assert second.epoch == first.epoch


@pytest.mark.proves(
    wrong="The cursor of a page is given with another query, index or epoch, or is not one of ours.",
    seen="`BadPage`",
    do="Give each page what the first one was given; or begin with the first page.",
)
def test_cursor_of_something_else_is_an_error(posts: Posts) -> None:
    wh = cdc_views.open(posts.published.root)
    cursor = wh.search("posts", "cat dog", limit=1).cursor
    for asked in (
        {"text": "cat"},
        {"text": "cat dog", "filter": {"author": "ada"}},
        {"text": "cat dog", "sort": "created_at"},
    ):
        with pytest.raises(BadPage, match="another index, query, filter or sort"):
            wh.search("posts", cursor=cursor, **asked)  # type: ignore[arg-type]
    for wrong in ("", "x", "bm90IGpzb24", "WzFd"):
        with pytest.raises(BadPage, match="was not returned by a search"):
            wh.search("posts", "cat dog", cursor=wrong)
    posts.put()
    with pytest.raises(BadPage, match="is of epoch 1, and epoch 2 is read"):
        wh.epoch().search("posts", "cat dog", cursor=cursor)
    with pytest.raises(BadPage, match="the limit is 0, wanted a whole number from 1 to 1000"):
        wh.search("posts", "cat", limit=0)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("author=ada", ("author", "=", "ada")),
        (" größe (cm) <= 5", ("größe (cm)", "<=", "5")),
        ("a.b!!=x", ("a.b!", "!=", "x")),
        ("title= ==", ("title", "=", "==")),
        ("title=", ("title", "=", "")),
    ],
)
def test_filter_as_text_names_any_column(text: str, wanted: tuple[str, str, str]) -> None:
    found = Condition.parse(text)
    assert (found.column, found.operator, found.value) == wanted


@pytest.mark.parametrize("text", ["title==cat", "n=>5", "n<>5", "n<==5", "n", "=5", " =5"])
def test_filter_as_text_with_another_comparison_is_refused(text: str) -> None:
    with pytest.raises(BadSearch, match="is no condition"):
        Condition.parse(text)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"filter": {"autor": "ada"}}, 'unknown column "autor"'),
        ({"filter": {"id": "x"}}, 'the value for column "id" cannot be read as int64'),
        ({"filter": [("id", "<", 1.5)]}, 'the value for column "id" cannot be read as int64'),
        ({"filter": {"id": True}}, 'the value for column "id" cannot be read as int64'),
        ({"filter": [("id", "~", 1)]}, 'unknown comparison "~"'),
        ({"sort": "-when"}, 'unknown column "when"'),
        ({"sort": [5]}, "found 5 to sort by, wanted a column"),
        ({"sort": 5}, "found 5 to sort by, wanted a column"),
        ({"filter": "author=ada"}, "found 'author=ada' in a filter, wanted column, comparison and value"),
        ({"filter": ["author=ada"]}, "found 'author=ada' in a filter, wanted column, comparison and value"),
        ({"filter": [("a", ["="], 1)]}, "found ('a', ['='], 1) in a filter, wanted column, comparison and value"),
    ],
)
def test_filter_or_sort_that_is_wrong_is_refused(posts: Posts, given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadSearch) as caught:
        cdc_views.open(posts.published.root).search("posts", "cat", **given)
    assert caught.value.message == problem
    with pytest.raises(BadSearch, match=re.escape(problem)):
        cdc_views.open(posts.published.root).search("posts", "absent", **given)


@pytest.mark.proves(
    wrong="A search has a prefix that very many words of the documents begin with, such as `a*`.",
    seen="`BadSearch`",
    do="Write more of the word.",
)
def test_prefix_with_too_many_postings_is_refused(posts: Posts, monkeypatch: pytest.MonkeyPatch) -> None:
    wh = cdc_views.open(posts.published.root)
    monkeypatch.setattr(search_tables, "MOST_OF_PREFIX", 2)
    assert keys(wh.search("posts", "cat*")) == [2, 1]
    with pytest.raises(BadSearch, match="begin with a prefix of the query have more than 2 postings"):
        wh.search("posts", "d*")  # delta, and dog and dogs in two bodies


def test_view_that_is_no_index_is_refused(posts: Posts) -> None:
    posts.published.write(ORDERS, [(1, "a")])
    posts.put()
    with pytest.raises(WrongKind, match='is of kind "sql", wanted "search_index"'):
        cdc_views.open(posts.published.root).search("public.orders", "cat")
    with pytest.raises(UnknownView):
        cdc_views.open(posts.published.root).search("absent", "cat")


def test_index_whose_postings_have_failed_is_not_read(posts: Posts) -> None:
    posts.put(_cv_posts_postings="failed")
    with pytest.raises(ViewFailed, match='the postings of search index "posts" have failed'):
        cdc_views.open(posts.published.root).search("posts", "cat")


@pytest.mark.proves(
    wrong="A search index was made with other versions of Python or of the libraries that make terms of a text.",
    seen="`AnalyzerDiffers`, with both",
    do="Search with the versions that the engine has. An engine with other versions builds the index again.",
)
def test_index_of_another_analyzer_is_not_read(tmp_path: Path) -> None:
    posts = Posts(tmp_path, dataclasses.replace(POSTINGS, kind={"analyzer": "words 0"}))
    posts.put([(1, "cat", None, None, datetime(2026, 1, 1, tzinfo=UTC))])
    with pytest.raises(AnalyzerDiffers, match='was made by the analyzer "words 0"'):
        cdc_views.open(tmp_path).search("posts", "cat")

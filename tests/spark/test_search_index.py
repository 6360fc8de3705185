"""Search indexes follow random histories: their tables equal those of an index from scratch, at every epoch."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.views.search import postings as search_index
from cdc_views.search import IndexOptions
from cdc_views.search.analyzer import Analyzer
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import RowsChanged
from cdc_views.testing import Change, Delete, Insert, Update, ViewChanges, ViewHarness
from tests.rebuilt import rebuilt, swap_in
from tests.seed import drawn

TABLES = """
CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE posts (id bigint PRIMARY KEY, author_id bigint, title text, body text, likes int);
"""
INDEX = """
CREATE MATERIALIZED VIEW post_search
WITH (kind = 'search_index', key = 'post_id', text = 'title^2, body, author', language = 'english', stop_words = 'the')
AS SELECT p.id AS post_id, p.title, p.body, u.name AS author, p.likes
FROM posts p LEFT JOIN users u ON u.id = p.author_id
"""
WORDS = ["the", "cat", "Cats", "dog", "été", "running", "中文", "wi-fi"]

Posting = tuple[str, str, object, int, int, tuple[int, ...]]


def from_scratch(
    options: IndexOptions, documents: list[dict[str, object]]
) -> tuple[set[Posting], set[tuple[str, int, int]]]:
    """Postings and totals of documents, computed the simplest way. It shares the analyzer with the engine."""
    analyzer = Analyzer(options.language, options.stop_words)
    postings, totals = set(), {("*", len(documents), 0)}
    for field in options.fields:
        lengths = []
        for document in documents:
            tokens = analyzer.tokens(str(document[field] or ""))
            lengths.append(len(tokens))
            for term in {term for token in tokens for term in (token.term, token.form)}:
                places = tuple(token.position for token in tokens if term in (token.term, token.form))
                postings.add((term, field, document[options.key], len(places), len(tokens), places))
        totals.add((field, sum(length > 0 for length in lengths), sum(lengths)))
    totals = {(field, count, length or sum(each[2] for each in totals)) if field == "*" else (field, count, length)
              for field, count, length in totals}  # fmt: skip
    return postings, totals


def stored(h: ViewHarness, name: str) -> pa.Table:
    [*_, published] = (record for record in h.records if record.published_at is not None)
    table = published.tables[name]
    assert table.status == "live", published.detail
    return read_table(h.warehouse, table.path, table.version)


def require_exact(h: ViewHarness) -> None:
    """The documents equal the SELECT, and the index is that of the documents."""
    h.verify()
    options = IndexOptions.of_record(h._tables.specs["post_search"].kind)
    postings, totals = from_scratch(options, stored(h, "post_search").to_pylist())
    rows = [tuple(row.values()) for row in stored(h, "_cv_post_search_postings").to_pylist()]
    found = [(*row[:-1], tuple(row[-1])) for row in rows]
    assert sorted(found) == sorted(postings)
    assert {tuple(row.values()) for row in stored(h, "_cv_post_search_totals").to_pylist()} == totals


class History:
    """Random changes of users and posts."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._posts: set[int] = set()

    def transaction(self) -> list[Change]:
        return [change for _ in range(self._random.randint(1, 4)) for change in [self._change()]]

    def _text(self) -> str | None:
        words = self._random.choices(WORDS, k=self._random.randint(0, 6))
        return " ".join(words) if self._random.random() > 0.1 else None

    def _change(self) -> Change:
        chosen, number = self._random.random(), self._random.randint(1, 12)
        if chosen < 0.15:
            return Update("users", {"id": self._random.randint(1, 3)}, {"name": self._text() or ""})
        if number not in self._posts:
            self._posts.add(number)
            author = self._random.choice([None, 1, 2, 3, 9])
            row = {"id": number, "author_id": author, "title": self._text(), "body": self._text(), "likes": 0}
            return Insert("posts", row)
        if chosen < 0.35:
            self._posts.remove(number)
            return Delete("posts", {"id": number})
        if chosen < 0.45:
            return Update("posts", {"id": number}, {"likes": self._random.randint(1, 100)})
        if chosen < 0.55 and (free := [each for each in range(1, 13) if each not in self._posts]):
            self._posts ^= {number, free[0]}
            return Update("posts", {"id": number}, {"id": free[0]})
        return Update("posts", {"id": number}, {self._random.choice(["title", "body"]): self._text()})


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(TABLES, spark) as harness:
        harness.apply([Insert("users", {"id": number, "name": f"user {number}"}) for number in (1, 2, 3)])
        yield harness


@pytest.mark.parametrize("seed", drawn(1, range(2)))
def test_index_equals_one_from_scratch_after_every_epoch(h: ViewHarness, seed: int) -> None:
    history = History(seed)
    h.apply(history.transaction())
    h.create_view(INDEX)
    for _ in range(12):
        h.apply_transactions([history.transaction() for _ in range(2)])
        require_exact(h)
    ways = [record.detail.get("ways", {}).get("view", {}).get("_cv_post_search_postings") for record in h.records]
    assert [way for way in ways if way] == ["full", *["add"] * (len(list(filter(None, ways))) - 1)]


CRASHES = [
    ("views.after_first_commit", 1),  # the documents
    ("views.after_first_commit", 2),  # the postings
    ("views.after_first_commit", 3),  # the totals
    ("bulk.after_files", 1),
    ("epoch.before_publish", 1),
]


@pytest.mark.parametrize(("point", "times"), drawn(2, CRASHES))
def test_epoch_that_is_repeated_changes_the_index_once(h: ViewHarness, point: str, times: int) -> None:
    h.create_view(INDEX)
    history = History(7)
    for _ in range(3):
        h.apply(history.transaction())
    with h.crash_at(point, times=times):
        h.apply([Insert("posts", {"id": 100, "author_id": 1, "title": "cats", "body": "dog", "likes": 0}),
                 Update("users", {"id": 1}, {"name": "running dog"})])  # fmt: skip
    h.restart()
    require_exact(h)
    h.apply(history.transaction())
    require_exact(h)


def test_all_documents_in_small_files_give_the_same_index(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_index, "POSTINGS_PER_FILE", 1)
    monkeypatch.setattr("cdc_views.search.postings._BATCH_DOCUMENTS", 3)
    rows = [{"id": number, "author_id": 1, "title": "cats", "body": "a dog", "likes": 0} for number in range(20)]
    h.apply([Insert("posts", row) for row in rows])
    h.create_view(INDEX)
    h.rows("post_search")
    require_exact(h)
    assert stored(h, "_cv_post_search_postings").num_rows > 20


def test_index_that_forgets_a_removed_document_is_noticed(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    h.create_view(INDEX)
    h.apply([Insert("posts", {"id": 1, "author_id": 1, "title": "cats", "body": "dog", "likes": 0})])
    require_exact(h)
    right = search_index._postings

    def forgetting(work: search_index.SearchWork, delta: RowsChanged) -> object:
        return right(work, RowsChanged(delta.old.slice(0, 0), delta.new))

    monkeypatch.setattr(search_index, "_postings", forgetting)
    h.apply([Update("posts", {"id": 1}, {"title": "dogs"})])
    with pytest.raises(AssertionError):
        require_exact(h)


def test_rebuilt_documents_are_swapped_in_with_their_index(h: ViewHarness, spark: SparkSession) -> None:
    h.create_view(INDEX)
    history = History(3)
    for _ in range(3):
        h.apply(history.transaction())
    swap_in(h, rebuilt(h, spark, {"post_search"}))
    require_exact(h)
    h.apply(history.transaction())
    require_exact(h)


@pytest.mark.parametrize("part", ["postings", "totals"])
def test_table_of_an_index_that_is_lost_is_built_again(h: ViewHarness, part: str) -> None:
    h.create_view(INDEX)
    history = History(5)
    for _ in range(3):
        h.apply(history.transaction())
    published = [record for record in h.records if record.published_at is not None][-1]
    shutil.rmtree(h.warehouse / published.tables[f"_cv_post_search_{part}"].path)
    h.apply(history.transaction())
    assert h.rows("post_search") is not None  # the documents go on
    h.apply(history.transaction())
    require_exact(h)


@pytest.mark.parametrize(
    ("part", "broken"), [("postings", ("_postings", "_all_postings")), ("totals", ("_changed_totals",))]
)
def test_table_of_an_index_that_failed_is_made_by_an_epoch_that_changes_no_document(
    h: ViewHarness, monkeypatch: pytest.MonkeyPatch, part: str, broken: tuple[str, ...]
) -> None:
    h.create_view(INDEX)
    h.apply([Insert("posts", {"id": 1, "author_id": 1, "title": "cats", "body": "dog", "likes": 0})])
    with monkeypatch.context() as patch:
        for function in broken:
            patch.setattr(search_index, function, None)
        h.apply([Update("posts", {"id": 1}, {"title": "dogs"})])
    name = f"_cv_post_search_{part}"
    assert h.records[-1].tables[name].status == "failed"
    h.apply([Insert("users", {"id": 9, "name": "nobody"})])
    assert h.changes("post_search") == ViewChanges([], [])
    require_exact(h)

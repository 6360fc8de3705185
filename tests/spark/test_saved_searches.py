"""Saved searches follow random histories: at every epoch each query has the documents that it matches."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.building import Beside
from cdc_views.engine.views.saved import matches
from cdc_views.engine.views.saved.matches import SavedWork
from cdc_views.errors import BadView, UnequalRows
from cdc_views.store.control import ControlRecord
from cdc_views.store.warehouse import RowsChanged
from cdc_views.testing import Change, Delete, Insert, Update, ViewHarness
from tests.building import build_any_size, without_thread
from tests.rebuilt import rebuilt, swap_in
from tests.seed import drawn

TABLES = """
CREATE TABLE users (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE posts (id bigint PRIMARY KEY, author_id bigint, title text, body text, likes int);
CREATE TABLE searches (id bigint PRIMARY KEY, owner text, query text, filter text);
"""
INDEX = """
CREATE MATERIALIZED VIEW post_search
WITH (kind = 'search_index', key = 'post_id', text = 'title^2, body, author', language = 'english', stop_words = 'the')
AS SELECT p.id AS post_id, p.title, p.body, u.name AS author, p.likes
FROM posts p LEFT JOIN users u ON u.id = p.author_id
"""
ALERTS = """
CREATE MATERIALIZED VIEW alerts
WITH (kind = 'saved_searches', index = 'post_search', document = 'post_id', query = 'query', filter = 'filter', strict)
AS SELECT id AS search_id, owner, query, filter FROM searches
"""
PER_OWNER = """
CREATE MATERIALIZED VIEW per_owner AS
SELECT owner, count(*) AS found, count(error) AS errors FROM alerts GROUP BY owner
"""
WORDS = ["the", "cat", "Cats", "dog", "été", "running", "中文", "wi-fi"]
QUERIES = ["cat", "cats dog", "+cat +dog", "+run -dog", "ca*", '"the cat dog"', "author:user", "-cat", '"dog', None,
           "title:run*", "wi-fi", "中文 ete", "the"]  # fmt: skip
FILTERS = [None, None, "likes>=2", "likes<50\npost_id>3", "likes=many"]


class History:
    """Random changes of users, posts and stored queries."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._known: dict[str, set[int]] = {"posts": set(), "searches": set()}

    def transaction(self) -> list[Change]:
        return [self._change() for _ in range(self._random.randint(1, 4))]

    def _change(self) -> Change:
        table, number = self._random.choice(["posts", "searches"]), self._random.randint(1, 9)
        if self._random.random() < 0.1:
            return Update("users", {"id": self._random.randint(1, 3)}, {"name": self._text() or ""})
        known = self._known[table]
        row = self._post() if table == "posts" else self._search()
        if number not in known:
            known.add(number)
            return Insert(table, {"id": number, **row})
        if self._random.random() < 0.2:
            known.remove(number)
            return Delete(table, {"id": number})
        column = self._random.choice(list(row))
        return Update(table, {"id": number}, {column: row[column]})

    def _post(self) -> dict[str, object]:
        author, likes = self._random.choice([None, 1, 2, 3]), self._random.choice([None, 1, 2, 99])
        return {"author_id": author, "title": self._text(), "body": self._text(), "likes": likes}

    def _search(self) -> dict[str, object]:
        query, conditions = self._random.choice(QUERIES), self._random.choice(FILTERS)
        return {"owner": self._random.choice(["ada", "bob"]), "query": query, "filter": conditions}

    def _text(self) -> str | None:
        words = self._random.choices(WORDS, k=self._random.randint(0, 5))
        return " ".join(words) if self._random.random() > 0.1 else None


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(TABLES, spark) as harness:
        harness.apply([Insert("users", {"id": number, "name": f"user {number}"}) for number in (1, 2, 3)])
        yield harness


def ways(h: ViewHarness) -> list[str]:
    """How the view was updated, epoch by epoch."""
    found = [record.detail.get("ways", {}).get("view", {}).get("alerts") for record in h.records]
    return [way for way in found if way]


def published(h: ViewHarness) -> ControlRecord:
    """The last epoch."""
    return [record for record in h.records if record.published_at is not None][-1]


def create(h: ViewHarness) -> None:
    for view in (INDEX, ALERTS, PER_OWNER):
        h.create_view(view)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.nightly)])
def test_view_equals_all_queries_on_all_documents_after_every_epoch(h: ViewHarness, seed: int) -> None:
    history = History(seed)
    h.apply(history.transaction())
    create(h)
    for cut in random.Random(seed).choices([1, 2, 5], k=8):
        h.apply_transactions([history.transaction() for _ in range(cut)])
        h.verify()
    assert ways(h)[0] == "full"
    assert set(ways(h)[1:]) == {"keys"}
    assert len(h.rows("alerts")) > 3


CRASHES = [
    ("views.after_first_commit", 1),  # the documents
    ("views.after_first_commit", 2),  # the matches
    ("views.after_first_commit", 4),  # the postings
    ("epoch.before_publish", 1),
]


@pytest.mark.parametrize(("point", "times"), drawn(2, CRASHES))
def test_epoch_that_is_repeated_changes_the_matches_once(h: ViewHarness, point: str, times: int) -> None:
    create(h)
    history = History(7)
    for _ in range(3):
        h.apply(history.transaction())
    with h.crash_at(point, times=times):
        h.apply([Insert("posts", {"id": 100, "author_id": 1, "title": "cats", "body": "dog", "likes": 2}),
                 Insert("searches", {"id": 100, "owner": "eve", "query": "cat dog", "filter": None}),
                 Update("users", {"id": 1}, {"name": "running dog"})])  # fmt: skip
    h.restart()
    h.verify()
    assert (100, "eve", 100, None) in h.rows("alerts")
    h.apply(history.transaction())
    h.verify()


@pytest.mark.nightly
def test_without_the_driver_all_documents_are_matched(spark: SparkSession) -> None:
    with ViewHarness(TABLES, spark, allow_direct=False) as harness:
        posts = [{"id": number, "title": title} for number, title in enumerate(["a cat", "dogs", "cats"])]
        searches = [{"id": number, "owner": "ada", "query": query} for number, query in enumerate(["cat", "-cat"])]
        harness.apply([Insert("posts", row) for row in posts])
        harness.create_view(INDEX)
        harness.create_view(ALERTS)
        harness.apply([*(Insert("searches", row) for row in searches), Delete("posts", {"id": 2})])
        harness.verify()
        assert len(harness.rows("alerts")) == 2
        assert set(ways(harness)) == {"full"}


def test_view_that_forgets_a_changed_query_is_noticed(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    create(h)
    h.apply([Insert("posts", {"id": 1, "author_id": 1, "title": "cats", "body": "dog", "likes": 0}),
             Insert("searches", {"id": 1, "owner": "ada", "query": "cat", "filter": None})])  # fmt: skip
    h.verify()
    right = matches._delta

    def forgetting(work: SavedWork, versions: object, columns: object) -> RowsChanged:
        found = right(work, versions, columns)  # type: ignore[arg-type]
        return RowsChanged(found.old, found.new.slice(0, 0)) if "query" in found.new.column_names else found

    monkeypatch.setattr(matches, "_delta", forgetting)
    h.apply([Update("searches", {"id": 1}, {"query": "dog"})])
    with pytest.raises(UnequalRows, match='view "alerts"'):
        h.verify()


def test_changes_of_a_view_are_the_new_and_the_lost_matches(h: ViewHarness) -> None:
    create(h)
    h.apply([Insert("posts", {"id": 1, "author_id": 1, "title": "cats", "body": "dog", "likes": 0}),
             Insert("searches", {"id": 1, "owner": "ada", "query": "cat", "filter": None})])  # fmt: skip
    h.apply([Insert("posts", {"id": 2, "author_id": 1, "title": "a cat", "body": None, "likes": 0}),
             Update("posts", {"id": 1}, {"title": "birds"})])  # fmt: skip
    found = h.changes("alerts")
    assert (found.inserted, found.deleted) == ([(1, "ada", 2, None)], [(1, "ada", 1, None)])
    h.apply([Update("searches", {"id": 1}, {"query": '"cat'})])
    found = h.changes("alerts")
    problem = "the phrase at character 1 has no closing quotation mark"
    assert (found.inserted, found.deleted) == ([(1, "ada", None, problem)], [(1, "ada", 2, None)])
    assert h.rows("per_owner") == [("ada", 1, 1)]


def test_postings_that_are_lost_stop_no_match(h: ViewHarness) -> None:
    create(h)
    history = History(5)
    for _ in range(3):
        h.apply(history.transaction())
    shutil.rmtree(h.warehouse / published(h).tables["_cv_post_search_postings"].path)
    for _ in range(3):
        h.apply(history.transaction())
        h.verify()


def test_rebuilt_documents_and_matches_are_swapped_in(h: ViewHarness, spark: SparkSession) -> None:
    create(h)
    history = History(3)
    for _ in range(3):
        h.apply(history.transaction())
    swap_in(h, rebuilt(h, spark, {"post_search", "alerts", "per_owner"}))
    h.verify()
    h.apply(history.transaction())
    h.verify()


@pytest.mark.parametrize("live", [[], [INDEX]])
def test_view_that_is_built_beside_the_epochs_joins_them(
    h: ViewHarness, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, live: list[str]
) -> None:
    build_any_size(monkeypatch)
    history = History(9)
    for view in live:
        h.create_view(view)
    h.apply_transactions([history.transaction() for _ in range(5)])
    for view in (each for each in (INDEX, ALERTS) if each not in live):
        h.create_view(view)
    beside = without_thread(Beside(spark, h._tables, h._writer.views))
    beside.begin(next(record for record in reversed(h.records) if record.kind == "takeover"))
    [build] = beside._builds.values()
    for _ in range(3):
        build.bring_to(published(h))
        h._log.write(h._source.commit(history.transaction()))
        h.run_epoch()
    assert "alerts" not in published(h).tables
    beside._ended = {0: None}
    with h._writing():
        beside.join()
    for _ in range(2):
        h.apply(history.transaction())
        h.verify()
    assert set(ways(h)) <= {"keys"}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("'post_search'", "'per_user'", 'view "per_user" is not a view of kind "search_index"'),
        ("'post_id'", "'likes'", "stored queries need a key"),
        ("query = 'query'", "query = 'search_id'", "stored queries need a key"),
        ("query = 'query'", "query = 'likes'", 'option "query": the view has no column "likes"'),
    ],
)
def test_view_without_an_index_is_refused(h: ViewHarness, old: str, new: str, problem: str) -> None:
    h.create_view(INDEX)
    h.create_view("CREATE MATERIALIZED VIEW per_user AS SELECT id AS post_id, name FROM users")
    with pytest.raises(BadView) as caught:
        h.create_view(ALERTS.replace(old, new))
    assert problem.removeprefix("view ") in caught.value.message

"""A view of kind `timeline` after each change that a user can make, read as a user reads it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

import cdc_views
from cdc_views.errors import BadView
from cdc_views.testing import Delete, Insert, Update, ViewHarness

DDL: Final = (
    "CREATE TABLE users (id bigint PRIMARY KEY, name text)",
    "CREATE TABLE follows (follower_id bigint, followee_id bigint, muted boolean, PRIMARY KEY (follower_id, "
    "followee_id))",
    "CREATE TABLE posts (id bigint PRIMARY KEY, author_id bigint, body text, created_at timestamptz)",
)
LIMIT: Final = 3
MERGED: Final = ("patch", "keys+patch")
"""The ways of PATCH: without or with partitions that were computed again."""
VIEW: Final = f"""
CREATE MATERIALIZED VIEW home WITH (kind = 'timeline', owner = 'user_id', order = 'created_at DESC, post_id DESC',
                                    limit = {LIMIT}) AS
SELECT f.follower_id AS user_id, p.id AS post_id, a.name AS author, p.body, p.created_at, p.author_id
FROM follows f JOIN posts p ON p.author_id = f.followee_id JOIN users a ON a.id = p.author_id
WHERE NOT f.muted
"""


class Feed:
    """A reader who follows an author with four posts, and a stranger with one; the view is the same for all tests."""

    numbers = count(1)

    def __init__(self, harness: ViewHarness) -> None:
        self.h = harness
        self.reader, self.author, self.stranger = (next(self.numbers) for _ in range(3))
        self.posts = [next(self.numbers) for _ in range(4)]
        self.strange = next(self.numbers)
        names = [Insert("users", {"id": user, "name": f"n{user}"}) for user in (self.author, self.stranger)]
        posts = [self.post(post, self.author) for post in self.posts]
        self.h.apply([*names, *posts, self.post(self.strange, self.stranger), self.follow(self.author)])

    def post(self, number: int, author: int) -> Insert:
        at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
        return Insert("posts", {"id": number, "author_id": author, "body": "text", "created_at": at})

    def follow(self, whom: int) -> Insert:
        return Insert("follows", {"follower_id": self.reader, "followee_id": whom, "muted": False})

    def unfollow(self, whom: int) -> Delete:
        return Delete("follows", {"follower_id": self.reader, "followee_id": whom})

    def mute(self, whom: int, muted: bool) -> Update:
        return Update("follows", {"follower_id": self.reader, "followee_id": whom}, {"muted": muted})

    def entries(self, *ways: str) -> list[dict[str, Any]]:
        """The reader's timeline, page by page, after the view was compared with its SQL from scratch.

        With `ways`, the last epoch has updated the view in one of these.
        """
        self.h.verify()
        if ways:
            assert self.h.records[-1].detail["ways"]["view"]["home"] in ways
        found: list[dict[str, Any]] = []
        wh, before = cdc_views.open(self.h.warehouse), None
        while True:
            page = wh.timeline("home", self.reader, limit=2, before=before)
            found += page.entries
            if (before := page.cursor) is None:
                return found

    def seen(self, *ways: str) -> list[object]:
        return [entry["post_id"] for entry in self.entries(*ways)]


@pytest.fixture(scope="module")
def harness(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(DDL, spark, partitions=1) as h:
        assert h.create_view(VIEW).strategy == "PATCH"
        yield h


@pytest.fixture
def feed(harness: ViewHarness) -> Feed:
    return Feed(harness)


def test_timeline_has_the_newest_entries_first(feed: Feed) -> None:
    assert feed.seen() == feed.posts[:0:-1]


def test_timeline_after_a_post_begins_with_it(feed: Feed) -> None:
    post = next(feed.numbers)
    feed.h.apply([feed.post(post, feed.author)])
    assert feed.seen("patch") == [post, *feed.posts[:1:-1]]


def test_timeline_after_a_delete_gets_the_next_older_entry(feed: Feed) -> None:
    feed.h.apply([Delete("posts", {"id": feed.posts[-1]})])
    assert feed.seen(*MERGED) == feed.posts[2::-1]


def test_timeline_after_a_follow_has_the_posts_of_both(feed: Feed) -> None:
    feed.h.apply([feed.follow(feed.stranger)])
    assert feed.seen("patch") == [feed.strange, *feed.posts[:1:-1]]


def test_timeline_after_an_unfollow_has_none_of_their_posts(feed: Feed) -> None:
    feed.h.apply([feed.follow(feed.stranger)])
    feed.h.apply([feed.unfollow(feed.author)])
    assert feed.seen(*MERGED) == [feed.strange]
    feed.h.apply([feed.unfollow(feed.stranger)])
    assert feed.seen(*MERGED) == []


def test_timeline_after_a_mute_has_none_of_their_posts_until_it_is_undone(feed: Feed) -> None:
    feed.h.apply([feed.mute(feed.author, muted=True)])
    assert feed.seen(*MERGED) == []
    feed.h.apply([feed.mute(feed.author, muted=False)])
    assert feed.seen("patch") == feed.posts[:0:-1]


def test_timeline_after_an_edit_has_the_new_text(feed: Feed) -> None:
    feed.h.apply([Update("posts", {"id": feed.posts[-1]}, {"body": "edited"})])
    assert [entry["body"] for entry in feed.entries(*MERGED)] == ["edited", "text", "text"]


def test_timeline_after_an_edit_of_the_time_is_in_the_new_order(feed: Feed) -> None:
    feed.h.apply([Update("posts", {"id": feed.posts[0]}, {"created_at": datetime(2027, 1, 1, tzinfo=UTC)})])
    assert feed.seen(*MERGED) == [feed.posts[0], *feed.posts[:1:-1]]


def test_timeline_after_a_user_was_renamed_has_the_new_name(feed: Feed) -> None:
    feed.h.apply([Update("users", {"id": feed.author}, {"name": "ada"})])
    assert {entry["author"] for entry in feed.entries(*MERGED)} == {"ada"}


def test_timeline_after_the_row_of_an_author_was_deleted_has_none_of_their_posts_until_it_is_back(feed: Feed) -> None:
    feed.h.apply([Delete("users", {"id": feed.author})])
    assert feed.seen(*MERGED) == []
    feed.h.apply([Insert("users", {"id": feed.author, "name": "again"})])
    assert feed.seen("patch") == feed.posts[:0:-1]


def test_timeline_after_a_user_was_deleted_with_all_of_their_rows_has_none_of_their_posts(feed: Feed) -> None:
    feed.h.apply(
        [
            feed.follow(feed.stranger),
            *(Delete("posts", {"id": post}) for post in feed.posts),
            feed.unfollow(feed.author),
            Delete("users", {"id": feed.author}),
        ]
    )
    assert feed.seen(*MERGED) == [feed.strange]


def test_timeline_of_a_deleted_user_is_empty(feed: Feed) -> None:
    feed.h.apply([Insert("users", {"id": feed.reader, "name": "reader"})])
    feed.h.apply([feed.unfollow(feed.author), Delete("users", {"id": feed.reader})])
    assert feed.seen(*MERGED) == []


def test_page_at_the_epoch_of_the_first_has_the_entry_that_a_new_post_has_pushed_out(feed: Feed) -> None:
    wh = cdc_views.open(feed.h.warehouse)
    first = wh.timeline("home", feed.reader, limit=2)
    feed.h.apply([feed.post(next(feed.numbers), feed.author)])
    later = wh.timeline("home", feed.reader, limit=2, before=first.cursor)
    same = wh.timeline("home", feed.reader, limit=2, before=first.cursor, at=first.epoch)
    assert later.entries == []
    assert [entry["post_id"] for entry in same.entries] == [feed.posts[1]]


def test_timeline_whose_order_has_a_collation_is_refused(harness: ViewHarness) -> None:
    view = VIEW.replace("home", "collated", 1).replace("created_at DESC, post_id DESC", "body")
    view = view.replace("p.body,", "p.body COLLATE UTF8_LCASE AS body,")
    with pytest.raises(BadView, match="of type string collate UTF8_LCASE, wanted no collation"):
        harness.create_view(view)


def test_timeline_that_names_a_column_that_is_not_there_is_refused(harness: ViewHarness) -> None:
    star = "CREATE MATERIALIZED VIEW lost WITH (kind = timeline, owner = nobody, order = id) AS SELECT * FROM posts"
    with pytest.raises(BadView, match=r"^lost\.sql:1:\d+: .*nobody"):
        harness.create_view(star)

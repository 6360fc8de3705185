"""PATCH and ADD for groups with Spark: the demo's timeline and a count of its rows, over random histories."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Final

from pyspark.sql import SparkSession

import cdc_views.demo
from cdc_views.testing import Change, Delete, Insert, Update, ViewHarness
from tests.seed import SEED

DDL: Final = (
    "CREATE TABLE users (id bigint PRIMARY KEY, name text)",
    "CREATE TABLE follows (follower_id bigint, followee_id bigint, muted boolean, PRIMARY KEY (follower_id, "
    "followee_id))",
    "CREATE TABLE posts (id bigint PRIMARY KEY, author_id bigint, created_at timestamptz)",
)
TIMELINE: Final = (Path(cdc_views.demo.__file__).parent / "views" / "home_timeline.sql").read_text()
COUNTS: Final = (
    "CREATE MATERIALIZED VIEW counts AS SELECT f.follower_id, count(*) AS posts, sum(p.id) AS total FROM follows f "
    "JOIN posts p ON p.author_id = f.followee_id WHERE NOT f.muted GROUP BY f.follower_id"
)
USERS: Final = range(1, 5)
EPOCHS: Final = 8


class Feed:
    """Users who follow each other and post, and random changes of both."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.follows: set[tuple[int, int]] = set()
        self.posts: dict[int, int] = {}
        self.last = 0

    def begun(self) -> Iterator[Change]:
        for user in USERS:
            yield Insert("users", {"id": user, "name": f"n{user}"})
            yield from self.follow(user, user % len(USERS) + 1)
        for user in USERS:
            yield from self.post(user)
            yield from self.post(user)

    def changes(self) -> Iterator[Change]:
        user, other = self.chance.sample(USERS, 2)
        yield from self.post(user)
        kind = self.chance.choice(("follow", "unfollow", "mute", "delete", "move", "rename"))
        if kind == "follow":
            yield from self.follow(user, other)
        elif kind == "unfollow" and self.follows:
            follower, followee = self.chance.choice(sorted(self.follows))
            self.follows.remove((follower, followee))
            yield Delete("follows", {"follower_id": follower, "followee_id": followee})
        elif kind == "mute" and self.follows:
            follower, followee = self.chance.choice(sorted(self.follows))
            muted = self.chance.choice((True, False, None))
            yield Update("follows", {"follower_id": follower, "followee_id": followee}, {"muted": muted})
        elif kind == "delete":
            number = self.chance.choice(sorted(self.posts))
            del self.posts[number]
            yield Delete("posts", {"id": number})
        elif kind == "move":
            yield Update("posts", {"id": self.chance.choice(sorted(self.posts))}, {"created_at": self.time()})
        else:
            yield Update("users", {"id": user}, {"name": f"n{self.last}"})

    def follow(self, follower: int, followee: int) -> Iterator[Change]:
        if (follower, followee) not in self.follows:
            self.follows.add((follower, followee))
            yield Insert("follows", {"follower_id": follower, "followee_id": followee, "muted": False})

    def post(self, author: int) -> Iterator[Change]:
        self.last += 1
        self.posts[self.last] = author
        yield Insert("posts", {"id": self.last, "author_id": author, "created_at": self.time()})

    def time(self) -> datetime | None:
        minute = self.chance.choice((None, 0, *range(self.last)))
        return None if minute is None else datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)


def test_name_that_an_item_has_by_the_alias_of_another_follows_a_change(spark: SparkSession) -> None:
    sql = "SELECT follower_id, followee_id, u.name AS author, author AS again FROM follows f JOIN users u ON u.id = "
    with ViewHarness(DDL, spark, partitions=1) as h:
        top = "QUALIFY row_number() OVER (PARTITION BY follower_id ORDER BY followee_id) <= 2"
        assert h.create_view(f"CREATE MATERIALIZED VIEW v AS {sql} followee_id {top}").strategy == "PATCH"
        h.apply(Feed(Random(SEED)).begun())
        h.apply([Update("users", {"id": 2}, {"name": "renamed"})])
        h.verify()
        assert [row[2:] for row in h.rows("v") if row[1] == 2] == [("renamed", "renamed")]


def test_timeline_and_counts_follow_random_changes_without_reading_groups(spark: SparkSession) -> None:
    feed, ways = Feed(Random(SEED)), list[dict[str, str]]()
    with ViewHarness(DDL, spark, partitions=1) as h:
        assert h.create_view(TIMELINE.replace("limit = 100", "limit = 3")).strategy == "PATCH"
        assert h.create_view(COUNTS).strategy == "ADD"
        h.apply(feed.begun())
        for _ in range(EPOCHS):
            h.apply(feed.changes())
            ways.append(h.records[-1].detail["ways"]["view"])
            h.verify()
        h.apply([*feed.post(2), *feed.follow(1, 2)])
        assert h.records[-1].detail["ways"]["view"] == {"home_timeline": "patch", "counts": "add"}, f"seed {SEED}"
        h.verify()
    assert {way["home_timeline"] for way in ways} <= {"patch", "keys+patch"}, f"seed {SEED}"
    assert {way.get("counts", "add") for way in ways} == {"add"}, f"seed {SEED}"

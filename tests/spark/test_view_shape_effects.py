"""What one change does to a view, in the shapes whose row in the list of shapes has a promise of its own.

What views cost at two sizes: test_view_costs.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from pyspark.sql import SparkSession

from cdc_views.testing import Change, Cost, Insert, Update, ViewChanges, ViewHarness
from tests.view_shapes import DDL, VIEWS
from tests.view_shapes.check import declare

BEGIN: Final = datetime(2026, 1, 1, tzinfo=UTC)
FOLLOWERS: Final = 3  # of author 1
OTHERS: Final = 20  # who follow author 2
POSTS: Final = 30  # of each author
HOT: Final = 40  # orders of user 1
SHAPES: Final = ("filter_project", "many_to_many", "top_k_per_group", "top_k_unranked", "group_sum_count")


def rows() -> Iterator[Change]:
    """Author 1 with some followers, author 2 with others, and a user with many orders."""
    for number in range(1, 4):
        yield Insert("users", {"id": number, "name": f"n{number}", "country": "NL", "manager_id": None})
    for follower in range(100, 100 + FOLLOWERS):
        yield Insert("follows", {"follower_id": follower, "followee_id": 1, "muted": False})
    for follower in range(200, 200 + OTHERS):
        yield Insert("follows", {"follower_id": follower, "followee_id": 2, "muted": False})
    for author in (1, 2):
        for number in range(POSTS):
            yield post(1000 * author + number, author, number)
    for number in range(1, HOT + 1):
        yield from order(number)


def post(number: int, author: int, day: int) -> Insert:
    at = BEGIN + timedelta(days=day)
    return Insert("posts", {"id": number, "author_id": author, "body": "b", "tags": [], "created_at": at})


def order(number: int) -> Iterator[Change]:
    yield Insert("orders", {"id": number, "user_id": 1, "status": "open", "ordered_at": BEGIN, "note": None})
    yield Insert("order_items", {"order_id": number, "line": 1, "product_id": 5, "quantity": 2, "unit_price": 3})


@pytest.fixture(scope="module")
def harness(spark: SparkSession) -> Iterator[ViewHarness]:
    """The shapes, and a view over one of them, with rows. Each test adds newer posts or other orders."""
    with ViewHarness(DDL, spark, partitions=1) as harness:
        declare(harness, (VIEWS[name] for name in SHAPES))
        harness.create_view(
            "CREATE MATERIALIZED VIEW names AS SELECT n, count(*) AS users FROM filter_project GROUP BY n"
        )
        harness.apply(rows())
        yield harness


def test_change_of_a_column_that_a_view_does_not_read_commits_nothing(harness: ViewHarness) -> None:
    harness.apply([Update("users", {"id": 1}, {"manager_id": 2})])
    assert (harness.changes("filter_project"), harness.cost("filter_project").commits) == (ViewChanges([], []), 0)


def test_view_over_a_view_that_did_not_change_is_not_touched(harness: ViewHarness) -> None:
    harness.apply([Update("users", {"id": 2}, {"manager_id": 1})])
    assert harness.cost("names") == Cost()
    harness.apply([Update("users", {"id": 2}, {"name": "other"})])  # the negative control
    assert harness.cost("names").commits == 1


def test_post_reaches_the_followers_of_its_author_only(harness: ViewHarness) -> None:
    harness.apply([post(5000, 1, 100)])
    inserted = [(follower, 1, 5000, "b") for follower in range(100, 100 + FOLLOWERS)]
    cost = harness.cost("many_to_many")
    assert sorted(harness.changes("many_to_many").inserted) == inserted
    assert (cost.rows_recomputed, cost.rows_written) == (FOLLOWERS, FOLLOWERS)
    assert cost.rows_found <= 3 * FOLLOWERS  # the post, its followers, and no other rows of these


def test_newest_post_takes_the_place_of_one_row_of_each_follower(harness: ViewHarness) -> None:
    harness.apply([post(6000, 1, 200)])
    changes, cost = harness.changes("top_k_unranked"), harness.cost("top_k_unranked")
    followers = list(range(100, 100 + FOLLOWERS))
    assert sorted(row[0] for row in changes.inserted) == sorted(row[0] for row in changes.deleted) == followers
    assert {row[1] for row in changes.inserted} == {6000}
    assert (cost.rows_written, cost.commits) == (FOLLOWERS, 1)


def test_order_of_a_hot_user_reads_none_of_the_others(harness: ViewHarness) -> None:
    harness.apply(order(HOT + 1))
    cost = harness.cost("group_sum_count")
    assert cost.rows_found <= 6  # the order and its item, twice, and the stored total
    assert (cost.rows_recomputed, cost.rows_written) == (1, 1)


def test_post_reads_none_of_the_older_ones_that_are_not_stored(harness: ViewHarness) -> None:
    harness.apply([post(7000, 1, 300)])
    cost = harness.cost("top_k_per_group")
    assert cost.rows_found <= 8 * FOLLOWERS  # of each: two stored rows, the rows behind these and behind the new one
    assert cost.rows_recomputed <= 3 * FOLLOWERS

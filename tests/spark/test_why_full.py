"""The record of an epoch says why a view was computed in full."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.views import choice
from cdc_views.store.control import PublishedDetail
from cdc_views.testing import Change, Delete, Insert, ViewHarness
from tests.full_only import recompute_in_full

DDL = ["CREATE TABLE t (id bigint PRIMARY KEY, n bigint)"]
ROWS = [Insert("t", {"id": number, "n": 10 * number}) for number in (1, 2, 3)]
LAST_GOES = [Delete("t", {"id": 3})]


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(DDL, spark, partitions=1) as harness:
        harness.apply(ROWS)
        yield harness


def why(h: ViewHarness) -> str | None:
    """Why the view "v" was computed in full in the last epoch."""
    return PublishedDetail.read(h.records[-1]).view_work["v"].why_full


def why_after(h: ViewHarness, sql: str, changes: list[Change]) -> str | None:
    """The same for an epoch with these changes, after the view was built."""
    h.create_view(f"CREATE MATERIALIZED VIEW v AS {sql}")
    h.run_epoch()
    assert why(h) in ("new view", "strategy")
    h.apply(changes)
    h.verify()
    return why(h)


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT id, rank() OVER (ORDER BY n) AS place FROM t", "strategy"),
        ("SELECT max(n) AS most FROM t", None),
        ("SELECT max(n + 1) AS most FROM t", "extreme removed"),
        ("SELECT id, n FROM t ORDER BY n DESC LIMIT 1", None),
        ("SELECT id, n FROM t ORDER BY n + 1 DESC LIMIT 1", "first row removed"),
        ("SELECT id FROM t WHERE n < (SELECT max(n) FROM t)", "subquery changed"),
        ("SELECT id, n FROM t", None),
        ("SELECT count(*) AS c, count(n) AS k, sum(n) AS total FROM t", None),
    ],
)
def test_reason_is_in_the_record(h: ViewHarness, sql: str, reason: str | None) -> None:
    assert why_after(h, sql, [*LAST_GOES]) == reason


def test_sum_of_which_no_count_says_that_it_has_values_is_a_reason(h: ViewHarness) -> None:
    changes: list[Change] = [Delete("t", {"id": number}) for number in (1, 2, 3)]
    assert why_after(h, "SELECT sum(n) AS total FROM t", changes) == "sum not known"


def test_view_that_is_new_says_so(h: ViewHarness) -> None:
    h.create_view("CREATE MATERIALIZED VIEW v AS SELECT id, n FROM t")
    h.run_epoch()
    assert why(h) == "new view"


def test_change_that_is_too_large_is_a_reason(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    recompute_in_full(monkeypatch)
    assert why_after(h, "SELECT id, n FROM t", [*LAST_GOES]) == "large change"


def test_error_of_another_strategy_is_a_reason(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(work: object) -> None:
        raise ValueError("in this test every strategy is broken")

    monkeypatch.setattr(choice, "keys", broken)
    assert why_after(h, "SELECT id, n FROM t", [*LAST_GOES]) == "error"

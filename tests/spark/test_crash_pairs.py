"""Pairs of crashes of an engine with views: one at a point, and one at a point of the start after it.

There is a view of each strategy but FULL, and an internal view. Every epoch must have what DuckDB makes of the
balances, and no view may be computed in full, which would prove nothing of the strategies.

Without views, and with upkeep: tests/faults/test_crash_pairs.py. All of them: `just crash-pairs`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from cdc_views.store.control import ControlRecord, PublishedDetail
from cdc_views.testing import POINTS, HandClock, ViewHarness, assert_equal
from tests.crash_pairs import crashes, pairs
from tests.spark.test_engine_recovery import EIGHT_DAYS_S, TABLES, Bank, State

PARTS = ("takeover", "epoch", "mirrors", "views", "recovery", "abandon")
REACHED = sorted(point for point in POINTS if point.split(".")[0] in PARTS)
SOME = 2
VIEWS = {
    "totals": "SELECT balance, count(*) AS n, sum(id) AS ids FROM accounts GROUP BY balance",
    "newest": "SELECT balance, id FROM (SELECT balance, id, row_number() OVER (PARTITION BY balance ORDER BY id DESC)"
    " AS place FROM accounts) AS ranked WHERE place <= 2",
    "saved": "SELECT m.balance, s.id, s.balance AS saved FROM (SELECT balance, max(id) AS id FROM accounts"
    " GROUP BY balance) AS m JOIN savings AS s ON s.id = m.id",
}
WAYS = {"totals": "add", "newest": "patch", "saved": "keys", "_cv_saved_1": "keys"}


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Bank]:
    """One for all pairs, each of which goes on where the last one has ended."""
    root = tmp_path_factory.mktemp("bank")
    with ViewHarness(TABLES, spark, warehouse=root, clock=HandClock()) as harness:
        for name, sql in VIEWS.items():
            harness.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        bank = Bank(harness, root)
        bank.transfer(random.Random(0))
        yield bank


@pairs(REACHED, SOME)
def test_third_start_after_two_crashes_is_right(bank: Bank, first: str, second: str) -> None:
    chance = random.Random(f"{first} {second}")
    before = len(bank.published())
    bank.harness.restart()
    bank.transfer(chance)
    for point in crashes(first, second):
        if point == "abandon.after_first_restore":
            assert isinstance(bank.harness.clock, HandClock)
            bank.harness.clock.advance(EIGHT_DAYS_S)
        with bank.harness.crash_at(point):
            bank.harness.restart()
            bank.transfer(chance)
    bank.harness.restart()
    bank.transfer(chance)
    bank.assert_every_epoch_is_right(since=before)
    published = bank.published()[before:]
    for record in published:
        for name, rows in answers(bank.states[str(record.position)]).items():
            assert_equal(bank.rows(record, name), rows, f"{name} of {record.epoch}")
    taken = ways(published)
    assert {name for name, way in WAYS.items() if way in taken[name]} == set(WAYS), taken
    assert not any({"full", "failed"} & found for found in taken.values()), taken


def answers(state: State) -> dict[str, list[tuple[Any, ...]]]:
    """What the views are of the balances of an epoch."""
    with duckdb.connect() as database:
        for name, rows in state.items():
            database.execute(f"CREATE TABLE {name} (id bigint, balance bigint)")
            if rows:
                database.executemany(f"INSERT INTO {name} VALUES (?, ?)", list(rows.items()))
        return {name: database.sql(sql).fetchall() for name, sql in VIEWS.items()}


def ways(published: Sequence[ControlRecord]) -> dict[str, set[str]]:
    """The ways in which the epochs have updated each view."""
    found: dict[str, set[str]] = {name: set() for name in WAYS}
    for record in published:
        for name, way in PublishedDetail.read(record).ways.get("view", {}).items():
            found[name].update(way.split("+"))
    return found

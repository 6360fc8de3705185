"""Pairs of crashes of an engine with views: one at a point, and one at a point of the start after it.

Without views, and with upkeep: tests/faults/test_crash_pairs.py. All of them: `just crash-pairs`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from cdc_views.testing import POINTS, HandClock, ViewHarness
from tests.crash_pairs import crashes, pairs
from tests.spark.test_engine_recovery import EIGHT_DAYS_S, TABLES, TOTAL, Bank

PARTS = ("takeover", "epoch", "mirrors", "views", "recovery", "abandon")
REACHED = sorted(point for point in POINTS if point.split(".")[0] in PARTS)
SOME = 6


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Bank]:
    """One for all pairs, each of which goes on where the last one has ended."""
    root = tmp_path_factory.mktemp("bank")
    with ViewHarness(TABLES, spark, warehouse=root, clock=HandClock()) as harness:
        harness.create_view(TOTAL)
        yield Bank(harness, root)


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

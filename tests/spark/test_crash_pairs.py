"""Pairs of crashes of an engine with views: one at a point, and one at a point of the start after it.

There are views of each strategy and of each kind, and an internal view. Every epoch must have what DuckDB makes of the
balances, and a search index of the texts. Only the view of FULL may be computed in full: that proves nothing of the
others.

Without views, and with upkeep: tests/faults/test_crash_pairs.py. All of them: `just crash-pairs`.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from cdc_views.search import IndexOptions
from cdc_views.store.control import ControlRecord, PublishedDetail
from cdc_views.testing import POINTS, HandClock, ViewHarness, assert_equal
from tests.crash_pairs import crashes, pairs
from tests.spark.test_engine_recovery import EIGHT_DAYS_S, TABLES, Bank, State
from tests.spark.test_search_index import from_scratch

PARTS = ("takeover", "epoch", "mirrors", "views", "recovery", "abandon")
REACHED = sorted(point for point in POINTS if point.split(".")[0] in PARTS)
SOME = 2


@dataclass(frozen=True)
class View:
    """A view: its SELECT, the way in which epochs must update it, its options, and its rows in the SQL of DuckDB."""

    sql: str
    way: str
    options: str = ""
    of_duckdb: str = ""

    def statement(self, name: str) -> str:
        """What declares it."""
        return f"CREATE MATERIALIZED VIEW {name}{f' WITH ({self.options})' if self.options else ''} AS {self.sql}"


VIEWS = {
    "totals": View("SELECT balance, count(*) AS n, sum(id) AS ids FROM accounts GROUP BY balance", "add"),
    "newest": View(
        "SELECT balance, id FROM (SELECT balance, id, row_number() OVER (PARTITION BY balance ORDER BY id DESC)"
        " AS place FROM accounts) AS ranked WHERE place <= 2",
        "patch",
    ),
    "saved": View(
        "SELECT m.balance, s.id, s.balance AS saved FROM (SELECT balance, max(id) AS id FROM accounts"
        " GROUP BY balance) AS m JOIN savings AS s ON s.id = m.id",
        "keys",
    ),
    "places": View("SELECT id, rank() OVER (ORDER BY balance) AS place FROM accounts", "full"),
    "entries": View(
        "SELECT balance AS owner, id FROM savings",
        "patch",
        "kind = 'timeline', owner = 'owner', order = 'id DESC', limit = 2",
        "SELECT balance AS owner, id FROM savings"
        " QUALIFY row_number() OVER (PARTITION BY balance ORDER BY id DESC) <= 2",
    ),
    "documents": View(
        "SELECT id, named_struct('balance', balance) AS document FROM savings",
        "keys",
        "kind = 'cache', key = 'id'",
        "SELECT id, {'balance': balance} AS document FROM savings",
    ),
    "texts": View(
        "SELECT id, concat_ws(' ', CAST(abs(balance) AS STRING), CAST(abs(balance) DIV 20 AS STRING)) AS text"
        " FROM accounts",
        "keys",
        "kind = 'search_index', key = 'id', text = 'text'",
        "SELECT id, concat_ws(' ', abs(balance), abs(balance) // 20) AS text FROM accounts",
    ),
    "queries": View(
        "SELECT id AS search_id, CAST(abs(balance) DIV 20 AS STRING) AS query FROM savings",
        "keys",
        of_duckdb="SELECT id AS search_id, CAST(abs(balance) // 20 AS VARCHAR) AS query FROM savings",
    ),
    "matches": View(
        "SELECT search_id, query FROM queries",
        "keys",
        "kind = 'saved_searches', index = 'texts', document = 'id', query = 'query'",
        "SELECT search_id, id, NULL AS error FROM queries JOIN texts ON list_contains(string_split(text, ' '), query)",
    ),
}
WAYS = {name: view.way for name, view in VIEWS.items()} | {
    "_cv_saved_1": "keys", "_cv_texts_postings": "add", "_cv_texts_totals": "add",
}  # fmt: skip


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Bank]:
    """One for all pairs, each of which goes on where the last one has ended."""
    root = tmp_path_factory.mktemp("bank")
    with ViewHarness(TABLES, spark, warehouse=root, clock=HandClock()) as harness:
        for name, view in VIEWS.items():
            harness.create_view(view.statement(name))
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
        for name, rows in answers(bank.states[str(record.position)], VIEWS).items():
            assert_equal(bank.rows(record, name), rows, f"{name} of {record.epoch}")
        assert_index_is_right(bank, record, "texts")
    taken = ways(published)
    assert {name for name, way in WAYS.items() if way in taken[name]} == set(WAYS), taken
    assert {name for name, found in taken.items() if {"full", "failed"} & found} == {"places"}, taken


def assert_index_is_right(bank: Bank, record: ControlRecord, name: str) -> None:
    """The tables of a search index with the options of `texts` are those of an index of its documents from scratch."""
    documents = [{"id": key, "text": text} for key, text in bank.rows(record, name)]
    postings, totals = from_scratch(IndexOptions("id", {"text": 1.0}), documents)
    found = [(*row[:-1], tuple(row[-1])) for row in bank.rows(record, f"_cv_{name}_postings")]
    assert sorted(found) == sorted(postings)
    assert set(bank.rows(record, f"_cv_{name}_totals")) == totals


def answers(state: State, views: Mapping[str, View]) -> dict[str, list[tuple[Any, ...]]]:
    """What the views are of the balances of an epoch; a view may read those before it."""
    with duckdb.connect() as database:
        for name, rows in state.items():
            database.execute(f"CREATE TABLE {name} (id bigint, balance bigint)")
            if rows:
                database.executemany(f"INSERT INTO {name} VALUES (?, ?)", list(rows.items()))
        for name, view in views.items():
            database.execute(f"CREATE VIEW {name} AS {view.of_duckdb or view.sql}")
        return {name: database.sql(f"SELECT * FROM {name}").fetchall() for name in views}


def ways(published: Sequence[ControlRecord]) -> dict[str, set[str]]:
    """The ways in which the epochs have updated each view."""
    found = defaultdict[str, set[str]](set)
    for record in published:
        for name, way in PublishedDetail.read(record).ways.get("view", {}).items():
            found[name].update(way.split("+"))
    return found

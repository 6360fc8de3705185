"""A crash at every fault point of the engine, and what it does about other writers; the log is one in memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_views.engine.epoch.recovery import TORN
from cdc_views.engine.views.strategies import STRATEGIES, Recompute
from cdc_views.errors import DiskFull, Fenced, ForeignCommit
from cdc_views.store.control.control_log import FOLDER, ControlRecord, last_published, read_control
from cdc_views.store.delta_log.entries import entry_file, newest_version
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Stamp, Warehouse
from cdc_views.testing import POINTS, Change, Delete, HandClock, Insert, Update, ViewHarness, assert_equal
from tests.full_only import recompute_in_full

NAMES = ("accounts", "savings")
TABLES = [f"CREATE TABLE {name} (id bigint PRIMARY KEY, balance bigint)" for name in NAMES]
TOTAL = """CREATE MATERIALIZED VIEW bank_total (total, holdings) AS
SELECT coalesce(sum(balance), 0), count(*)
FROM (SELECT balance FROM accounts UNION ALL SELECT balance FROM savings) holdings"""
RATIO = "CREATE MATERIALIZED VIEW ratio (id, part) AS SELECT id, 100 / balance FROM accounts"
ABOVE = "CREATE MATERIALIZED VIEW above (parts) AS SELECT sum(CAST(part AS DECIMAL(9, 2))) FROM ratio"
# Those of a recovery have tests of their own.
POINTS_OF_EPOCHS = sorted(point for point in POINTS if point.split(".")[0] in ("takeover", "epoch", "mirrors", "views"))
EIGHT_DAYS_S = 8 * 24 * 3600  # longer than the log keeps every version

State = dict[str, dict[int, int]]


class Bank:
    """Money in two tables, and what every epoch that anyone can read must hold of it."""

    def __init__(self, harness: ViewHarness, root: Path) -> None:
        self.harness, self.root = harness, root
        self.balances: State = {name: {} for name in NAMES}
        self.states = {str(harness.position): self._copy()}

    def write(self, *balances: tuple[str, int, int | None]) -> None:
        """Commit `(table, id, balance)` rows, balance None deletes; an epoch, which may crash."""
        changes = [self._change(*balance) for balance in balances]
        try:
            self.harness.apply(changes)
        finally:
            self.states[str(self.harness.position)] = self._copy()

    def transfer(self, chance: random.Random) -> None:
        amount, one, other = chance.randint(-50, 50), chance.randint(1, 9), chance.randint(1, 9)
        accounts, savings = self.balances.values()
        moved = [
            ("accounts", one, accounts.get(one, 1000) - amount),
            ("savings", other, savings.get(other, 1000) + amount),
        ]
        if chance.random() < 0.3:
            moved += [("accounts", one, None), ("accounts", one + 10, 5)]
        self.write(*moved)

    def published(self) -> list[ControlRecord]:
        return [record for record in read_control(self.root) if record.kind == "publish"]

    def assert_every_epoch_is_right(self, since: int = 0) -> None:
        published = self.published()
        for record in published[since:]:
            state = self.states[str(record.position)]
            for name in NAMES:
                assert_equal(self.rows(record, f"public.{name}"), state[name].items(), f"{name} of {record.epoch}")
            balances = [balance for rows in state.values() for balance in rows.values()]
            if "bank_total" in record.tables:
                assert_equal(self.rows(record, "bank_total"), [(sum(balances), len(balances))], str(record.epoch))
        positions = [record.position for record in published]
        assert positions == sorted(positions)
        assert published[-1].position == self.harness.position

    def rows(self, record: ControlRecord, name: str) -> list[tuple[object, ...]]:
        found = read_table(self.root, record.tables[name].path, record.tables[name].version)
        return [tuple(row.values()) for row in found.to_pylist()]

    def _change(self, table: str, key: int, balance: int | None) -> Change:
        rows = self.balances[table]
        if balance is None:
            del rows[key]
            return Delete(table, {"id": key})
        is_new = key not in rows
        rows[key] = balance
        row = {"id": key, "balance": balance}
        return Insert(table, row) if is_new else Update(table, {"id": key}, row)

    def _copy(self) -> State:
        return {name: dict(rows) for name, rows in self.balances.items()}


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def bank(tmp_path: Path, spark: SparkSession, clock: HandClock) -> Iterator[Bank]:
    with ViewHarness(TABLES, spark, warehouse=tmp_path, clock=clock) as harness:
        harness.create_view(TOTAL)
        yield Bank(harness, tmp_path)


@pytest.mark.parametrize("point", POINTS_OF_EPOCHS)
def test_crash_at_any_point_leaves_every_epoch_right(bank: Bank, point: str) -> None:
    chance = random.Random(point)
    bank.transfer(chance)
    with bank.harness.crash_at(point):
        if point.startswith("takeover"):
            bank.harness.restart()
        else:
            bank.transfer(chance)
    bank.harness.restart()
    bank.transfer(chance)
    bank.assert_every_epoch_is_right()


def test_crash_while_recovering_is_recovered_again(bank: Bank) -> None:
    chance = random.Random(7)
    bank.transfer(chance)
    before = len(bank.published())
    with bank.harness.crash_at("mirrors.after_first_commit"):
        bank.transfer(chance)
    for point in ("recovery.after_intent", "views.after_first_commit"):
        with bank.harness.crash_at(point):
            bank.harness.restart()
    bank.harness.restart()
    bank.assert_every_epoch_is_right()
    assert len(bank.published()) == before + 1


@pytest.mark.proves(
    wrong="The engine was down for so long that the log no longer has the same records for an unfinished epoch",
    seen=(
        "no error: the unfinished epoch is abandoned (`cdc-views epochs --all-kinds`), and a later one contains all "
        "of it"
    ),
    do="nothing",
)
def test_recovery_without_the_log_rolls_the_attempt_back(bank: Bank, clock: HandClock) -> None:
    chance = random.Random(8)
    bank.transfer(chance)
    with bank.harness.crash_at("epoch.before_publish"):
        bank.transfer(chance)
    clock.advance(EIGHT_DAYS_S)
    bank.harness.restart()
    assert [record.kind for record in read_control(bank.root)][-3:] == ["abandon", "intent", "publish"]
    bank.assert_every_epoch_is_right()


def test_crash_while_taking_back_goes_on_taking_back(bank: Bank, clock: HandClock) -> None:
    chance = random.Random(9)
    bank.transfer(chance)
    with bank.harness.crash_at("epoch.before_publish"):
        bank.transfer(chance)
    clock.advance(EIGHT_DAYS_S)
    with bank.harness.crash_at("abandon.after_first_restore"):
        bank.harness.restart()
    clock.advance(-EIGHT_DAYS_S)  # as if the log could be read again
    bank.harness.restart()
    assert "abandon" in [record.kind for record in read_control(bank.root)]
    bank.assert_every_epoch_is_right()


def test_view_edited_after_two_crashes_is_built_from_its_new_query(bank: Bank) -> None:
    with bank.harness.crash_at("epoch.before_publish"):
        bank.write(("accounts", 1, 10))
    with bank.harness.crash_at("recovery.after_intent"):
        bank.harness.restart()
    bank.harness.drop_view("bank_total")
    bank.harness.create_view(TOTAL.replace("count(*)", "count(*) + 0"))
    bank.harness.restart()
    bank.assert_every_epoch_is_right()
    bank.harness.verify()


@pytest.mark.parametrize("point", ["recovery.after_intent", "epoch.after_cut"], ids=["finished", "abandoned"])
def test_view_whose_file_was_away_during_a_recovery_has_each_change_once(
    bank: Bank, clock: HandClock, point: str
) -> None:
    added = "CREATE MATERIALIZED VIEW added AS SELECT sum(balance) AS total, count(*) AS n FROM accounts"
    assert bank.harness.create_view(added).strategy == "ADD"
    bank.write(("accounts", 1, 10))
    with bank.harness.crash_at("epoch.before_publish"):
        bank.write(("accounts", 2, 5))
    bank.harness.drop_view("added")
    if point == "epoch.after_cut":
        clock.advance(EIGHT_DAYS_S)  # The attempt is abandoned.
    with bank.harness.crash_at(point):
        bank.harness.restart()
    bank.harness.create_view(added)
    bank.harness.restart()
    bank.write(("accounts", 1, 7))
    bank.assert_every_epoch_is_right()
    bank.harness.verify()


@pytest.mark.proves(
    wrong="The machine loses power",
    seen="no error: an epoch that is not complete on disk is rolled back",
    do="start the engine again; keep `store.fsync` on",
)
@pytest.mark.parametrize("part", [pytest.param(0, marks=pytest.mark.nightly), 0.5])
def test_power_loss_that_takes_what_spark_has_written_is_recovered(
    tmp_path: Path, spark: SparkSession, part: float
) -> None:
    with ViewHarness(TABLES, spark, warehouse=tmp_path, allow_direct=False) as harness:
        bank = Bank(harness, tmp_path)
        bank.write(("accounts", 1, 10), ("savings", 1, 20))
        with bank.harness.crash_at("epoch.after_mirrors"):
            bank.write(("accounts", 1, 11), ("savings", 1, 19), ("savings", 2, 1))
        tables = {name: tmp_path / bank.published()[-1].tables[f"public.{name}"].path for name in NAMES}
        entries = {name: entry_file(table, newest_version(table)) for name, table in tables.items()}
        torn = entries["savings"].read_bytes()
        entries["savings"].write_bytes(torn[: int(len(torn) * part)])
        added = [action["add"] for action in map(orjson.loads, entries["accounts"].read_bytes().splitlines())
                 if "add" in action and "deletionVector" not in action["add"]]  # fmt: skip
        (tables["accounts"] / added[0]["path"]).write_bytes(b"")
        jvm: Any = spark._jvm
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # the JVM did not live through it either
        bank.harness.restart()
        assert [record.detail["reason"] for record in read_control(tmp_path) if record.kind == "abandon"] == [TORN]
        bank.write(("accounts", 2, 5))
        bank.assert_every_epoch_is_right()


def test_epoch_of_a_writer_that_was_replaced_is_fenced(bank: Bank, spark: SparkSession) -> None:
    bank.write(("accounts", 1, 10))
    with ViewHarness(TABLES, spark, warehouse=bank.root), pytest.raises(Fenced):
        bank.write(("accounts", 1, 20))


def test_start_after_a_foreign_commit_stops(bank: Bank, spark: SparkSession) -> None:
    bank.write(("accounts", 1, 10))
    path = bank.published()[-1].tables["public.accounts"].path
    Warehouse(bank.root, spark).fence(path, Stamp(99, 99, "0/0"))
    with pytest.raises(ForeignCommit, match=r"public\.accounts"):
        bank.harness.restart()


@pytest.mark.proves(
    wrong="Another program commits to a table of the warehouse",
    seen="`ForeignCommit` or `Fenced`; readers do not see the commit",
    do="stop that program; RESTORE the table to the version that the hint names",
)
@pytest.mark.parametrize("name", ["public.accounts", "bank_total", FOLDER])
def test_foreign_commit_stops_the_engine_and_the_next_one_and_is_not_read(bank: Bank, name: str) -> None:
    bank.write(("accounts", 1, 10), ("savings", 1, 20))
    last = last_published(bank.root)
    path = FOLDER if name == FOLDER else last.tables[name].path
    rows = read_table(bank.root, path, newest_version(bank.root / path))
    write_deltalake(str(bank.root / path), rows.slice(0, 1), mode="append")
    for go_on in (lambda: bank.write(("accounts", 1, 11)), bank.harness.restart):
        with pytest.raises(ForeignCommit):
            go_on()
    assert last_published(bank.root) == last
    assert_equal(bank.rows(last, "bank_total"), [(30, 2)])
    assert_equal(bank.rows(last, "public.accounts"), [(1, 10)])


@pytest.mark.parametrize("by_driver", [True, pytest.param(False, marks=pytest.mark.nightly)])
def test_view_that_was_dropped_and_declared_again_has_its_rows_once(spark: SparkSession, by_driver: bool) -> None:
    with ViewHarness(TABLES, spark, allow_direct=by_driver) as harness:
        harness.create_view(TOTAL)
        harness.create_view(RATIO)
        harness.apply([Insert("accounts", {"id": 1, "balance": 10})])
        harness.drop_view("ratio")
        harness.apply([Update("accounts", {"id": 1}, {"balance": 20}), Insert("accounts", {"id": 2, "balance": 50})])
        assert "ratio" not in harness.records[-1].tables
        harness.create_view(RATIO)
        assert_equal(harness.rows("ratio"), [(1, 5.0), (2, 2.0)])


@pytest.mark.proves(
    wrong="A view's query fails on its rows",
    seen="the view is `failed` in `status`, and reading it raises `ViewFailed`; everything else goes on",
    do="fix the rows or the query; if neither is the cause, restart the engine, which tries the view again",
)
def test_view_that_fails_is_published_as_failed_and_comes_back(bank: Bank) -> None:
    bank.harness.create_view(RATIO)
    bank.harness.create_view(ABOVE)
    bank.write(("accounts", 1, 10), ("accounts", 2, 20))
    bank.write(("accounts", 3, 0))
    failed = bank.published()[-1]
    assert {name: table.status for name, table in failed.mirrors_and_views.items() if "." not in name} == {
        "bank_total": "live", "ratio": "failed", "above": "failed",
    }  # fmt: skip
    assert "DIVIDE_BY_ZERO" in failed.detail["failures"]["ratio"]
    bank.write(("accounts", 3, 5))
    assert bank.published()[-1].tables["above"].status == "live"
    assert bank.harness.rows("above") == [(35.0,)]
    bank.assert_every_epoch_is_right()


def test_view_that_failed_for_a_passing_reason_is_tried_again_by_the_next_engine(
    bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(problem: str) -> None:
        def lost(recompute: Recompute) -> None:
            raise PySparkException(problem)

        monkeypatch.setitem(STRATEGIES, "FULL", lost)

    recompute_in_full(monkeypatch)
    bank.harness.create_view(RATIO)
    full = STRATEGIES["FULL"]
    fails("The value 'java.io.IOException: No space left on device' of the type STRING cannot be cast")
    bank.write(("accounts", 1, 10), ("accounts", 2, 20))
    assert bank.published()[-1].tables["ratio"].status == "failed"
    fails("Job aborted: Lost task 0.0 (TID 4): java.io.IOException: No space left on device\n\tat java.base/java.io")
    with pytest.raises(DiskFull):
        bank.write(("accounts", 3, 30))
    monkeypatch.setitem(STRATEGIES, "FULL", full)
    bank.harness.restart()
    bank.harness.run_epoch()
    assert bank.published()[-1].tables["ratio"].status == "live"
    fails("an executor was lost")
    bank.write(("accounts", 4, 40))
    monkeypatch.setitem(STRATEGIES, "FULL", full)
    bank.harness.restart()
    assert bank.harness.run_epoch() is not None
    assert {table.status for table in bank.published()[-1].tables.values()} == {"live"}
    bank.assert_every_epoch_is_right(since=-1)  # in those before it the total had failed too

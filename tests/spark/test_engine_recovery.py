"""A crash at every fault point of the engine, on real Spark, Delta and control log; the log is scripted."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.engine.epoch import run_epoch
from cdc_views.engine.recovery import recover, take_over
from cdc_views.engine.tables import Tables
from cdc_views.engine.view_tables import declare_views
from cdc_views.engine.views import ViewRunner
from cdc_views.errors import Fenced, ForeignCommit
from cdc_views.plan.compiled import compile_view
from cdc_views.store.control import ControlLog, read_control
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Changes, Stamp, Warehouse
from cdc_views.views.definition import parse_view
from cdc_views.views.graph import ViewGraph
from tests.spark.scripted import NAMES, ScriptedLog, bank_table, expected_total, rows_of

TOTAL = """CREATE MATERIALIZED VIEW bank_total (total, holdings) AS
SELECT coalesce(sum(balance), 0), count(*)
FROM (SELECT balance FROM accounts UNION ALL SELECT balance FROM savings) holdings"""
RATIO = "CREATE MATERIALIZED VIEW ratio (id, part) AS SELECT id, 100 / balance FROM accounts"
ABOVE = "CREATE MATERIALIZED VIEW above (parts) AS SELECT sum(part) FROM ratio"


class Bank:
    """The engine's parts over one warehouse; `start` is what a process does that finds it."""

    def __init__(self, root: Path, spark: SparkSession, *views: str, by_driver: bool = True) -> None:
        self.root, self.spark, self.log, self.by_driver = root, spark, ScriptedLog(), by_driver
        self.definitions = [parse_view(text, root / f"{text.split()[3]}.sql") for text in views or (TOTAL,)]

    def start(self) -> None:
        graph = ViewGraph(self.definitions, NAMES)
        keys = {str(name): ("id",) for name in NAMES}
        columns = {str(name): {"id": "int8", "balance": "int8"} for name in NAMES}
        levels = [[compile_view(view, graph, columns, keys) for view in level] for level in graph.levels]
        self.control = ControlLog.open(self.root, "test")
        self.tables = Tables(
            Warehouse(self.root, self.spark, allow_direct=self.by_driver), "g1", [bank_table(name) for name in NAMES]
        )
        declare_views(self.spark, self.tables, [view for level in levels for view in level])
        self.views = ViewRunner(self.spark, levels)
        take_over(self.control, self.tables, {})
        recover(self.log, self.tables, self.views, self.control)

    def epoch(self) -> None:
        run_epoch(self.log, self.tables, self.views, self.control, 0)

    def transfer(self, chance: random.Random) -> None:
        amount, one, other = chance.randint(-50, 50), chance.randint(1, 9), chance.randint(1, 9)
        state = self.log._state
        self.log.write(
            ("accounts", one, state["public.accounts"].get(one, 1000) - amount),
            ("savings", other, state["public.savings"].get(other, 1000) + amount),
        )
        if chance.random() < 0.3:
            self.log.write(("accounts", one, None), ("accounts", one + 10, 5))

    def assert_every_epoch_is_right(self) -> int:
        published = [record for record in read_control(self.root) if record.kind == "publish"]
        for record in published:
            state = self.log.states[str(record.position)]
            for name, rows in rows_of(state, [str(name) for name in NAMES]).items():
                found = read_table(self.root, record.tables[name].path, record.tables[name].version)
                assert {tuple(row.values()) for row in found.to_pylist()} == rows, (record.epoch, name)
            view = record.tables["bank_total"]
            found = read_table(self.root, view.path, view.version)
            assert [tuple(row.values()) for row in found.to_pylist()] == expected_total(state), record.epoch
        positions = [record.position for record in published]
        assert positions == sorted(positions)
        return len(published)


@pytest.fixture
def bank(tmp_path: Path, spark: SparkSession) -> Bank:
    return Bank(tmp_path, spark)


Crash = Callable[[str, Callable[[], None]], None]


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch) -> Crash:
    """Do something with a fault point armed, which must fire."""

    def crash_at(point: str, action: Callable[[], None]) -> None:
        monkeypatch.setenv(faults.VARIABLE, f"{point}:raise")
        with pytest.raises(faults.InjectedFault, match=point):
            action()
        monkeypatch.delenv(faults.VARIABLE)

    return crash_at


@pytest.fixture(autouse=True)
def _no_faults(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(faults.VARIABLE, raising=False)
    faults.forget()
    yield
    faults.forget()


@pytest.mark.parametrize("point", sorted(faults.POINTS - {"recovery.after_intent", "abandon.after_first_restore"}))
def test_crash_at_any_point_leaves_every_epoch_right(bank: Bank, point: str, crash: Crash) -> None:
    chance = random.Random(point)
    if not point.startswith("takeover"):
        bank.start()
        bank.transfer(chance)
        bank.epoch()
        bank.transfer(chance)
    crash(point, bank.start if point.startswith("takeover") else bank.epoch)
    bank.start()
    bank.transfer(chance)
    bank.epoch()
    assert bank.assert_every_epoch_is_right() >= 1


def test_crash_while_recovering_is_recovered_again(bank: Bank, crash: Crash) -> None:
    chance = random.Random(7)
    bank.start()
    bank.transfer(chance)
    bank.epoch()
    bank.transfer(chance)
    for point in ("mirrors.after_first_commit", "recovery.after_intent", "views.after_first_commit"):
        crash(point, bank.epoch if point.startswith("mirrors") else bank.start)
    bank.start()
    assert bank.assert_every_epoch_is_right() == 2


def test_recovery_without_the_log_takes_the_attempt_back(bank: Bank, crash: Crash) -> None:
    chance = random.Random(8)
    bank.start()
    bank.transfer(chance)
    bank.epoch()
    bank.transfer(chance)
    crash("epoch.before_publish", bank.epoch)
    bank.log.is_repeatable = False
    bank.start()
    assert [record.kind for record in read_control(bank.root)][-1] == "abandon"
    bank.epoch()
    assert bank.assert_every_epoch_is_right() == 2


def test_crash_while_taking_back_goes_on_taking_back(bank: Bank, crash: Crash) -> None:
    chance = random.Random(9)
    bank.start()
    bank.transfer(chance)
    bank.epoch()
    bank.transfer(chance)
    crash("epoch.before_publish", bank.epoch)
    bank.log.is_repeatable = False
    crash("abandon.after_first_restore", bank.start)
    bank.log.is_repeatable = True
    bank.start()
    bank.epoch()
    assert bank.assert_every_epoch_is_right() == 2


def test_view_edited_after_two_crashes_is_built_from_its_new_query(bank: Bank, crash: Crash) -> None:
    bank.start()
    bank.log.write(("accounts", 1, 10))
    for point in ("epoch.before_publish", "recovery.after_intent"):
        crash(point, bank.epoch if point.startswith("epoch") else bank.start)
    bank.definitions = [parse_view(TOTAL.replace("count(*)", "count(*) + 0"), bank.definitions[0].file)]
    bank.start()
    assert bank.assert_every_epoch_is_right() == 1


def test_epoch_of_a_writer_that_was_replaced_is_fenced(bank: Bank, spark: SparkSession) -> None:
    bank.start()
    other = Bank(bank.root, spark)
    other.start()
    bank.log.write(("accounts", 1, 10))
    with pytest.raises(Fenced):
        bank.epoch()


def test_start_after_a_foreign_commit_stops(bank: Bank) -> None:
    bank.start()
    bank.log.write(("accounts", 1, 10))
    bank.epoch()
    name = str(NAMES[0])
    spec, version = bank.tables.specs[name], bank.tables.version(name)
    empty = spec.schema.empty_table()
    bank.tables.warehouse.commit(spec, version, Changes(None, empty, True), Stamp(99, 99, "0/0"))
    with pytest.raises(ForeignCommit, match=name):
        bank.start()


@pytest.mark.parametrize("by_driver", [True, False])
def test_view_that_was_dropped_and_declared_again_has_its_rows_once(
    tmp_path: Path, spark: SparkSession, by_driver: bool
) -> None:
    bank = Bank(tmp_path, spark, TOTAL, RATIO, by_driver=by_driver)
    bank.start()
    bank.log.write(("accounts", 1, 10))
    bank.epoch()
    declared, bank.definitions = bank.definitions, bank.definitions[:1]
    bank.start()
    bank.epoch()
    assert "ratio" not in read_control(bank.root)[-1].tables
    bank.log.write(("accounts", 1, 20), ("accounts", 2, 50))
    bank.definitions = declared
    bank.start()
    bank.epoch()
    view = read_control(bank.root)[-1].tables["ratio"]
    rows = read_table(bank.root, view.path, view.version).to_pylist()
    assert sorted(row["id"] for row in rows) == [1, 2]
    assert {row["id"]: row["part"] for row in rows} == {1: 5.0, 2: 2.0}


def test_view_that_fails_is_published_as_failed_and_comes_back(tmp_path: Path, spark: SparkSession) -> None:
    bank = Bank(tmp_path, spark, TOTAL, RATIO, ABOVE)
    bank.start()
    bank.log.write(("accounts", 1, 10), ("accounts", 2, 20))
    bank.epoch()
    bank.log.write(("accounts", 3, 0))
    bank.epoch()
    failed = read_control(bank.root)[-1]
    assert {name: table.status for name, table in failed.tables.items() if "." not in name} == {
        "bank_total": "live", "ratio": "failed", "above": "failed",
    }  # fmt: skip
    assert "DIVIDE_BY_ZERO" in failed.detail["failures"]["ratio"]
    bank.log.write(("accounts", 3, 5))
    bank.epoch()
    view = read_control(bank.root)[-1].tables["above"]
    assert view.status == "live"
    assert read_table(bank.root, view.path, view.version).to_pylist() == [{"parts": 35.0}]
    assert bank.assert_every_epoch_is_right() == 3

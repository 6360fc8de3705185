"""Upkeep in the engine: flat over many epochs, never taken for foreign commits, right after a crash anywhere."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc_views.config import UpkeepSettings
from cdc_views.errors import ForeignCommit, TableUnavailable
from cdc_views.store.control.control_log import TableVersion, read_control
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Stamp, Warehouse
from cdc_views.testing import POINTS, HandClock, Insert, Update, ViewHarness, assert_equal
from cdc_views.testing.flatness import footprint, run_epochs

TABLE = "CREATE TABLE accounts (id bigint PRIMARY KEY, holder text, balance bigint)"
TOTALS = "CREATE MATERIALIZED VIEW totals (holder, total) AS SELECT holder, sum(balance) FROM accounts GROUP BY holder"
OFTEN = UpkeepSettings(merged_files=3, checkpoint_versions=6, sweep_versions=6, keep_epochs=4, keep_hours=0,
                       keep_records=20, keep_tables_hours=0)  # fmt: skip
EPOCHS = 300
UPKEEP_POINTS = sorted(point for point in POINTS if point.startswith("upkeep."))


class Accounts:
    """Balances that every epoch that can be read must hold."""

    def __init__(self, harness: ViewHarness) -> None:
        self.harness = harness
        self.chance = random.Random(5)
        self.balances: dict[int, int] = {}
        self.states: dict[str, dict[int, int]] = {}
        self.write(dict.fromkeys(range(20), 100))

    def write(self, balances: dict[int, int]) -> None:
        changes = [
            Update("accounts", {"id": key}, {"balance": balance})
            if key in self.balances
            else Insert("accounts", {"id": key, "holder": f"h{key % 3}", "balance": balance})
            for key, balance in balances.items()
        ]
        self.balances |= balances
        try:
            self.harness.apply(changes)
        finally:
            self.states[str(self.harness.position)] = dict(self.balances)

    def epochs(self, number: int) -> None:
        for _ in range(number):
            self.write({key: self.chance.randrange(1000) for key in self.chance.sample(range(25), 3)})

    def assert_last_epochs_are_right(self, number: int) -> None:
        published = [record for record in read_control(self.harness.warehouse) if record.published_at]
        for record in published[-number:]:
            rows = self.read(record.tables["public.accounts"])
            assert {row["id"]: row["balance"] for row in rows} == self.states[str(record.position)]
        self.harness.verify()

    def read(self, table: TableVersion) -> list[dict[str, int]]:
        return read_table(self.harness.warehouse, table.path, table.version).to_pylist()


@pytest.mark.parametrize("point", UPKEEP_POINTS)
def test_crash_in_upkeep_leaves_every_retained_epoch_right(spark: SparkSession, tmp_path: Path, point: str) -> None:
    with ViewHarness(TABLE, spark, warehouse=tmp_path, clock=HandClock(), upkeep=OFTEN) as harness:
        accounts = Accounts(harness)
        (tmp_path / "views" / "old" / "1" / "_delta_log").mkdir(parents=True)
        if point == "upkeep.after_leftover_moved":
            with harness.crash_at(point):
                harness.restart()
                accounts.epochs(1)
        else:
            with harness.crash_at(point):
                accounts.epochs(60)
        harness.restart()
        accounts.epochs(8)
        accounts.assert_last_epochs_are_right(OFTEN.keep_epochs)
        assert not (tmp_path / "views" / "old" / "1").exists()
        assert not (tmp_path / ".removed").exists()


def test_flat_over_many_epochs(spark: SparkSession, tmp_path: Path) -> None:
    settings = UpkeepSettings(keep_hours=0, keep_epochs=20, keep_records=50, checkpoint_versions=25, sweep_versions=25)
    with ViewHarness(TABLE, spark, warehouse=tmp_path, clock=HandClock(), upkeep=settings) as harness:
        harness.apply([Insert("accounts", {"id": key, "holder": "h", "balance": 0}) for key in range(500)])
        found = [footprint(harness) for _ in run_epochs(harness, EPOCHS, changes=10, every=EPOCHS // 30)]
    assert max(each.live_files for each in found) <= 4 * settings.merged_files
    # Vacuum comes in steps, so what is compared is the most of each third. The first has less than is kept.
    middle, last = found[10:20], found[20:]
    for measured in ("files", "log_files", "control_files", "control_log_files", "entry_bytes", "records"):
        assert max(getattr(each, measured) for each in last) <= 1.3 * max(getattr(each, measured) for each in middle)


def test_engine_goes_on_after_upkeep_and_names_what_is_not_ours(spark: SparkSession, tmp_path: Path) -> None:
    with ViewHarness(TABLE, spark, warehouse=tmp_path, clock=HandClock(), upkeep=OFTEN) as harness:
        accounts = Accounts(harness)
        accounts.epochs(20)
        before = harness.records[-1]
        assert any(record.kind == "upkeep" for record in harness.records)
        path = before.tables["public.accounts"].path
        unpublished = Warehouse(tmp_path, spark).history.commits_above(path, before.tables["public.accounts"].version)
        harness.restart()
        accounts.epochs(3)
        accounts.assert_last_epochs_are_right(OFTEN.keep_epochs)
        assert all(not commit.changes_content for commit in unpublished)
        Warehouse(tmp_path, spark).fence(path, Stamp(99, 9999, "0/0"))
        with pytest.raises(ForeignCommit):
            harness.restart()


def test_epoch_that_is_not_retained_any_more_is_a_named_error(spark: SparkSession, tmp_path: Path) -> None:
    with ViewHarness(TABLE, spark, warehouse=tmp_path, clock=HandClock(), upkeep=OFTEN) as harness:
        accounts = Accounts(harness)
        first = harness.records[-1]
        accounts.epochs(30)
        with pytest.raises(TableUnavailable):
            accounts.read(first.tables["public.accounts"])


def test_view_that_was_dropped_goes_when_nobody_can_read_it(spark: SparkSession, tmp_path: Path) -> None:
    with ViewHarness(TABLE, spark, warehouse=tmp_path, clock=HandClock(), upkeep=OFTEN) as harness:
        harness.create_view(TOTALS)
        accounts = Accounts(harness)
        folder = tmp_path / harness.records[-1].tables["totals"].path
        harness.drop_view("totals")
        accounts.epochs(2)
        harness.restart()
        accounts.epochs(1)
        assert folder.exists()
        accounts.epochs(OFTEN.keep_epochs)
        harness.restart()
        accounts.epochs(1)
        assert not folder.exists()
        harness.create_view(TOTALS)
        assert_equal(harness.rows("totals"), harness.recomputed("totals"))

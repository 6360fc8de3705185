"""Rebuild, swap and rollback of views that have internal views, of views over these, and crashes in between."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress

import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.epoch.swap import SwapRequest
from cdc_views.store.control import ControlRecord, PublishedDetail
from cdc_views.testing import Delete, Insert, Update, ViewHarness
from tests.rebuilt import rebuilt, swap_in
from tests.seed import drawn

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text)"
GROUPED = "SELECT upper(s) AS s, count(DISTINCT id) AS n, sum(v) AS total FROM t GROUP BY upper(s)"
VIEWS = {
    "grouped": GROUPED,
    "safe": "SELECT id, v FROM t",
    "above": "SELECT n, count(*) AS groups FROM grouped GROUP BY n",
    "largest": "SELECT n, count(*) AS c FROM grouped GROUP BY n ORDER BY c DESC, n LIMIT 2",
}
INTERNAL = "_cv_grouped_1"
CRASHES = (None, "epoch.after_intent", "views.after_first_commit", "epoch.before_publish")
SWAPS = [(names, crash) for crash in CRASHES for names in (tuple(VIEWS), ("grouped",), ("safe",))]


class Project:
    """A harness with the views, of which some are rebuilt, swapped in, and rolled back."""

    def __init__(self, harness: ViewHarness, spark: SparkSession) -> None:
        self.harness, self.spark = harness, spark
        self.last = 0
        self.rebuilds = 0

    def write(self) -> None:
        """Change, insert and delete rows in one epoch; all views are right afterwards."""
        self.last += 1
        key = 100 + self.last
        changes = [Insert("t", {"id": key, "v": key, "s": "xyz"[key % 3]})]
        self.harness.apply(
            [*changes, Update("t", {"id": self.last}, {"s": "N", "v": -1}), Delete("t", {"id": 50 + self.last})]
        )
        self.harness.verify()

    def assert_goes_on(self) -> None:
        """The next epochs are right, and all that is kept by changes is so again after the first of them."""
        self.harness.verify()
        self.write()
        self.write()
        found = PublishedDetail.read(self.harness.records[-1]).ways["view"]
        assert (found[INTERNAL], found["grouped"], found["largest"]) == ("keys", "keys", "patch")

    def rebuilt(self, names: Collection[str]) -> SwapRequest:
        """Shadow tables of the mirror and of some views as of the last epoch."""
        self.rebuilds += 1
        return rebuilt(self.harness, self.spark, names, f"shadow{self.rebuilds}")

    def publish(self, request: SwapRequest, crash: str | None = None) -> ControlRecord:
        """Publish the tables of a request, after an attempt that a crash has ended."""
        if crash is not None:
            with self.harness.crash_at(crash):
                swap_in(self.harness, request)
            self.harness.restart()
            self.assert_goes_on()
        record = swap_in(self.harness, request)
        assert {table.status for table in record.tables.values()} == {"live"}
        for name, table in request.tables.items():
            assert record.tables[name].path == table.path
        return record


@pytest.fixture
def project(spark: SparkSession) -> Iterator[Project]:
    with ViewHarness(TABLE, spark, partitions=1) as harness:
        harness.apply([Insert("t", {"id": key, "v": key, "s": "abc"[key % 3]}) for key in range(80)])
        for name, sql in VIEWS.items():
            harness.create_view(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
        made = Project(harness, spark)
        made.write()
        yield made


@pytest.mark.parametrize(
    ("names", "crash"),
    drawn(1, SWAPS, ids=[f"{' '.join(names)} {crash}" for names, crash in SWAPS]),
)
def test_swap_and_rollback_over_an_internal_view_leave_every_epoch_right(
    project: Project, names: Collection[str], crash: str | None
) -> None:
    request = project.rebuilt(names)
    project.write()
    internal = project.harness.records[-1].tables[INTERNAL].path
    swapped = project.publish(request, crash)
    assert swapped.tables[INTERNAL].path == internal
    project.assert_goes_on()
    replaced = PublishedDetail.read(swapped).replaced
    assert replaced.keys() == request.tables.keys()
    project.publish(SwapRequest("back", "rollback", replaced), crash)
    project.assert_goes_on()


def test_view_that_was_swapped_can_be_edited_dropped_and_declared_again(project: Project) -> None:
    h = project.harness
    project.publish(project.rebuilt(VIEWS.keys()))
    h.restart()
    project.assert_goes_on()
    with h.crash_at("views.after_first_commit"), suppress(AssertionError):
        project.write()
    for name in ("above", "largest", "grouped"):
        h.drop_view(name)
    h.create_view(f"CREATE MATERIALIZED VIEW grouped AS {GROUPED.replace('upper(s)', 'reverse(s)')}")
    h.create_view(f"CREATE MATERIALIZED VIEW largest AS {VIEWS['largest']}")
    h.restart()
    project.assert_goes_on()
    h.drop_view("largest")
    h.drop_view("grouped")
    project.harness.apply([Insert("t", {"id": 300, "v": 1, "s": "gone"})])
    assert INTERNAL not in h.records[-1].tables
    for name in ("grouped", "above", "largest"):
        h.create_view(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    project.assert_goes_on()

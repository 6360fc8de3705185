"""The table of an internal view that is lost, or that others write to: the engine computes it again, and goes on."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from cdc_views.engine.views.inputs import Inputs, InputVersions
from cdc_views.errors import TableUnavailable
from cdc_views.store.control import ControlRecord, PublishedDetail
from cdc_views.store.delta_log import newest_version
from cdc_views.store.reading import read_table
from cdc_views.testing import Delete, Insert, Update, ViewHarness
from tests.seed import drawn

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text)"
GROUPED = (
    "CREATE MATERIALIZED VIEW grouped AS SELECT upper(s) AS s, count(DISTINCT id) AS n, sum(v) AS total FROM t"
    " GROUP BY upper(s)"
)
SAFE = "CREATE MATERIALIZED VIEW safe AS SELECT id, v FROM t"
ABOVE = "CREATE MATERIALIZED VIEW above AS SELECT n, count(*) AS groups FROM grouped GROUP BY n"
INTERNAL = "_cv_grouped_1"


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(TABLE, spark, partitions=1) as harness:
        harness.apply([Insert("t", {"id": key, "v": key, "s": "abc"[key % 3]}) for key in range(9)])
        for sql in (GROUPED, SAFE, ABOVE):
            harness.create_view(sql)
        harness.apply([Insert("t", {"id": 9, "v": 9, "s": "A"})])
        assert ways(harness) == ["keys", "keys"]
        yield harness


def ways(h: ViewHarness) -> list[str]:
    """How the internal view and its view were updated."""
    found = PublishedDetail.read(h.records[-1]).ways["view"]
    return [found[INTERNAL], found["grouped"]]


def last_good(h: ViewHarness) -> ControlRecord:
    """The last published record; all of the user's views in it are live."""
    record = [each for each in h.records if each.published_at is not None][-1]
    assert {table.status for table in record.mirrors_and_views.values()} == {"live"}
    return record


def removed(table: Path) -> None:
    shutil.rmtree(table)


def without_files(table: Path) -> None:
    for file in table.glob("*.parquet"):
        file.unlink()


def appended(table: Path) -> None:
    write_deltalake(str(table), read_table(table.parent, table.name, newest_version(table)).slice(0, 1), mode="append")


def restored(table: Path) -> None:
    DeltaTable(str(table)).restore(newest_version(table) - 1)


def overwritten(table: Path) -> None:
    rows = read_table(table.parent, table.name, newest_version(table))
    shutil.rmtree(table)
    for _ in range(9):  # as many versions as were published, and more
        write_deltalake(str(table), rows.slice(0, 1), mode="overwrite")


DEEDS = [
    (deed, is_running)
    for deed in (removed, without_files, appended, restored, overwritten)
    for is_running in (True, False)
]


@pytest.mark.parametrize(
    ("deed", "is_running"),
    drawn(3, DEEDS, ids=[f"{deed.__name__}-{'running' if is_running else 'stopped'}" for deed, is_running in DEEDS]),
)
def test_internal_table_that_is_lost_or_written_by_others_is_computed_again(
    h: ViewHarness, deed: Callable[[Path], None], is_running: bool, caplog: pytest.LogCaptureFixture
) -> None:
    before = last_good(h).tables[INTERNAL].path
    deed(h.warehouse / before)
    with caplog.at_level(logging.WARNING):
        if not is_running:
            h.restart()
        for key in range(3):
            h.apply([Update("t", {"id": key}, {"s": "A", "v": 7}), Insert("t", {"id": 10 + key, "v": 1, "s": "d"})])
            h.verify()
            last_good(h)
        assert ways(h) == ["keys", "keys"]
        h.restart()  # Rows that the driver keeps may have stood for lost files so far.
        for key in (4, 5):
            h.apply([Delete("t", {"id": key})])
            h.verify()
            last_good(h)
    assert ways(h) == ["keys", "keys"]
    assert last_good(h).tables[INTERNAL].path != before
    assert sum(INTERNAL in each.getMessage() for each in caplog.records) == 1


FIRST = (
    "CREATE MATERIALIZED VIEW first AS SELECT p.s, t.id FROM (SELECT s, count(*) AS n FROM t GROUP BY s"
    " ORDER BY n DESC, s LIMIT 2) p JOIN t ON t.s = p.s"
)
BELOW = "_cv__cv_first_1_1"


def test_lost_table_that_only_another_internal_view_meets_is_computed_again(
    h: ViewHarness, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    h.create_view(FIRST)
    h.verify()
    h.apply([Insert("t", {"id": 20, "v": 1, "s": "z"})])  # so that the driver keeps the rows of the lost table
    h.verify()
    lost = last_good(h).tables[BELOW].path

    def unless_lost(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(inputs: Inputs, of: InputVersions, *rest: object, **named: object) -> object:
            if of.spec.path == lost:
                raise TableUnavailable("in this test a file is gone")
            return read(inputs, of, *rest, **named)

        return reading

    for name in ("first_rows", "lookup", "delta"):
        monkeypatch.setattr(Inputs, name, unless_lost(getattr(Inputs, name)))
    without_files(h.warehouse / lost)
    with caplog.at_level(logging.WARNING):
        for key in range(4):
            h.apply([Update("t", {"id": key}, {"s": "z", "v": 7}), Delete("t", {"id": key + 5})])
            h.verify()
            last_good(h)
    assert last_good(h).tables[BELOW].path != lost
    found = PublishedDetail.read(h.records[-1]).ways["view"]
    assert (found[BELOW], found["_cv_first_1"], found["first"]) == ("add", "patch", "keys")
    assert sum(BELOW in each.getMessage() for each in caplog.records if "computing it again" in each.getMessage()) == 1

"""A fence shuts out what an older engine began: really, with a MERGE in flight."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_views.errors import Fenced, ForeignCommit
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse
from tests.waiting import wait_for

SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int64())])
SPEC = TableSpec("public.t", "mirrors/public/t/1", SCHEMA, ("id",))


class SlowCommit:
    """An old engine's commit that stands still within its MERGE until `gate` exists."""

    def __init__(self, warehouse: Warehouse, spark: SparkSession, folder: Path) -> None:
        self.reached, self.gate = folder / "reached", folder / "gate"
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(warehouse, self._rows(spark)))
        self._thread.start()

    def _rows(self, spark: SparkSession) -> DataFrame:
        reached, gate = str(self.reached), str(self.gate)

        def held(value: int) -> int:
            import os
            import time

            with open(reached, "w"):
                pass
            deadline = time.monotonic() + 120
            while not os.path.exists(gate) and time.monotonic() < deadline:
                time.sleep(0.05)
            return value

        function = F.udf(held, "long", useArrow=False).asNondeterministic()
        return spark.range(3).select("id", function(F.col("id") + 100).alias("v"))

    def _run(self, warehouse: Warehouse, rows: DataFrame) -> None:
        try:
            warehouse.commit(SPEC, 1, Changes(None, rows), Stamp(2, 2, "0/2"))
        except Exception as error:
            self.error = error

    def wait_until_in_flight(self) -> None:
        wait_for(self.reached.exists, 120)

    def let_go(self) -> Exception | None:
        self.gate.touch()
        self._thread.join(120)
        return self.error


@pytest.fixture
def slow(warehouse: Warehouse, spark: SparkSession, tmp_path: Path) -> Iterator[SlowCommit]:
    warehouse.create(SPEC)
    warehouse.commit(SPEC, 0, Changes(None, pa.table({"id": [1], "v": [1]}), all_new=True), Stamp(1, 1, "0/1"))
    commit = SlowCommit(warehouse, spark, tmp_path)
    commit.wait_until_in_flight()
    yield commit
    commit.let_go()


def test_fence_while_a_merge_is_in_flight_makes_it_fail(slow: SlowCommit, warehouse: Warehouse, tmp_path: Path) -> None:
    version = warehouse.fence(SPEC.path, Stamp(2, 3, "0/2"))
    error = slow.let_go()
    assert isinstance(error, Fenced), error
    assert "ConcurrentTransaction" in type(error.__cause__.__cause__).__name__  # type: ignore[union-attr]
    assert warehouse.latest_version(SPEC.path) == version == 2
    assert read_table(tmp_path, SPEC.path, 2).to_pylist() == [{"id": 1, "v": 1}]


def test_foreign_append_while_a_merge_is_in_flight_is_reported(slow: SlowCommit, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / SPEC.path), pa.table({"id": [9], "v": [9]}), mode="append")
    error = slow.let_go()
    assert isinstance(error, ForeignCommit), error
    assert "found version" in error.message


def test_commit_after_a_fence_of_a_later_attempt_writes_nothing(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.create(SPEC)
    warehouse.fence(SPEC.path, Stamp(1, 5, "0/1"))
    with pytest.raises(Fenced, match="found transaction 5, wanted one below attempt 4"):
        warehouse.commit(SPEC, 1, Changes(None, pa.table({"id": [1], "v": [1]})), Stamp(1, 4, "0/1"))
    assert warehouse.latest_version(SPEC.path) == 1


def test_fence_is_the_next_version_and_carries_the_attempt(warehouse: Warehouse) -> None:
    warehouse.create(SPEC)
    assert warehouse.fence(SPEC.path, Stamp(1, 5, "0/1")) == 1
    assert warehouse.history.stamp_of(SPEC.path, 1) == Stamp(1, 5, "0/1")

"""The pinned readers and deletion vectors: what docs/readers.md says of them.

Before 1.6.6 delta-rs split a larger file among threads, each of which applied the file's deletion vector from its
start: deleted rows came back, and others were lost (delta-io/delta-rs#4692).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc_views.config import StoreSettings
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

pytestmark = pytest.mark.usefixtures("without_fsync")

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int64()), ("y", pa.int64())])
ROWS = 700_000  # more than 10 MiB, from which a file is split
HALF = ROWS // 2


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file of random numbers, every tenth row of which is deleted."""
    root, chance = tmp_path_factory.mktemp("readers"), np.random.default_rng(1)
    rows = pa.table([np.arange(ROWS), *(chance.integers(0, 1 << 62, ROWS) for _ in "xy")], schema=SCHEMA)
    spec = TableSpec("t", "t", SCHEMA, ("id",))
    warehouse = Warehouse(root, cast(SparkSession, None), StoreSettings(direct_rows=ROWS, scanned_rows=ROWS))
    warehouse.create(spec)
    warehouse.commit(spec, 0, Changes(None, rows, True), Stamp(1, 2, "0/1"))
    gone = rows.select(["id"]).take(np.arange(0, ROWS, 10))
    warehouse.commit(spec, 1, Changes(gone, rows.slice(0, 0), False), Stamp(1, 3, "0/1"))
    assert max(file.stat().st_size for file in (root / "t").glob("*.parquet")) > 10 << 20
    return str(root / "t")


def by_delta_rs(table: str, where: str) -> Any:
    return pa.table(QueryBuilder().register("t", DeltaTable(table)).execute(f"SELECT id FROM t WHERE {where}"))["id"]


def by_scan(table: str, where: str) -> Any:
    return pa.table(DeltaTable(table).scan(columns=["id"], predicate=where))["id"]


def by_duckdb(table: str, where: str) -> Any:
    with duckdb.connect() as database:
        database.register("t", DeltaTable(table).scan())
        return database.sql(f"SELECT id FROM t WHERE {where}").to_arrow_table()["id"]


def by_polars(table: str, where: str) -> Any:
    return polars.scan_delta(table).filter(polars.sql_expr(where)).select("id").collect()["id"]


READERS: dict[str, Callable[[str, str], Any]] = {
    "delta-rs": by_delta_rs, "scan": by_scan, "duckdb": by_duckdb, "polars": by_polars,
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("where", ["id >= 0", f"id >= {HALF}"])
def test_rows_of_a_larger_file_with_a_deletion_vector(table: str, reader: str, where: str) -> None:
    wanted = np.arange(HALF if str(HALF) in where else 0, ROWS)
    found = np.sort(np.asarray(READERS[reader](table, where)))
    assert np.array_equal(found, wanted[wanted % 10 != 0])


def test_docs_name_the_pinned_versions() -> None:
    page = (Path(__file__).parents[2] / "docs" / "readers.md").read_text()
    for package in ("deltalake", "polars", "duckdb", "pyspark"):
        assert re.search(rf"\| {package} [^|]*\| {re.escape(version(package))} \|", page), package

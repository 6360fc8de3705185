"""Reading published versions without a JVM."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from cdc_views.errors import TableUnavailable
from cdc_views.store.reading import read_table, row_count, scan
from cdc_views.store.warehouse import Stamp
from tests.unit.stored_rows import SPEC, Model, warehouse_in

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("at", pa.timestamp("us", tz="UTC"))])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for ids in ([1, 2], [3]):
        rows = pa.table({"id": ids, "name": ["x"] * len(ids), "at": pa.array([0] * len(ids), SCHEMA.field("at").type)})
        write_deltalake(str(tmp_path / "t"), rows.cast(SCHEMA), mode="append")
    return tmp_path


def test_read_table_of_an_older_version_gives_its_rows(root: Path) -> None:
    assert sorted(read_table(root, "t", 0)["id"].to_pylist()) == [1, 2]


def test_read_table_gives_the_types_of_the_table(root: Path) -> None:
    assert read_table(root, "t", 1).schema.types == SCHEMA.types


def test_read_table_of_some_columns_gives_only_these(root: Path) -> None:
    assert read_table(root, "t", 1, ["name"]).column_names == ["name"]


@pytest.mark.parametrize(("path", "version"), [("t", 9), ("absent", 0)])
def test_read_table_of_what_is_not_there_names_it(root: Path, path: str, version: int) -> None:
    with pytest.raises(TableUnavailable, match=f'table "{path}": version {version} cannot be read'):
        read_table(root, path, version)


def test_read_table_after_its_files_are_gone_names_the_version(root: Path) -> None:
    for file in (root / "t").glob("*.parquet"):
        file.unlink()
    with pytest.raises(TableUnavailable):
        read_table(root, "t", 1)


def test_scan_in_duckdb_can_be_used_twice_in_one_query(root: Path) -> None:
    with duckdb.connect() as database:
        database.register("t", scan(root, "t", 1))
        answer = database.execute("SELECT count(*) FROM t AS a JOIN t AS b USING (name)").fetchone()
    assert answer == (9,)


def test_row_count_of_each_version_leaves_out_deleted_rows(tmp_path: Path) -> None:
    warehouse, model = warehouse_in(tmp_path), Model(seed=3)
    version = warehouse.create(SPEC)
    for attempt in range(1, 25):
        version = warehouse.commit(SPEC, version, model.change(), Stamp(1, attempt, "0/1"))
        assert row_count(tmp_path, SPEC.path, version) == len(model.stored)


def test_row_count_of_a_version_that_is_not_there_is_unknown(root: Path) -> None:
    assert row_count(root, "t", 1) == 3
    assert row_count(root, "t", 9) is None

"""A foreign version that comes between our look at a table and our version: we stop, and it stays; without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.errors import Fenced, ForeignCommit
from cdc_views.store.commits.through_spark import Written
from cdc_views.store.delta_log import state
from cdc_views.store.delta_log.entries import Action, put_entry
from cdc_views.store.delta_log.schema import Layout
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.reading import read_table
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse, WrittenRows
from tests.unit.test_store_upkeep import SETTINGS

pytestmark = pytest.mark.usefixtures("without_fsync")

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
OURS, NEW, THEIRS = [1, 2, 3], [3, 4], 9
STAMP = Stamp(1, 9, "0/1")

Operation = Callable[[Warehouse, TableSpec, int], object]
Foreign = Callable[[Path], object]


def rows(*ids: int, n: int = 0) -> pa.Table:
    return pa.table([list(ids), [n] * len(ids)], schema=SCHEMA)


def direct(warehouse: Warehouse, spec: TableSpec, base: int) -> object:
    return warehouse.commit(spec, base, Changes(rows(1).select(["id"]), rows(*NEW, n=1)), STAMP)


def bulk(warehouse: Warehouse, spec: TableSpec, base: int) -> object:
    def write(spec: TableSpec, folder: Path) -> Written:
        return Written([write_rows(folder, rows(each, n=1), ["id"]) for each in NEW], rows(1).select(["id"]))

    return warehouse.commit(spec, base, WrittenRows(write, all_new=False), STAMP)


def restore(warehouse: Warehouse, spec: TableSpec, base: int) -> object:
    return warehouse.restore(spec.path, base - 1, STAMP, base)


def append(table: Path) -> object:
    return write_deltalake(str(table), rows(THEIRS), mode="append")


def compact(table: Path) -> object:
    return DeltaTable(str(table)).optimize.compact()


def table_of(root: Path, layout: Layout = "vectors") -> tuple[Warehouse, TableSpec, int]:
    """A table whose rows came in several versions."""
    spec, warehouse = TableSpec("t", "t", SCHEMA, ("id",), layout), Warehouse(root, cast(SparkSession, None))
    version = warehouse.create(spec)
    for number in OURS:
        changes = Changes(None, rows(number), all_new=True)
        version = warehouse.commit(spec, version, changes, Stamp(1, number, "0/1"))
    return warehouse, spec, version


def assert_theirs_stays(warehouse: Warehouse, root: Path, base: int, foreign: Foreign) -> None:
    assert warehouse.latest_version("t") == base + 1
    wanted = [*OURS, THEIRS] if foreign is append else OURS
    assert sorted(read_table(root, "t", base + 1)["id"].to_pylist()) == wanted
    assert set(read_table(root, "t", base + 1)["n"].to_pylist()) == {0}


@pytest.fixture
def before_entry(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Let something happen when all that a version needs is written, and its entry is about to be put."""

    def arm(deed: Callable[[], object]) -> None:
        def put_late(table: Path, version: int, actions: Sequence[Action]) -> None:
            deed()
            put_entry(table, version, actions)

        monkeypatch.setattr(state, "put_entry", put_late)

    return arm


@pytest.mark.parametrize("layout", ["vectors", "plain"])
@pytest.mark.parametrize("operation", [direct, bulk, restore])
@pytest.mark.parametrize("foreign", [append, compact])
def test_foreign_version_before_our_entry_stops_us_and_stays(
    tmp_path: Path, before_entry: Callable[..., None], operation: Operation, layout: Layout, foreign: Foreign
) -> None:
    warehouse, spec, base = table_of(tmp_path, layout)
    before_entry(lambda: foreign(tmp_path / "t"))
    with pytest.raises(ForeignCommit, match=rf"found version {base + 1}"):
        operation(warehouse, spec, base)
    assert_theirs_stays(warehouse, tmp_path, base, foreign)
    with pytest.raises(ForeignCommit):  # again, now that it is there
        operation(warehouse, spec, base)
    assert_theirs_stays(warehouse, tmp_path, base, foreign)


@pytest.mark.parametrize("layout", ["vectors", "plain"])
@pytest.mark.parametrize("foreign", [append, compact])
def test_foreign_version_while_a_bulk_commit_writes_its_files_stops_it_and_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Layout, foreign: Foreign
) -> None:
    warehouse, spec, base = table_of(tmp_path, layout)
    monkeypatch.setattr(faults, "point", lambda name: foreign(tmp_path / "t") if name == "bulk.after_files" else None)
    with pytest.raises(ForeignCommit, match=rf"found version {base + 1}"):
        bulk(warehouse, spec, base)
    assert_theirs_stays(warehouse, tmp_path, base, foreign)


def test_foreign_version_before_the_entry_of_a_compaction_stops_it_and_stays(
    tmp_path: Path, before_entry: Callable[..., None]
) -> None:
    warehouse, spec, base = table_of(tmp_path)
    upkeep = TableUpkeep(tmp_path, spec, SETTINGS.model_copy(update={"merged_files": 3}))
    assert upkeep.is_known(base)
    before_entry(lambda: append(tmp_path / "t"))
    with pytest.raises(Fenced):
        upkeep.compact(upkeep.files_due(), STAMP)
    assert_theirs_stays(warehouse, tmp_path, base, append)

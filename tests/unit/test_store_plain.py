"""Tables of layout `plain`: no deletion vector, no table feature, the same rows; without a JVM."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc_views.config import UpkeepSettings
from cdc_views.errors import BadView, WrongFeatures
from cdc_views.metrics import Work, counting
from cdc_views.store.delta_log.entries import read_entry
from cdc_views.store.delta_log.features import check_features
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.reading import read_table
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, TableSpec, Warehouse
from cdc_views.views.definition import parse_view

pytestmark = pytest.mark.usefixtures("without_fsync")

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
SPEC = TableSpec("t", "t", SCHEMA, ("id",), "plain")


def test_random_history_has_the_same_rows_and_never_a_deletion_vector(tmp_path: Path) -> None:
    warehouse, chance, model = Warehouse(tmp_path, cast(SparkSession, None)), random.Random(3), dict[int, int]()
    version = warehouse.create(SPEC)
    upkeep = TableUpkeep(tmp_path, SPEC, UpkeepSettings())
    for attempt in range(2, 22):
        new = {key: chance.randrange(99) for key in chance.sample(range(30), 4)}
        gone = [key for key in model if key not in new and chance.random() < 0.2]
        rows = pa.table({"id": list(new), "n": list(new.values())}, schema=SCHEMA)
        deleted = pa.table({"id": pa.array(gone, pa.int64())}) if gone else None
        version = warehouse.commit(SPEC, version, Changes(deleted, rows, not model), Stamp(1, attempt, "0/1"))
        assert upkeep.catch_up(version)
        if files := upkeep.files_due():
            version = upkeep.compact(files, Stamp(1, attempt, "0/1"))
        model = {key: n for key, n in model.items() if key not in gone} | new
        # What refuses every table with deletion vectors.
        found = DeltaTable(str(tmp_path / "t"), version=version).to_pyarrow_table()
        assert dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True)) == model
        assert found.num_rows == read_table(tmp_path, "t", version).num_rows == len(model)
    check_features(DeltaTable(tmp_path / "t"), "t", "plain")
    log = "".join(file.read_text() for file in (tmp_path / "t" / "_delta_log").glob("*.json"))
    assert 'deletionVector"' not in log
    protocol = next(json.loads(line) for line in log.splitlines() if line.startswith('{"protocol"'))
    assert protocol == {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    assert not list((tmp_path / "t").glob("*.bin"))


def test_change_of_rows_in_several_files_leaves_them_apart(tmp_path: Path) -> None:
    warehouse, state = Warehouse(tmp_path, cast(SparkSession, None)), TableState()
    version = warehouse.create(SPEC)
    for first in (0, 100, 200):
        changes = Changes(None, pa.table({"id": range(first, first + 100), "n": [0] * 100}, schema=SCHEMA), True)
        version = warehouse.commit(SPEC, version, changes, Stamp(1, version + 1, "0/1"))
    everywhere = pa.table({"id": [5, 105, 205], "n": [1] * 3}, schema=SCHEMA)
    version = warehouse.commit(SPEC, version, Changes(None, everywhere), Stamp(1, version + 1, "0/1"))
    assert state.catch_up(tmp_path / "t")
    assert sorted(state.rows_in(path) for path in state.files) == [3, 99, 99, 99]
    with counting(Work()) as work:
        warehouse.commit(SPEC, version, Changes(None, everywhere.slice(0, 1)), Stamp(1, version + 1, "0/1"))
    assert work.rows_written == 3
    gone = pa.table({"id": range(100, 105)}, schema=pa.schema([SCHEMA.field("id")]))
    with counting(Work()) as work:
        warehouse.commit(SPEC, version + 1, Changes(gone, everywhere.slice(0, 0)), Stamp(1, version + 2, "0/1"))
    assert work.rows_written == 94


def test_file_without_a_row_left_is_only_removed(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path, cast(SparkSession, None))
    rows = pa.table({"id": [1, 2], "n": [1, 2]}, schema=SCHEMA)
    version = warehouse.commit(SPEC, warehouse.create(SPEC), Changes(None, rows, True), Stamp(1, 1, "0/1"))
    version = warehouse.commit(SPEC, version, Changes(rows.select(["id"]), rows.slice(0, 0)), Stamp(1, 2, "0/1"))
    assert [sorted(action) for action in read_entry(tmp_path / "t", version)] == [["commitInfo"], ["txn"], ["remove"]]


def test_table_of_the_other_layout_is_refused(tmp_path: Path) -> None:
    Warehouse(tmp_path, cast(SparkSession, None)).create(SPEC)
    with pytest.raises(WrongFeatures, match=r"found protocol reader 1 writer 2 .* wanted reader 3 writer 7"):
        check_features(DeltaTable(tmp_path / "t"), "t")


def test_layout_of_a_view_is_read_from_its_options() -> None:
    text = "CREATE MATERIALIZED VIEW v WITH (layout = '{}') AS SELECT id FROM t"
    assert parse_view(text.format("plain"), Path("v.sql")).layout == "plain"
    assert parse_view("CREATE MATERIALIZED VIEW v AS SELECT id FROM t", Path("v.sql")).layout == "vectors"
    with pytest.raises(BadView, match=r'v\.sql:1:43: unknown layout "plane"\nhint: did you mean "plain"'):
        parse_view(text.format("plane"), Path("v.sql"))

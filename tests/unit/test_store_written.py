"""Changes whose rows somebody else has written as files: what a plain dictionary holds, by every way to find rows."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_views.config import StoreSettings
from cdc_views.store.commits.changes import Changes, Written, WrittenRows
from cdc_views.store.delta_log.schema import Layout, TableSpec
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.reading import read_table
from cdc_views.store.warehouse import Stamp, Warehouse
from tests.samples import SEEDS

pytestmark = pytest.mark.usefixtures("without_fsync")

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("n", pa.int64())])
KEY = ("a", "b")

Model = dict[tuple[int, str], int]


def table_of(rows: Model) -> pa.Table:
    columns = [[key[0] for key in rows], [key[1] for key in rows], list(rows.values())]
    return pa.table(columns, schema=SCHEMA)


def written(new: Model, gone: Model, *, all_new: bool = False) -> WrittenRows:
    """Each key in one of two files, as two tasks would write them."""

    def write(spec: TableSpec, folder: Path) -> Written:
        halves = [{key: n for key, n in new.items() if key[0] % 2 == half} for half in (0, 1)]
        added = [write_rows(folder, table_of(half), ["a", "n"]) for half in halves if half]
        return Written(added, table_of(gone).select(KEY))

    return WrittenRows(write, all_new)


@pytest.mark.parametrize("index_memory_mb", [0, 100])
@pytest.mark.parametrize("layout", ["vectors", "plain"])
def test_written_rows_take_the_place_of_stored_ones(tmp_path: Path, layout: Layout, index_memory_mb: int) -> None:
    chance, spec = Random(index_memory_mb), TableSpec("t", "t", SCHEMA, KEY, layout)
    settings = StoreSettings(index_memory_mb=index_memory_mb, index_disk_mb=0)
    warehouse = Warehouse(tmp_path, cast(SparkSession, None), settings)
    model: Model = {(a, b): 0 for a in range(20) for b in "xy"}
    version = warehouse.commit(spec, warehouse.create(spec), written(model, {}, all_new=True), Stamp(1, 1, "0/1"))
    for attempt in range(2, 2 + 14 * SEEDS):
        new = {(chance.randrange(30), chance.choice("xyz")): attempt for _ in range(chance.choice([0, 1, 9]))}
        # Of some of them nothing is stored.
        gone = {key: 0 for key in [(chance.randrange(30), "x") for _ in range(3)] if key not in new}
        stamp = Stamp(1, attempt, "0/1")
        if chance.random() < 0.3:
            changes = Changes(table_of(gone).select(KEY), table_of(new))
            version = warehouse.commit(spec, version, changes, stamp)
        else:
            version = warehouse.commit(spec, version, written(new, gone), stamp)
        model = {key: n for key, n in (model | new).items() if key not in gone}
        found = read_table(tmp_path, "t", version).select(SCHEMA.names).to_pylist()
        assert sorted(tuple(row.values()) for row in found) == sorted((*key, n) for key, n in model.items())

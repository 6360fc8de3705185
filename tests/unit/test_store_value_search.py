"""Many rows for one key, replaced together; found again by the values of one column, whatever the files are like."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc_views.config import StoreSettings, UpkeepSettings
from cdc_views.store.commits.changes import Written, WrittenRows
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.files import data_files, merged_file
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.reading import StoredTables, read_table
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Stamp, Warehouse
from tests.samples import sample

pytestmark = pytest.mark.usefixtures("without_fsync")

SCHEMA = pa.schema([("term", pa.string()), ("document", pa.int64()), ("places", pa.list_(pa.int32()))])
SPEC = TableSpec("t", "t", SCHEMA, ("document",), sorted_by=("term", "document"))
TERMS = ["", "a", "ab", "abc", "b", "é", "中"]

Row = tuple[str, int, list[int]]


def table_of(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def sorted_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


class Terms:
    """A table whose documents have several rows, and the rows that it must have."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root, self.chance = root, Random(seed)
        self.warehouse = Warehouse(root, cast(SparkSession, None), StoreSettings())
        self.version = self.warehouse.create(SPEC)
        self.rows: list[Row] = []

    def commit(self, *, replaces_all: bool = False) -> None:
        """Replace some documents, or all."""
        documents = self.chance.sample(range(30), 10)
        new = [(term, each, [each]) for each in documents[:6] for term in self.chance.sample(TERMS, 3)]
        gone = [] if replaces_all else documents

        def write(spec: TableSpec, folder: Path) -> Written:
            deleted = pa.table({"document": pa.array(gone, pa.int64())})
            return Written([write_rows(folder, table_of(sorted(new)), ["document"])], deleted)

        changes = WrittenRows(write, all_new=False, replaces_all=replaces_all)
        self.version = self.warehouse.commit(SPEC, self.version, changes, Stamp(1, self.version + 2, "0/1"))
        kept = [] if replaces_all else [row for row in self.rows if row[1] not in gone]
        self.rows = [*kept, *new]


@pytest.mark.parametrize("index_bytes", [0, 1 << 20])
@pytest.mark.parametrize("seed", range(sample(1, 3)))
def test_rows_are_found_by_text_prefix_and_values(
    tmp_path: Path, seed: int, index_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "ROW_GROUP", 5)
    terms, stored = Terms(tmp_path, seed), StoredTables(tmp_path, index_bytes)
    for number in range(12):
        terms.commit(replaces_all=number == 5)
        assert sorted_rows(read_table(tmp_path, "t", terms.version)) == sorted(terms.rows)
        for text in TERMS:
            found = stored.with_text("t", terms.version, "term", text, SCHEMA.names)
            assert sorted_rows(found) == sorted(row for row in terms.rows if row[0] == text)
            prefixed = stored.with_prefix("t", terms.version, "term", text, SCHEMA.names, 1000)
            assert prefixed is not None
            assert sorted_rows(prefixed) == sorted(row for row in terms.rows if row[0].startswith(text))
        few = terms.chance.sample(range(35), 4)
        for wanted in (few, [*few, *range(100, 1100)]):  # few are fetched by page
            of_wanted = sorted(row for row in terms.rows if row[1] in wanted)
            keys = pa.array(wanted, pa.int64())
            found = stored.columns_of("t", terms.version, "document", keys, SCHEMA.names)
            assert sorted_rows(found) == of_wanted
            paged = stored.columns_of("t", terms.version, "document", keys, ["term", "document"])  # lists have no pages
            assert sorted_rows(paged) == [row[:2] for row in of_wanted]


def test_more_rows_than_wanted_of_a_prefix_are_none(tmp_path: Path) -> None:
    terms = Terms(tmp_path, 1)
    terms.commit()
    assert StoredTables(tmp_path).with_prefix("t", terms.version, "term", "", SCHEMA.names, 3) is None


def test_compaction_keeps_the_order_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merged_file, "ROW_GROUP", 5)
    terms = Terms(tmp_path, 2)
    for _ in range(4):
        terms.commit()
    upkeep = TableUpkeep(tmp_path, SPEC, UpkeepSettings(merged_files=4))
    assert upkeep.catch_up(terms.version)
    version = upkeep.compact(upkeep.files_due(), Stamp(1, 1, "0/1"))
    state = TableState.of(tmp_path / "t", version)
    assert state is not None
    assert len(state.files) == 1
    found = [(row["term"], row["document"]) for row in read_table(tmp_path, "t", version).to_pylist()]
    assert found == sorted((row[0], row[1]) for row in terms.rows)

"""Upkeep of one table: the same rows in fewer files, and nothing removed that is still read; without a JVM."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc_views.config import UpkeepSettings
from cdc_views.errors import Fenced, TableUnavailable
from cdc_views.store.delta_log.entries import read_entry
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.files.data_files import ROW_GROUP
from cdc_views.store.reading import read_table, require_readable
from cdc_views.store.upkeep import compaction
from cdc_views.store.upkeep import table_upkeep as upkeep
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, TableSpec, Warehouse
from cdc_views.testing import crash_at

pytestmark = pytest.mark.usefixtures("without_fsync")

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
SPEC = TableSpec("t", "t", SCHEMA, ("id",))
SETTINGS = UpkeepSettings(merged_files=4, deleted_part=0.25, keep_hours=0, checkpoint_versions=10, sweep_versions=10)
UPKEEP = Stamp(1, 1, "0/1")

Model = dict[int, tuple[Any, ...]]


def rows_of(model: Model) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in model.values()], SCHEMA)


class History:
    """A table whose every version is known."""

    def __init__(self, root: Path, settings: UpkeepSettings = SETTINGS) -> None:
        self.root, self.table = root, root / SPEC.path
        # No session: a change of this size is committed without Spark.
        self.warehouse = Warehouse(root, cast(SparkSession, None))
        self.version = self.warehouse.create(SPEC)
        self.upkeep = TableUpkeep(root, SPEC, settings)
        self.chance = random.Random(1)
        self.models: dict[int, Model] = {0: {}}

    def commit(self, rows: int = 5, keys: int = 40) -> None:
        before = self.models[self.version]
        new = {key: self._row(key) for key in self.chance.sample(range(keys), rows)}
        gone = {key: before[key] for key in sorted(before) if key not in new and self.chance.random() < 0.1}
        changes = Changes(rows_of(gone).select(["id"]) if gone else None, rows_of(new), all_new=not before)
        self.version = self.warehouse.commit(SPEC, self.version, changes, Stamp(1, self.version + 2, "0/1"))
        self.models[self.version] = {key: row for key, row in before.items() if key not in gone} | new

    def fill(self, rows: int, gone: int) -> None:
        """Make one file, and delete its first rows."""
        everything = pa.table([range(rows), pa.repeat("x", rows), pa.nulls(rows)], schema=SCHEMA)
        self.version = self.warehouse.commit(SPEC, 0, Changes(None, everything, True), Stamp(1, 2, "0/1"))
        deleted = everything.select(["id"]).slice(0, gone)
        self.version = self.warehouse.commit(
            SPEC, 1, Changes(deleted, everything.slice(0, 0), False), Stamp(1, 3, "0/1")
        )
        assert self.upkeep.catch_up(2)

    def keep_up(self, oldest: int) -> None:
        assert self.upkeep.catch_up(self.version)
        while files := self.upkeep.files_due():
            model = self.models[self.version]
            self.version = self.upkeep.compact(files, UPKEEP)
            self.models[self.version] = model
        if self.upkeep.is_checkpoint_due():
            self.upkeep.checkpoint()
        self.upkeep.sweep(oldest)

    def assert_right(self, since: int) -> None:
        for version in range(since, self.version + 1):
            found = {row["id"]: tuple(row.values()) for row in read_table(self.root, "t", version).to_pylist()}
            assert found == self.models[version], f"version {version}"

    def files(self) -> set[str]:
        return {file.name for file in self.table.iterdir() if file.is_file()}

    def rows_by_file(self) -> list[int]:
        """Of the newest version; deleted ones count."""
        return sorted(orjson.loads(add["stats"])["numRecords"] for add in self.upkeep.files)

    def _row(self, key: int) -> tuple[Any, ...]:
        return key, self.chance.choice([None, "", "é"]), self.chance.choice([None, [], ["a", None]])


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def test_compaction_makes_a_version_of_the_same_rows_that_changes_none(history: History) -> None:
    while not history.upkeep.catch_up(history.version) or not history.upkeep.files_due():
        history.commit()
    before = history.version
    history.keep_up(0)
    actions = read_entry(history.table, before + 1)
    files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
    assert {file["dataChange"] for file in files} == {False}
    assert history.warehouse.history.stamp_of("t", before + 1) == UPKEEP
    assert history.warehouse.history.unknown_commits("t", before) == []
    history.assert_right(since=0)


@pytest.mark.parametrize("shares_state", [False, True])
def test_files_and_log_stay_few_and_retained_versions_right(history: History, shares_state: bool) -> None:
    if shares_state:  # as in the engine: a commit advances what upkeep holds of the table
        table = history.warehouse.tables.table(SPEC.path)
        history.upkeep = TableUpkeep(history.root, SPEC, SETTINGS, table)
    most_files = most_entries = 0
    for _ in range(60):
        history.commit()
        history.keep_up(oldest=max(0, history.version - 15))
        most_files = max(most_files, len(history.upkeep.files))
        most_entries = max(most_entries, len(os.listdir(history.table / "_delta_log")))
    assert most_files < 2 * SETTINGS.merged_files
    assert most_entries < 50
    assert len(history.files()) < 100
    history.assert_right(since=history.version - 15)
    require_readable(history.root, "t", history.version - 15)
    with pytest.raises(TableUnavailable):
        require_readable(history.root, "t", history.version - 40)
    with pytest.raises(TableUnavailable):
        read_table(history.root, "t", 5)


def test_state_from_a_checkpoint_is_that_from_all_entries(history: History) -> None:
    whole = TableState()
    for _ in range(30):
        history.commit()
        assert whole.catch_up(history.table)
        history.keep_up(oldest=history.version)
    assert whole.catch_up(history.table)
    assert not (history.table / "_delta_log" / f"{0:020d}.json").exists()
    late = TableState()
    assert late.catch_up(history.table)
    named = ("path", "size", "stats", "deletionVector")
    assert (late.version, late.transactions, late.features) == (whole.version, whole.transactions, whole.features)
    assert {path: [add.get(name) for name in named] for path, add in late.files.items()} == {
        path: [add.get(name) for name in named] for path, add in whole.files.items()
    }


def test_upkeep_that_begins_anew_keeps_what_retained_versions_need(history: History) -> None:
    for _ in range(25):
        history.commit()
        history.keep_up(oldest=0)
    history.upkeep = TableUpkeep(history.root, SPEC, SETTINGS)
    history.keep_up(oldest=history.version - 12)
    history.assert_right(since=history.version - 12)


def test_larger_file_with_many_deleted_rows_is_written_anew_in_row_groups(tmp_path: Path) -> None:
    history = History(tmp_path, SETTINGS.model_copy(update={"target_mb": 0.001}))
    history.fill(5 * ROW_GROUP // 2, gone=ROW_GROUP)
    [file] = history.upkeep.files_due()
    history.upkeep.compact([file], UPKEEP)
    [written] = history.upkeep.files
    assert "deletionVector" not in written
    metadata = pq.ParquetFile(history.table / written["path"]).metadata
    assert [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)] == [
        ROW_GROUP,
        ROW_GROUP // 2,
    ]
    assert sorted(read_table(tmp_path, "t", 3)["id"].to_pylist()) == list(range(ROW_GROUP, 5 * ROW_GROUP // 2))
    assert history.upkeep.files_due() == []


def test_only_columns_whose_values_repeat_have_dictionaries(tmp_path: Path) -> None:
    history = History(tmp_path, SETTINGS.model_copy(update={"target_mb": 0.001}))
    history.fill(50_000, gone=20_000)
    history.upkeep.compact(history.upkeep.files_due(), UPKEEP)
    files = list(history.table.glob("*.parquet"))
    # As committed, and as compacted to so few row groups that they are soon rewritten.
    assert sorted(file.name.split(".")[-2] for file in files) == ["snappy", "zstd"]
    for file in files:
        group = pq.ParquetFile(file).metadata.row_group(0)
        columns = [group.column(number) for number in range(group.num_columns)]
        have = {column.path_in_schema: column.has_dictionary_page for column in columns}
        assert have == {"id": False, "name": True, "tags.list.element": False}, file


def test_compaction_leaves_full_files_alone(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "FULL_ROWS", 50_000)
    rows = rows_of({key: (key, "x", None) for key in range(120_000)})
    for first in range(0, rows.num_rows, 15_000):
        changes = Changes(None, rows.slice(first, 15_000), all_new=True)
        history.version = history.warehouse.commit(SPEC, history.version, changes, Stamp(1, history.version + 2, "0/1"))
    assert history.upkeep.catch_up(history.version)
    while files := history.upkeep.files_due():
        history.upkeep.compact(files, UPKEEP)
    assert history.rows_by_file() == [30_000, 45_000, 45_000]


def test_file_of_many_rows_and_few_bytes_is_written_anew_and_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "FULL_ROWS", 50_000)
    history = History(tmp_path, SETTINGS.model_copy(update={"target_mb": 100}))
    history.fill(160_000, gone=45_000)
    history.upkeep.compact(history.upkeep.files_due(), UPKEEP)
    assert history.rows_by_file() == [55_000, 60_000]
    assert sorted(read_table(history.root, "t", 3)["id"].to_pylist()) == list(range(45_000, 160_000))


def test_upkeep_that_has_fallen_behind_merges_all_at_once(history: History) -> None:
    while history.version < 30:
        history.commit()
    before = history.version
    history.keep_up(oldest=0)
    assert history.version == before + 1
    history.assert_right(since=before)


def test_sweep_removes_nothing_where_the_log_no_longer_says_what_is_needed(history: History) -> None:
    while history.version < 12:
        history.commit()
    history.upkeep.catch_up(history.version)
    history.upkeep.checkpoint()
    (history.table / "_delta_log" / f"{5:020d}.json").unlink()
    history.upkeep = TableUpkeep(history.root, SPEC, SETTINGS)
    before = history.files()
    history.keep_up(oldest=3)
    assert history.files() >= before
    history.keep_up(oldest=history.version)
    assert not history.files() >= before
    history.assert_right(since=history.version)


def test_sweep_leaves_files_that_are_younger_than_retention(tmp_path: Path) -> None:
    history = History(tmp_path, SETTINGS.model_copy(update={"keep_hours": 1.0}))
    history.commit()
    young, old = (history.table / f"part-{name}.parquet" for name in ("young", "old"))
    for file in (young, old):
        file.write_bytes(b"")
    draft = history.table / ".killed.tmp"  # of a checkpoint
    (draft / "_delta_log").mkdir(parents=True)
    for left in (old, draft):
        os.utime(left, (0, 0))
    history.keep_up(oldest=history.version)
    assert young.exists()
    assert not old.exists()
    assert not draft.exists()


def test_file_that_was_too_young_for_the_first_sweep_is_removed_when_it_is_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path, SETTINGS.model_copy(update={"keep_hours": 1.0}))
    history.commit()
    left = history.table / "part-left.parquet"
    left.write_bytes(b"")
    history.keep_up(oldest=history.version)
    assert left.exists()
    assert not history.upkeep.is_sweep_due()
    later = SimpleNamespace(time=lambda: time.time() + 3601, monotonic=lambda: time.monotonic() + 3601)
    monkeypatch.setattr(upkeep, "time", later)
    assert history.upkeep.is_sweep_due()
    history.keep_up(oldest=history.version)
    assert not left.exists()
    assert not history.upkeep.is_sweep_due()


def test_compaction_beside_another_writer_is_fenced_and_changes_nothing(history: History) -> None:
    while not history.upkeep.catch_up(history.version) or not history.upkeep.files_due():
        history.commit()
    files = history.upkeep.files_due()
    other = history.warehouse.fence("t", Stamp(1, 99, "0/1"))
    with pytest.raises(Fenced, match="was taken"):
        history.upkeep.compact(files, UPKEEP)
    assert history.warehouse.latest_version("t") == other


@pytest.mark.parametrize(
    "point", ["after_data_file", "after_compaction", "after_checkpoint", "after_first_log_file",
              "after_first_removed_file"],
)  # fmt: skip
def test_crash_in_upkeep_leaves_the_version_and_orphans_that_the_next_one_removes(history: History, point: str) -> None:
    for until in (12, 24):
        history.keep_up(oldest=0)
        while history.version < until:
            history.commit()
    with crash_at(f"upkeep.{point}"):
        history.keep_up(oldest=history.version - 5)
    history.version = history.warehouse.latest_version("t")
    history.models.setdefault(history.version, history.models[max(history.models)])
    history.assert_right(since=max(history.models) - 5)
    history.upkeep = TableUpkeep(history.root, SPEC, SETTINGS)
    history.keep_up(oldest=history.version)
    history.keep_up(oldest=history.version)
    history.assert_right(since=history.version)
    named = {name for add in history.upkeep.files for name in (add["path"],)}
    vectors = {file for file in history.files() - named if file.startswith("deletion_vector_")}
    assert history.files() == named | vectors
    assert len(vectors) <= len(named)
    assert DeltaTable(str(history.table)).version() == history.version

"""After a loss of power at any moment of a commit there is the version before it or the new one, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from cdc_views.config import StoreSettings, UpkeepSettings
from cdc_views.store.commits.changes import Written, WrittenRows
from cdc_views.store.control.control_log import ControlLog, read_control
from cdc_views.store.delta_log.operations.checkpoint import clean_log, write_checkpoint
from cdc_views.store.delta_log.schema import Layout
from cdc_views.store.delta_log.torn import remove_torn_entries
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.reading import read_table
from cdc_views.store.storage import durable
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse
from tests.power_loss import Disk, found_after

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])
SPEC = TableSpec("t", "mirrors/t", SCHEMA, ("id",))
PLAIN = TableSpec("t", "mirrors/t", SCHEMA, ("id",), "plain")
UPKEEP = UpkeepSettings(merged_files=3, checkpoint_versions=1, sweep_versions=1, keep_hours=0)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    (tmp_path / "warehouse").mkdir()
    disk = Disk(tmp_path / "warehouse", monkeypatch)
    disk.take_all()
    return disk


@pytest.fixture
def without_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test may turn fsync off: it is on again afterwards."""
    monkeypatch.setattr(durable, "_is_on", True)


def warehouse_in(folder: Path, settings: StoreSettings = StoreSettings()) -> Warehouse:  # noqa: B008 - frozen
    """A warehouse that has no Spark: what needs it fails."""
    return Warehouse(folder, cast(Any, None), settings)


def rows(*ids: int, note: str = "") -> pa.Table:
    return pa.table([list(ids), [note] * len(ids)], schema=SCHEMA)


def read(root: Path) -> list[tuple[int, str]]:
    found = read_table(root, SPEC.path, warehouse_in(root).latest_version(SPEC.path)).to_pylist()
    return sorted((row["id"], row["note"]) for row in found)


def commit(warehouse: Warehouse, version: int, changes: Changes) -> int:
    return warehouse.commit(SPEC, version, changes, Stamp(1, version + 1, "0/1"))


def written(changes: Changes) -> WrittenRows:
    """The same change, its rows in a file each, as tasks would write them."""
    new, deleted = cast(pa.Table, changes.rows), cast(pa.Table | None, changes.deleted)

    def write(spec: TableSpec, folder: Path) -> Written:
        files = [write_rows(folder, new.slice(number, 1), ["id"]) for number in range(new.num_rows)]
        return Written(files, rows().select(["id"]) if deleted is None else deleted)

    return WrittenRows(write, changes.all_new)


@pytest.mark.parametrize("spec", [SPEC, PLAIN], ids=lambda spec: spec.layout)
@pytest.mark.parametrize("way", [Changes, WrittenRows])
def test_power_loss_at_any_step_of_a_commit_leaves_the_old_version_or_the_new(
    tmp_path: Path, disk: Disk, spec: TableSpec, way: type
) -> None:
    root = tmp_path / "warehouse"
    warehouse = warehouse_in(root)
    warehouse.create(spec)
    version = warehouse.commit(spec, 0, Changes(None, rows(1, 2, 3), all_new=True), Stamp(1, 1, "0/1"))
    for changes in (
        Changes(rows(1).select(["id"]), rows(3, 4, note="new")),  # data files and a deletion vector, or rows kept
        Changes(rows(4).select(["id"]), rows()),  # a deletion vector alone, or nothing new
        Changes(None, rows(9), all_new=True),  # a data file alone
    ):
        old = read(root)
        disk.states = []
        change = changes if way is Changes else written(changes)
        version = warehouse.commit(spec, version, change, Stamp(1, version + 1, "0/1"))
        assert old != read(root)
        assert_found(disk, tmp_path, old, read(root))


def assert_found(disk: Disk, tmp_path: Path, old: object, new: object) -> None:
    """The old rows or the new ones are found at any moment of what was done, and the new ones after it."""
    found = found_after(disk.states, tmp_path / "after", read)
    assert {str(each) for each in found} == {str(old), str(new)}
    assert all(each == new for each in found_after(disk.lose_power(), tmp_path / "after", read))


def with_small_files(warehouse: Warehouse, count: int = 4) -> int:
    """A table of so many files, one of which has lost a row."""
    version = warehouse.create(SPEC)
    for number in range(count):
        version = commit(warehouse, version, Changes(None, rows(number, number + 100), all_new=True))
    return commit(warehouse, version, Changes(rows(0).select(["id"]), rows(100, note="new")))


def test_power_loss_at_any_step_of_a_restore_leaves_the_old_version_or_the_restored(tmp_path: Path, disk: Disk) -> None:
    root = tmp_path / "warehouse"
    warehouse = warehouse_in(root)
    version = with_small_files(warehouse)
    old, disk.states = read(root), []
    warehouse.restore(SPEC.path, version - 2, Stamp(1, version + 1, "0/1"), version)
    assert old != read(root)
    assert_found(disk, tmp_path, old, read(root))


def test_power_loss_at_any_step_of_a_fence_or_a_compaction_leaves_the_rows(tmp_path: Path, disk: Disk) -> None:
    root, upkeep = tmp_path / "warehouse", TableUpkeep(tmp_path / "warehouse", SPEC, UPKEEP)
    warehouse = warehouse_in(root)
    version = with_small_files(warehouse)
    rows_of_it, disk.states = read(root), []
    assert warehouse.fence(SPEC.path, Stamp(1, version + 1, "0/1")) == version + 1
    assert upkeep.catch_up(version + 1)
    assert upkeep.compact(upkeep.files_due(), Stamp(1, version + 1, "0/1")) == version + 2
    assert_found(disk, tmp_path, rows_of_it, rows_of_it)
    newest = found_after(disk.states, tmp_path / "after", lambda root: warehouse_in(root).latest_version(SPEC.path))
    assert set(newest) == {version, version + 1, version + 2}
    last = found_after(disk.lose_power(), tmp_path / "after", lambda root: warehouse_in(root).latest_version(SPEC.path))
    assert set(last) == {version + 2}


def read_and_keep_up(root: Path) -> tuple[list[tuple[int, str]], list[tuple[int, str]]]:
    """The rows as they are found, and after upkeep has relied on what it found there: checkpoints."""
    found = read(root)
    upkeep = TableUpkeep(root, SPEC, UPKEEP)
    version = warehouse_in(root).latest_version(SPEC.path)
    assert upkeep.catch_up(version)
    upkeep.sweep(version)
    version = commit(warehouse_in(root), version, Changes(None, rows(77), all_new=True))
    assert upkeep.catch_up(version)
    return found, [row for row in read(root) if row[0] != 77]


def test_power_loss_while_a_checkpoint_is_written_or_the_log_cleaned_up_leaves_the_rows(
    tmp_path: Path, disk: Disk
) -> None:
    root, upkeep = tmp_path / "warehouse", TableUpkeep(tmp_path / "warehouse", SPEC, UPKEEP)
    warehouse = warehouse_in(root)
    version = with_small_files(warehouse)
    for _ in range(2):  # the second one stands on the first
        rows_of_it, disk.states = read(root), []
        assert upkeep.catch_up(version)
        upkeep.checkpoint()
        before = disk.lose_power()[-1]
        assert upkeep.sweep(version)
        after = disk.lose_power()[-1]
        # What is removed may vanish in any order.
        disk.states += [
            {name: before[name] for name in before if name != gone} for gone in before.keys() - after.keys()
        ]
        disk.states += disk.lose_power()
        found = found_after(disk.states, tmp_path / "after", read_and_keep_up)
        assert all(each == (rows_of_it, rows_of_it) for each in found)
        version = commit(warehouse, version, Changes(rows(1).select(["id"]), rows(200 + version)))


def test_power_loss_after_the_first_commit_of_a_table_leaves_it(tmp_path: Path, disk: Disk) -> None:
    warehouse = warehouse_in(tmp_path / "warehouse")
    warehouse.create(SPEC)
    commit(warehouse, 0, Changes(None, rows(1), all_new=True))
    assert all(found == [(1, "")] for found in found_after(disk.lose_power(), tmp_path / "after", read))


def test_power_loss_at_any_step_of_a_control_record_leaves_those_before_it_or_all(tmp_path: Path, disk: Disk) -> None:
    log = ControlLog.open(tmp_path / "warehouse", "writer")
    log.take_over()
    disk.states = []
    log.append(kind="upkeep", epoch=1, attempt=2)
    found = found_after(disk.states, tmp_path / "after", lambda root: len(read_control(root)))
    assert set(found) == {1, 2}
    assert set(found_after(disk.lose_power(), tmp_path / "after", lambda root: len(read_control(root)))) == {2}


def test_power_loss_at_any_step_of_a_checkpoint_leaves_a_table_that_can_be_read(tmp_path: Path, disk: Disk) -> None:
    root = tmp_path / "warehouse"
    warehouse, version = warehouse_in(root), warehouse_in(root).create(SPEC)
    for number in range(1, 7):
        version = commit(warehouse, version, Changes(None, rows(number), all_new=True))
        if number % 3 == 0:
            disk.states = []
            assert write_checkpoint(root / SPEC.path) == version
            assert {str(each) for each in found_after(disk.states, tmp_path / "after", read)} == {str(read(root))}
    assert clean_log(root / SPEC.path, version) > 0
    assert all(found == read(root) for found in found_after(disk.lose_power(), tmp_path / "after", read))


def test_without_fsync_there_is_a_warning_and_a_commit_may_be_lost(
    tmp_path: Path, disk: Disk, without_fsync: None
) -> None:
    root = tmp_path / "warehouse"
    warehouse = warehouse_in(root)
    warehouse.create(SPEC)
    with pytest.warns(RuntimeWarning, match=r"store\.fsync is false"):
        careless = warehouse_in(root, StoreSettings(fsync=False))
    commit(careless, 0, Changes(None, rows(1), all_new=True))
    assert found_after(disk.lose_power()[:1], tmp_path / "after", read) == [[]]


def test_entries_that_cannot_be_read_are_removed_down_to_the_published_version(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    version = warehouse.create(SPEC)
    for number in range(3):
        version = commit(warehouse, version, Changes(None, rows(number), all_new=True))
    log = tmp_path / SPEC.path / "_delta_log"
    for torn in (2, 3):
        (log / f"{torn:020d}.json").write_bytes(b'{"commitInfo": {' if torn == 2 else b"")
    (log / f".{3:020d}.json.crc").touch()
    assert warehouse_in(tmp_path).create(SPEC) == 3
    assert remove_torn_entries(tmp_path / SPEC.path, 2) == [3]
    assert warehouse_in(tmp_path).create(SPEC) == 2
    assert remove_torn_entries(tmp_path / SPEC.path, 1) == [2]
    assert [file.name for file in log.iterdir() if file.name.endswith("crc")] == []
    assert read(tmp_path) == [(0, "")]


def test_version_without_all_of_its_files_is_not_whole(tmp_path: Path) -> None:
    warehouse = warehouse_in(tmp_path)
    version = commit(warehouse, warehouse.create(SPEC), Changes(None, rows(1, 2, 3), all_new=True))
    commit(warehouse, version, Changes(rows(1).select(["id"]), rows(4)))
    for file in sorted((tmp_path / SPEC.path).glob("*.*")):
        content = file.read_bytes()
        assert warehouse.has_all_files(SPEC.path, 0)
        file.write_bytes(content[:-1])
        assert not warehouse.has_all_files(SPEC.path, 0), file.name
        file.unlink()
        assert not warehouse.has_all_files(SPEC.path, 0), file.name
        file.write_bytes(content)


@pytest.mark.parametrize("layout", ["vectors", "plain"])
def test_power_loss_at_any_step_of_a_compaction_or_a_rewriting_leaves_the_rows_before_or_after(
    tmp_path: Path, disk: Disk, layout: Layout
) -> None:
    root, spec = tmp_path / "warehouse", replace(SPEC, layout=layout)
    warehouse, upkeep = warehouse_in(root), TableUpkeep(root, spec, UpkeepSettings(merged_files=2))
    version = warehouse.create(spec)
    for first in (1, 5):
        added = Changes(None, rows(*range(first, first + 4)), all_new=True)
        version = warehouse.commit(spec, version, added, Stamp(1, version + 1, "0/1"))
    old = read(root)
    disk.states = []
    changes = Changes(rows(1, 5).select(["id"]), rows(2, 6, note="new"))
    version = warehouse.commit(spec, version, changes, Stamp(1, version + 1, "0/1"))
    new = read(root)
    assert {str(each) for each in found_after(disk.states, tmp_path / "after", read)} == {str(old), str(new)}
    assert upkeep.catch_up(version)
    disk.states = []
    upkeep.compact(upkeep.files_due(), Stamp(1, version, "0/1"))
    assert_found(disk, tmp_path, new, new)

"""After a loss of power at any moment of a commit there is the version before it or the new one, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from cdc_views.config import StoreSettings, UpkeepSettings
from cdc_views.store import durable
from cdc_views.store.checkpoint import clean_log, write_checkpoint
from cdc_views.store.control import ControlLog, read_control
from cdc_views.store.reading import read_table
from cdc_views.store.schema import Layout
from cdc_views.store.torn import remove_torn_entries
from cdc_views.store.upkeep import TableUpkeep
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse
from tests.power_loss import Disk, found_after

SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string())])
SPEC = TableSpec("t", "mirrors/t", SCHEMA, ("id",))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    (tmp_path / "warehouse").mkdir()
    disk = Disk(tmp_path / "warehouse", monkeypatch)
    disk.take_all()
    return disk


@pytest.fixture
def without_fsync() -> Iterator[None]:
    yield
    durable.turn_on()


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


def test_power_loss_at_any_step_of_a_commit_leaves_the_old_version_or_the_new(tmp_path: Path, disk: Disk) -> None:
    root = tmp_path / "warehouse"
    warehouse = warehouse_in(root)
    warehouse.create(SPEC)
    version = commit(warehouse, 0, Changes(None, rows(1, 2, 3), all_new=True))
    for changes in (
        Changes(rows(1).select(["id"]), rows(3, 4, note="new")),  # a data file and a deletion vector
        Changes(rows(4).select(["id"]), rows()),  # a deletion vector alone
        Changes(None, rows(9), all_new=True),  # a data file alone
    ):
        old = read(root)
        disk.states = []
        version = commit(warehouse, version, changes)
        new = read(root)
        assert old != new
        found = found_after(disk.states, tmp_path / "after", read)
        assert {str(each) for each in found} == {str(old), str(new)}
        assert found_after(disk.lose_power(), tmp_path / "after", read) == [new] * 3


def test_power_loss_after_the_first_commit_of_a_table_leaves_it(tmp_path: Path, disk: Disk) -> None:
    warehouse = warehouse_in(tmp_path / "warehouse")
    warehouse.create(SPEC)
    commit(warehouse, 0, Changes(None, rows(1), all_new=True))
    assert found_after(disk.lose_power(), tmp_path / "after", read) == [[(1, "")]] * 3


def test_power_loss_at_any_step_of_a_control_record_leaves_those_before_it_or_all(tmp_path: Path, disk: Disk) -> None:
    log = ControlLog.open(tmp_path / "warehouse", "writer")
    log.take_over()
    disk.states = []
    log.append(kind="upkeep", epoch=1, attempt=2)
    found = found_after(disk.states, tmp_path / "after", lambda root: len(read_control(root)))
    assert set(found) == {1, 2}
    assert found_after(disk.lose_power(), tmp_path / "after", lambda root: len(read_control(root))) == [2] * 3


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
    assert found_after(disk.lose_power(), tmp_path / "after", read) == [read(root)] * 3


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
        assert warehouse.is_whole(SPEC.path, 0)
        file.write_bytes(content[:-1])
        assert not warehouse.is_whole(SPEC.path, 0), file.name
        file.unlink()
        assert not warehouse.is_whole(SPEC.path, 0), file.name
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
    assert upkeep.is_known(version)
    disk.states = []
    upkeep.compact(upkeep.files_due(), Stamp(1, version, "0/1"))
    assert {str(each) for each in found_after(disk.states, tmp_path / "after", read)} == {str(new)}
    assert found_after(disk.lose_power(), tmp_path / "after", read) == [new] * 3

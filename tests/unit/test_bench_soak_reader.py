"""The soak's reader of pinned epochs sees an epoch that is torn, and one that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from bench.soak import readers
from bench.soak.readers import PinnedReader
from bench.soak.world import BANK_TOTAL
from cdc_views.store.control.control_log import ControlLog, TableVersion
from tests.waiting import wait_for

TABLES = ("public.accounts", "public.savings", "bank")
MOVED = 5
READINGS = 5


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The bank before a transfer, version 0 of each table, and after it, version 1."""
    for accounts in (BANK_TOTAL // 2, BANK_TOTAL // 2 - MOVED):
        for name, value in zip(TABLES, (accounts, BANK_TOTAL - accounts, BANK_TOTAL), strict=True):
            column = "total" if name == "bank" else "balance"
            write_deltalake(str(tmp_path / name), pa.table({column: [value]}), mode="overwrite")
    return tmp_path


def publish(root: Path, *versions: int) -> None:
    """Make these versions of the tables epoch 1."""
    control = ControlLog.open(root, "writer")
    control.take_over()
    tables = {name: TableVersion(name, version, "ok", "view") for name, version in zip(TABLES, versions, strict=True)}
    control.append(kind="publish", epoch=1, attempt=control.new_attempt(), tables=tables)


@pytest.fixture(autouse=True)
def _without_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "_LEAST_REST_S", 0.0)
    monkeypatch.setattr(readers, "_REST", 0)


def seen(root: Path) -> tuple[set[int], set[str]]:
    """Which epochs are broken, and what failed, after some readings."""
    with PinnedReader(root, 1) as reader:
        wait_for(lambda: reader.readings + len(reader.failures) >= READINGS, 30)
    return set(reader.broken), {failure.partition(":")[0] for failure in reader.failures}


@pytest.mark.parametrize("version", [0, 1])
def test_reading_a_whole_epoch_finds_nothing(root: Path, version: int) -> None:
    publish(root, version, version, version)
    assert seen(root) == (set(), set())


@pytest.mark.parametrize("versions", [(0, 1, 1), (1, 0, 0)])
def test_reading_a_torn_epoch_finds_it(root: Path, versions: tuple[int, ...]) -> None:
    publish(root, *versions)
    assert seen(root) == ({1}, set())


def test_reading_a_version_that_is_not_there_is_a_failure(root: Path) -> None:
    publish(root, 0, 0, 9)
    assert seen(root) == (set(), {"TableUnavailable"})

"""Log entries as files: put if absent."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from cdc_views.errors import DiskFull, TableUnavailable
from cdc_views.store.delta_log.entries import (
    LOG_FOLDER,
    NO_TABLE,
    VersionTaken,
    entry_file,
    newest_version,
    put_entry,
    read_entry,
)


def test_newest_version_without_a_table_is_none(tmp_path: Path) -> None:
    assert newest_version(tmp_path / "t") == NO_TABLE


def test_newest_version_ignores_what_is_not_an_entry(tmp_path: Path) -> None:
    for version in range(4):
        put_entry(tmp_path, version, [{"txn": {}}])
    for name in ("00000000000000000009.crc", ".00000000000000000009.json.crc", "00000000000000000009.json.tmp"):
        (tmp_path / LOG_FOLDER / name).touch()
    assert newest_version(tmp_path) == 3


def test_put_entry_over_an_existing_version_leaves_that_one(tmp_path: Path) -> None:
    put_entry(tmp_path, 0, [{"txn": {"version": 1}}])
    with pytest.raises(VersionTaken):
        put_entry(tmp_path, 0, [{"txn": {"version": 2}}])
    assert read_entry(tmp_path, 0) == [{"txn": {"version": 1}}]


def test_put_entry_by_many_threads_succeeds_once(tmp_path: Path) -> None:
    results: list[bool] = []

    def put(number: int) -> None:
        try:
            put_entry(tmp_path, 0, [{"txn": {"version": number}}])
            results.append(True)
        except VersionTaken:
            results.append(False)

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [False] * 7 + [True]


def test_put_entry_leaves_no_draft(tmp_path: Path) -> None:
    put_entry(tmp_path, 0, [{"txn": {}}])
    assert os.listdir(tmp_path / LOG_FOLDER) == [f"{0:020d}.json"]


def test_put_entry_on_a_full_disk_is_disk_full_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DiskFull):
        put_entry(tmp_path, 0, [{"txn": {}}])
    assert os.listdir(tmp_path / LOG_FOLDER) == []


def test_read_entry_that_is_gone_names_the_version(tmp_path: Path) -> None:
    for version in (0, 1):
        put_entry(tmp_path / "t", version, [{"txn": {}}])
    entry_file(tmp_path / "t", 0).unlink()
    with pytest.raises(TableUnavailable, match="version 0 is gone, newest is 1"):
        read_entry(tmp_path / "t", 0)

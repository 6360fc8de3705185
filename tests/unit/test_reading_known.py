"""What a reader that lives long knows of the control log: only new records are read, and none is missed."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import cdc_views
from cdc_views.errors import NothingPublished
from cdc_views.store.control import ControlRecord, KnownRecords, control_log, known_log
from tests.unit.published import ORDERS, Published

LIMIT_S = 30


@pytest.fixture
def shop(tmp_path: Path) -> Published:
    shop = Published(tmp_path / "warehouse")
    shop.write(ORDERS, [(1, "a")])
    shop.publish()
    return shop


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files of the control log that are read, and "all" for all of it."""
    found: list[str] = []
    rows_of, read_all = control_log._rows_of, known_log.read_control
    monkeypatch.setattr(control_log, "_rows_of", lambda file: (found.append(file.name), rows_of(file))[1])
    monkeypatch.setattr(known_log, "read_control", lambda root: (found.append("all"), read_all(root))[1])
    return found


def test_log_without_new_records_is_not_read_again(shop: Published, reads: list[str]) -> None:
    known = KnownRecords(shop.root)
    assert known.last().epoch == 1
    reads.clear()
    assert (known.last().epoch, known.after(1)) == (1, [])
    shop.control.append(kind="intent", epoch=2, attempt=shop.control.new_attempt())
    assert known.last().epoch == 1
    assert len(reads) == 1  # the last published record, below the intent


def test_every_new_record_is_found_once(shop: Published) -> None:
    known = KnownRecords(shop.root)
    known.last()
    for _ in range(3):
        shop.publish()
    assert [record.epoch for record in known.after(1)] == [2, 3, 4]
    shop.publish()
    assert [record.epoch for record in known.after(1)] == [2, 3, 4, 5]
    assert [record.epoch for record in known.after(0)] == [1, 2, 3, 4, 5]  # from the log
    assert known.last().epoch == 5


def test_earlier_moments_read_the_log_once(shop: Published, reads: list[str]) -> None:
    wh = cdc_views.open(shop.root)
    assert wh.epoch(at=1).number == 1
    for epoch in range(2, 6):
        shop.publish()
        assert wh.epoch(at=epoch).number == wh.epoch(at=f"0/{epoch}00").number == epoch
    assert wh.epoch(at=1).number == 1
    assert reads.count("all") == 1


def test_last_record_is_known_while_all_are_read(shop: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    known, found = KnownRecords(shop.root), list[int]()
    read_all = known_log.read_control

    def read_control(root: Path) -> list[ControlRecord]:
        with ThreadPoolExecutor(1) as other:
            found.append(other.submit(known.last).result(LIMIT_S).epoch)
        return read_all(root)

    monkeypatch.setattr(known_log, "read_control", read_control)
    assert [record.epoch for record in known.published()] == found == [1]


def test_log_that_is_replaced_while_it_is_read_is_read_again(shop: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    known, read_all = KnownRecords(shop.root), known_log.read_control

    def read_control(root: Path) -> list[ControlRecord]:
        monkeypatch.setattr(known_log, "read_control", read_all)
        records = read_all(root)
        shutil.rmtree(root)
        again = Published(root)
        again.generation = "another"
        again.publish()
        return records

    monkeypatch.setattr(known_log, "read_control", read_control)
    assert [record.generation for record in known.published()] == ["another"]


def test_log_that_is_created_again_is_another_one(shop: Published, tmp_path: Path) -> None:
    known = KnownRecords(shop.root)
    shop.publish()
    assert [record.epoch for record in known.published()] == [1, 2]
    shutil.rmtree(shop.root)
    shop.root.mkdir()
    with pytest.raises(NothingPublished):
        known.last()
    again = Published(shop.root)
    again.write(ORDERS, [(1, "a")])
    again.publish()
    assert (known.last().epoch, [record.epoch for record in known.published()]) == (1, [1])

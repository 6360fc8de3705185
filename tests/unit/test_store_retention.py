"""Retention: which epochs can still be read, and what the control log itself keeps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc_views.base.lsn import Lsn
from cdc_views.config import UpkeepSettings
from cdc_views.errors import Fenced, ForeignCommit
from cdc_views.store.control.control_log import (
    FOLDER,
    ControlLog,
    ControlRecord,
    TableVersion,
    known_attempts,
    last_published,
    read_control,
)
from cdc_views.store.control.retention import Needed, needed
from cdc_views.store.upkeep.control_upkeep import ControlUpkeep
from cdc_views.testing import HandClock, crash_at
from tests.samples import sample

pytestmark = pytest.mark.usefixtures("without_fsync")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SETTINGS = UpkeepSettings(
    keep_epochs=2, keep_hours=1, keep_records=1, keep_tables_hours=24, checkpoint_versions=20, sweep_versions=20
)


def published(seq: int, minutes_ago: float, *, is_idle: bool = False, **tables: tuple[str, int]) -> ControlRecord:
    named = {name: TableVersion(path, version, "live", "view") for name, (path, version) in tables.items()}
    at = NOON - timedelta(minutes=minutes_ago)
    detail = {} if is_idle else {"changes": {}}
    return ControlRecord(seq, 1, "w", "publish", seq, seq, published_at=at, tables=named, detail=detail)


def test_epoch_is_kept_for_an_hour_after_its_successor() -> None:
    records = [published(1, 500, a=("a", 1)), published(2, 59, a=("a", 2)), published(3, 9, a=("a", 3)),
               published(4, 1, a=("a", 4))]  # fmt: skip
    assert needed(records, NOON, SETTINGS).oldest == {"a": 1}
    assert needed(records, NOON + timedelta(minutes=2), SETTINGS).oldest == {"a": 2}


def test_last_epochs_are_kept_whatever_their_age_and_so_is_an_open_intent() -> None:
    records = [published(seq, 10_000 - seq, a=("a", seq), b=("b", 7)) for seq in range(1, 5)]
    found = needed(records, NOON, SETTINGS)
    assert (found.oldest, found.first, found.kept) == ({"a": 3, "b": 7}, 4, {3, 4})
    intent = replace(published(5, 0, a=("a", 2), c=("c", 1)), kind="intent", published_at=None)
    assert needed([*records, intent], NOON, SETTINGS).oldest == {"a": 2, "b": 7, "c": 1}


def test_epochs_without_changes_do_not_push_out_those_with_changes() -> None:
    records = [
        *(published(seq, 10_000 - seq, a=("a", seq)) for seq in (1, 2, 3)),
        *(published(seq, 1_000 - seq, is_idle=True, a=("a", 3)) for seq in range(4, 50)),
    ]
    found = needed(records, NOON, SETTINGS)
    assert (found.oldest, found.first, found.kept) == ({"a": 2}, 49, {2, 3, 49})


def test_view_that_failed_keeps_its_last_good_version() -> None:
    records = [published(seq, 10_000 - seq, v=("v", 1 if seq > 1 else 0)) for seq in range(1, 9)]
    assert needed(records, NOON, SETTINGS).oldest == {"v": 1}


def test_replaced_table_is_kept_for_a_day() -> None:
    swap = replace(
        published(2, 23 * 60, a=("a-2", 1)),
        kind="swap",
        detail={"replaced": {"a": {"path": "a", "version": 9, "epoch": 1}}},
    )
    records = [published(1, 2000, a=("a", 9)), swap, *(published(seq, 10, a=("a-2", seq)) for seq in (3, 4, 5))]
    assert needed(records, NOON, SETTINGS).oldest["a"] == 9
    assert "a" not in needed(records, NOON + timedelta(hours=2), SETTINGS).oldest


def test_rebuild_under_way_keeps_its_epochs() -> None:
    records = [published(seq, 1000 - seq, a=("a", seq)) for seq in range(1, 9)]
    since = NOON - timedelta(minutes=1000 - 4.5)
    assert needed(records, NOON, SETTINGS, rebuilding_since=since).oldest == {"a": 4}
    assert needed(records, NOON, SETTINGS, rebuilt_from=[2]).oldest == {"a": 2}


class Epochs:
    """A control log to which epochs are published."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings = SETTINGS.model_copy(update={"keep_hours": 0.5})
        self.clock = HandClock(NOON)
        self.rebuilt_from: list[int] = []
        self.open()

    def open(self) -> None:
        self.control = ControlLog.open(self.root, "w", self.clock)
        self.control.take_over(generation="g", detail={"source": "facts"})
        self.upkeep = ControlUpkeep(self.root, self.control, SETTINGS.model_copy(update={"keep_hours": 0}))

    def stand_idle(self, epochs: int) -> None:
        """Publish epochs that only move the position on."""
        for _ in range(epochs):
            self.clock.advance(60)
            last = self.control.last_published
            assert last is not None
            self.control.append(
                kind="publish", epoch=self.control.new_epoch(), attempt=self.control.new_attempt(),
                position=Lsn(last.epoch + 1), tables=last.tables,
            )  # fmt: skip

    def publish(self, epochs: int) -> None:
        for _ in range(epochs):
            self.clock.advance(60)
            epoch, attempt = self.control.new_epoch(), self.control.new_attempt()
            self.control.append(kind="intent", epoch=epoch, attempt=attempt)
            self.control.append(
                kind="publish",
                epoch=epoch,
                attempt=attempt,
                position=Lsn(epoch),
                tables={"a": TableVersion("a", epoch, "live", "view")},
                detail={"changes": {"a": 1}},
            )

    def keep_up(self) -> None:
        while self.upkeep.is_compaction_due():
            self.upkeep.compact(self.needed())
        if self.upkeep.is_checkpoint_due():
            self.upkeep.checkpoint()
        self.upkeep.is_sweep_due()
        self.upkeep.sweep()

    def needed(self) -> Needed:
        return needed(self.control.records, self.clock.now(), self.settings, rebuilt_from=self.rebuilt_from)


@pytest.fixture
def epochs(tmp_path: Path) -> Epochs:
    return Epochs(tmp_path)


def test_control_log_stays_short_and_keeps_the_takeover_and_every_late_record(epochs: Epochs) -> None:
    for _ in range(sample(4, 6)):
        epochs.publish(18)
        epochs.keep_up()
        assert last_published(epochs.root) == epochs.control.last_published
    records = read_control(epochs.root)
    assert records == epochs.control.records
    assert (records[0].seq, records[0].detail) == (1, {"source": "facts"})
    assert 1 < records[1].seq <= epochs.needed().first
    assert len(records) < 150
    assert len(DeltaTable(str(epochs.root / FOLDER)).file_uris()) < 64
    assert len(list((epochs.root / FOLDER).glob("*.parquet"))) < 250
    assert all(attempt in known_attempts(records) for attempt in range(1, epochs.control.last_attempt + 1))
    assert epochs.control.last_attempt + 1 not in known_attempts(records)


# The records of 300 epochs make a file that is not merged with small ones, and that the last 100 records are in.
@pytest.mark.parametrize(("keep_epochs", "keep_records"), [(2, 1), pytest.param(300, 100, marks=pytest.mark.nightly)])
def test_control_log_keeps_each_epoch_with_changes_once_however_many_follow_without(
    epochs: Epochs, keep_epochs: int, keep_records: int
) -> None:
    kept = {"keep_epochs": keep_epochs, "keep_records": keep_records}
    epochs.settings = epochs.settings.model_copy(update=kept)
    epochs.publish(keep_epochs + 38)
    with_changes = [record for record in epochs.control.records if record.kind == "publish"][-keep_epochs:]
    for idle in (3, 40, 7, 60, 33, 200, 40)[: sample(4, 7)]:
        epochs.stand_idle(idle)
        epochs.keep_up()
        records = read_control(epochs.root)
        assert records == epochs.control.records
        assert [record for record in records if "changes" in record.detail][-keep_epochs:] == with_changes
        rows = pa.table(DeltaTable(str(epochs.root / FOLDER)).scan())["seq"].to_pylist()
        assert len(rows) == len(set(rows))
    assert len(records) < 150 + keep_epochs + keep_records
    assert epochs.needed().oldest == {"a": with_changes[0].tables["a"].version}
    epochs.publish(1)
    epochs.stand_idle(100)
    epochs.keep_up()
    records = read_control(epochs.root)
    assert records[0].kind == "takeover"
    left = [record for record in records if "changes" in record.detail]
    assert left[:-1] == with_changes[1:]


def test_control_log_keeps_what_is_needed_again_before_the_number_from_which_all_is_there(epochs: Epochs) -> None:
    epochs.settings = epochs.settings.model_copy(update={"keep_epochs": 3, "keep_records": 1})
    epochs.publish(40)
    epochs.stand_idle(60)
    epochs.keep_up()
    kept = [record for record in epochs.control.records if "changes" in record.detail]
    assert len(kept) == 3
    assert kept[0].seq < epochs.control.first
    # A rebuild from the oldest of them needs all records since then, and those in between are gone.
    epochs.rebuilt_from = [kept[0].epoch]
    for _ in range(2):
        epochs.stand_idle(60)
        epochs.keep_up()
        assert [record for record in read_control(epochs.root) if "changes" in record.detail] == kept
        assert read_control(epochs.root) == epochs.control.records
        assert epochs.needed().oldest == {"a": kept[0].tables["a"].version}


def test_rollback_keeps_the_epoch_that_holds_what_it_publishes_again() -> None:
    replaced = {"a": {"path": "a", "version": 1, "epoch": 1}}
    records = [
        published(1, 10_000, is_idle=True, a=("a", 1)),
        replace(published(2, 600, a=("a-2", 1)), kind="swap", detail={"replaced": replaced}),
        *(published(seq, 600 - seq, is_idle=True, a=("a-2", 1)) for seq in range(3, 60)),
    ]
    assert {1, 2} <= needed(records, NOON, SETTINGS).kept


def test_epochs_of_a_generation_that_was_replaced_do_not_count() -> None:
    old = [replace(published(seq, 10_000 - seq, a=("a", seq)), generation="old") for seq in (1, 2, 3)]
    new = [replace(published(seq, 10_000 - seq, a=("new", seq)), generation="new") for seq in (4, 5)]
    assert needed([*old, *new], NOON, SETTINGS).oldest.keys() == {"new"}


def test_control_log_keeps_the_last_reset_when_older_records_go(epochs: Epochs) -> None:
    for number in (2, 3):
        epochs.control.append(kind="reset", epoch=0, attempt=epochs.control.new_attempt(), detail={"number": number})
    for _ in range(2):
        epochs.publish(36)
        epochs.keep_up()
    records = read_control(epochs.root)
    assert [record.detail for record in records if record.kind == "reset"] == [{"number": 3}]
    assert records == epochs.control.records


def test_control_log_after_upkeep_is_taken_over_with_fresh_numbers(epochs: Epochs) -> None:
    epochs.publish(36)
    epochs.keep_up()
    attempt, epoch = epochs.control.last_attempt, epochs.control.new_epoch()
    epochs.open()
    assert (epochs.control.records[-1].attempt, epochs.control.records[-1].term) == (attempt + 1, 2)
    assert epochs.control.new_epoch() == epoch
    epochs.publish(36)
    epochs.keep_up()
    takeovers = [record.term for record in read_control(epochs.root) if record.kind == "takeover"]
    assert takeovers[-1] == 2


@pytest.mark.parametrize("point", ["upkeep.after_control_file", "upkeep.after_control_record"])
def test_crash_in_upkeep_of_the_control_log_loses_no_record(epochs: Epochs, point: str) -> None:
    epochs.publish(36)
    last = epochs.control.last_published
    with crash_at(point):
        epochs.keep_up()
    assert last_published(epochs.root) == last
    epochs.open()
    epochs.keep_up()
    assert epochs.control.last_published == last
    assert read_control(epochs.root)[-1] == epochs.control.records[-1]


def test_compaction_of_the_control_log_by_somebody_else_is_still_noticed(epochs: Epochs) -> None:
    epochs.publish(36)
    epochs.keep_up()
    epochs.publish(2)
    DeltaTable(str(epochs.root / FOLDER)).optimize.compact()
    with pytest.raises((Fenced, ForeignCommit)):
        epochs.publish(1)
    with pytest.raises(ForeignCommit):
        read_control(epochs.root)


def test_upkeep_by_a_writer_that_was_replaced_is_fenced(epochs: Epochs) -> None:
    epochs.publish(16)
    assert epochs.upkeep.is_compaction_due()
    ControlLog.open(epochs.root, "second").take_over()
    with pytest.raises(Fenced):
        epochs.control.require_writer()
    with pytest.raises(Fenced):
        epochs.upkeep.compact(epochs.needed())

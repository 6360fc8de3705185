"""The control log: one writer, in order, and nobody else."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc_views.base.lsn import Lsn
from cdc_views.errors import Fenced, ForeignCommit, NothingPublished
from cdc_views.store.control import control_log, records
from cdc_views.store.control.control_log import (
    FOLDER,
    ControlLog,
    TableVersion,
    last_published,
    read_control,
    written_at,
)
from cdc_views.store.control.records import SCHEMA, ControlRecord
from cdc_views.store.delta_log import entry_file
from tests.samples import sample

pytestmark = pytest.mark.usefixtures("without_fsync")

TABLES = {"public.orders": TableVersion("mirrors/public/orders/1", 7, "ok", "mirror")}


@pytest.fixture
def control(tmp_path: Path) -> ControlLog:
    log = ControlLog.open(tmp_path, "first")
    log.take_over()
    return log


def publish(log: ControlLog, epoch: int) -> ControlRecord:
    return log.append(
        kind="publish",
        epoch=epoch,
        attempt=log.new_attempt(),
        generation="g1",
        position=Lsn.parse("1/16"),
        complete_to=Lsn.parse("1/20"),
        committed_at=datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        offsets={"app.public.orders/0": 12},
        tables=TABLES,
        detail={"rows": 3},
    )


def test_read_control_after_append_gives_the_same_record(control: ControlLog, tmp_path: Path) -> None:
    record = publish(control, 1)
    assert read_control(tmp_path)[-1] == record


def test_read_control_without_a_log_is_empty(tmp_path: Path) -> None:
    assert read_control(tmp_path) == []


def test_append_after_foreign_takeover_is_fenced_and_names_the_writer(control: ControlLog, tmp_path: Path) -> None:
    ControlLog.open(tmp_path, "second").take_over()
    with pytest.raises(Fenced, match='record 2 was taken by writer "second" of term 2, wanted by "first" of term 1'):
        publish(control, 1)


def test_append_after_being_fenced_stays_fenced(control: ControlLog, tmp_path: Path) -> None:
    ControlLog.open(tmp_path, "second").take_over()
    for _ in range(2):
        with pytest.raises(Fenced):
            publish(control, 1)
    assert [record.writer for record in read_control(tmp_path)] == ["first", "second"]


def test_append_before_take_over_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Fenced, match="has not taken over"):
        publish(ControlLog.open(tmp_path, "first"), 1)


def test_take_over_of_two_that_saw_the_same_version_lets_one_through(control: ControlLog, tmp_path: Path) -> None:
    one, other = ControlLog.open(tmp_path, "one"), ControlLog.open(tmp_path, "other")
    one.take_over()
    with pytest.raises(Fenced):
        other.take_over()


def test_take_over_after_another_has_the_next_term_and_a_fresh_attempt(control: ControlLog, tmp_path: Path) -> None:
    published = publish(control, 1)
    taken = ControlLog.open(tmp_path, "second").take_over()
    assert (taken.term, taken.attempt, taken.epoch) == (2, published.attempt + 1, 1)


def test_new_numbers_after_reopening_are_above_all_recorded_ones(control: ControlLog, tmp_path: Path) -> None:
    control.append(kind="intent", epoch=control.new_epoch(), attempt=control.new_attempt())
    again = ControlLog.open(tmp_path, "second")
    assert (again.new_epoch(), again.new_attempt(), again.new_attempt()) == (2, 3, 4)


def test_open_intent_after_intent_is_that_intent(control: ControlLog, tmp_path: Path) -> None:
    intent = control.append(kind="intent", epoch=1, attempt=2)
    again = ControlLog.open(tmp_path, "second")
    again.take_over()
    assert again.open_intent == intent


@pytest.mark.parametrize("kind", ["publish", "abandon"])
def test_open_intent_after_its_end_is_none(control: ControlLog, kind: str) -> None:
    control.append(kind="intent", epoch=1, attempt=2)
    control.append(kind=kind, epoch=1, attempt=2)  # type: ignore[arg-type]
    assert control.open_intent is None


def test_record_was_written_at_the_time_of_its_log_entry(control: ControlLog, tmp_path: Path) -> None:
    before = datetime.now(UTC)
    record = control.append(kind="intent", epoch=1, attempt=2)
    at = written_at(tmp_path, record)
    assert at is not None
    assert before - timedelta(milliseconds=1) <= at <= datetime.now(UTC)
    entry_file(tmp_path / FOLDER, record.seq).unlink()
    assert written_at(tmp_path, record) is None


def test_last_published_before_the_first_epoch_is_a_named_error(control: ControlLog, tmp_path: Path) -> None:
    with pytest.raises(NothingPublished):
        last_published(tmp_path)


def test_last_published_without_a_log_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(NothingPublished):
        last_published(tmp_path)


def test_last_published_with_an_open_intent_is_the_epoch_before(control: ControlLog, tmp_path: Path) -> None:
    record = publish(control, 1)
    control.append(kind="intent", epoch=2, attempt=9)
    assert last_published(tmp_path) == record == control.last_published


def test_last_published_beyond_the_tail_is_found(control: ControlLog, tmp_path: Path) -> None:
    record = publish(control, 1)
    for attempt in range(70):
        control.append(kind="upkeep", epoch=1, attempt=attempt)
    assert last_published(tmp_path) == record


def test_open_after_foreign_optimize_is_a_foreign_commit(control: ControlLog, tmp_path: Path) -> None:
    publish(control, 1)
    DeltaTable(str(tmp_path / FOLDER)).optimize.compact()
    with pytest.raises(ForeignCommit, match="2 records at version 3"):
        ControlLog.open(tmp_path, "second")


def test_open_after_foreign_delete_is_a_foreign_commit(control: ControlLog, tmp_path: Path) -> None:
    DeltaTable(str(tmp_path / FOLDER)).delete()
    with pytest.raises(ForeignCommit, match="0 records at version 2"):
        ControlLog.open(tmp_path, "second")


def test_open_after_a_row_of_unknown_kind_is_a_foreign_commit(control: ControlLog, tmp_path: Path) -> None:
    row = ControlRecord(2, 1, "me", "party", 0, 0).row()  # type: ignore[arg-type]
    write_deltalake(str(tmp_path / FOLDER), row, mode="append")
    with pytest.raises(ForeignCommit, match='kind "party"'):
        read_control(tmp_path)


def test_append_on_top_of_a_foreign_row_is_fenced(control: ControlLog, tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / FOLDER), SCHEMA.empty_table(), mode="append")
    with pytest.raises((Fenced, ForeignCommit)):
        publish(control, 1)


def test_append_by_two_racing_threads_lets_exactly_one_through(control: ControlLog, tmp_path: Path) -> None:
    races = sample(6, 20)
    for _ in range(races):
        writers = [ControlLog.open(tmp_path, name) for name in ("a", "b")]
        start, results = threading.Barrier(2), []

        def race(writer: ControlLog, start: threading.Barrier = start, results: list[str] = results) -> None:
            start.wait()
            try:
                writer.take_over()
                results.append("won")
            except Fenced:
                results.append("fenced")

        threads = [threading.Thread(target=race, args=(writer,)) for writer in writers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(results) == ["fenced", "won"]
    assert [record.seq for record in read_control(tmp_path)] == list(range(1, races + 2))


RACER = """
import sys
from pathlib import Path
from cdc_views.errors import Fenced
from cdc_views.store.control.control_log import ControlLog
for _ in range(20):
    log = ControlLog.open(Path(sys.argv[1]), sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        log.take_over()
        print("won", flush=True)
    except Fenced:
        print("fenced", flush=True)
"""


@pytest.mark.nightly
def test_append_by_two_racing_processes_lets_exactly_one_through(control: ControlLog, tmp_path: Path) -> None:
    command = [sys.executable, "-c", RACER, str(tmp_path)]
    racers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for name in "ab"
    ]
    for _ in range(20):
        for racer in racers:
            assert racer.stdout is not None
            assert racer.stdout.readline() == "ready\n"
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("go\n")
            racer.stdin.flush()
        assert sorted(racer.stdout.readline() for racer in racers if racer.stdout) == ["fenced\n", "won\n"]
    for racer in racers:
        racer.communicate()
    assert len(read_control(tmp_path)) == 21


def test_published_at_is_set_for_what_readers_see_only(control: ControlLog) -> None:
    intent = control.append(kind="intent", epoch=1, attempt=2)
    assert (intent.published_at, publish(control, 1).published_at is None) == (None, False)


def test_schema_of_epochs_is_the_documented_one(control: ControlLog, tmp_path: Path) -> None:
    fields = {field.name: str(field.type) for field in SCHEMA}
    assert list(fields) == [
        "seq", "term", "writer", "kind", "epoch", "attempt", "generation", "position", "position_lsn",
        "complete_to_lsn", "committed_at", "published_at", "offsets", "tables", "kinds", "detail",
    ]  # fmt: skip
    assert fields["tables"] == "map<string, struct<path: string, version: int64, status: string>>"


def test_log_of_an_earlier_version_gets_the_kinds_of_tables_with_the_next_takeover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        for module in (control_log, records):
            earlier.setattr(module, "SCHEMA", pa.schema([field for field in SCHEMA if field.name != "kinds"]))
        log = ControlLog.open(tmp_path, "first")
        log.take_over()
        first = publish(log, 1)
    assert last_published(tmp_path) == first == read_control(tmp_path)[-1]
    log = ControlLog.open(tmp_path, "second")
    log.take_over()
    second = publish(log, 2)
    assert read_control(tmp_path)[1:] == [first, log.records[2], second]
    rows = pa.table(DeltaTable(str(tmp_path / FOLDER)).scan()).to_pylist()
    kinds = {row["seq"]: row["kinds"] for row in rows}
    assert kinds == {1: None, 2: None, 3: [], 4: [("public.orders", "mirror")]}

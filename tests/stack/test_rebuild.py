"""Rebuilds through the command line, on real services: what they show, heal, refuse, and survive."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any, Self
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from cdc_views import faults
from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.engine.epoch.swap import SwapRequest
from cdc_views.engine.service.requests import Requests
from cdc_views.log.cuts.ranges import read_piece
from cdc_views.log.kafka.topics import admin_client, describe_topics, end_offsets, partitions_of, topic_name
from cdc_views.store.control.control_log import ControlRecord, read_control
from cdc_views.store.control.details import ShadowTable
from cdc_views.store.delta_log.entries import newest_version, put_entry
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.reading import read_table
from tests.fix_project import Project, assert_refused, end_at
from tests.waiting import wait_for

LIMIT_S = 120


@pytest.fixture
def ready(project: Project) -> Project:
    """Published once."""
    project.fix()
    project.catch_up()
    return project


def delete_behind(project: Project, name: str, column: str, value: Any) -> None:
    """Delete rows of a published table as a stranger would: by a version of his own."""
    table = project.published().tables[name]
    folder = project.warehouse / table.path
    state = TableState()
    assert state.catch_up(folder)
    rows = read_table(project.warehouse, table.path, newest_version(folder))
    kept = rows.filter([each != value for each in rows[column].to_pylist()])
    assert kept.num_rows < rows.num_rows
    file = f"{uuid4()}.parquet"
    pq.write_table(kept, folder / file)
    size = (folder / file).stat().st_size
    removes = [{"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0,
                           **({"deletionVector": add["deletionVector"]} if add.get("deletionVector") else {})}}
               for path, add in state.files.items()]  # fmt: skip
    add = {"path": file, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True,
           "stats": json.dumps({"numRecords": kept.num_rows})}  # fmt: skip
    put_entry(folder, newest_version(folder) + 1, [{"commitInfo": {"operation": "DELETE"}}, *removes, {"add": add}])


def rebuild(project: Project, *arguments: str, status: int = 0, **environment: str) -> dict[str, Any]:
    """Run a rebuild in this process to its end and return its report."""
    done = project.here("rebuild", *arguments, "--json", **environment)
    assert done.returncode == status, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def test_row_deleted_behind_the_engine_is_shown_and_healed(ready: Project) -> None:
    delete_behind(ready, "public.accounts", "id", 2)
    before = ready.published()
    report = rebuild(ready, "balances", "--from", "earliest", status=1)
    [accounts, balances] = report["tables"]
    assert (accounts["table"], accounts["only_old"], accounts["only_new"], accounts["different"]) == (
        "public.accounts", 0, 1, 0,
    )  # fmt: skip
    assert accounts["samples"] == [{"kind": "only_new", "row": {"id": 2, "holder": "ada", "balance": "20.00"}}]
    assert "written by somebody else" in accounts["note"]
    assert (balances["only_old"], balances["only_new"], balances["different"]) == (0, 0, 0)
    assert ready.published() == before
    report = rebuild(ready, "balances", "--from", "earliest", "--swap")
    swapped = read_control(ready.warehouse)[-1]
    assert (swapped.kind, swapped.epoch) == ("swap", report["swapped"]["epoch"])
    assert swapped.tables["public.accounts"].path != before.tables["public.accounts"].path
    ready.assert_equal_to_postgres()
    ready.database.execute("INSERT INTO accounts VALUES (4, 'bob', 7)", "DELETE FROM accounts WHERE id = 1")
    ready.catch_up()
    ready.assert_equal_to_postgres()
    assert ready.published().tables["public.accounts"].path == swapped.tables["public.accounts"].path


FAST = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01", "min.compaction.lag.ms": "0",
        "delete.retention.ms": "100"}  # fmt: skip
# In the order in which a rebuild without an engine comes to them.
POINTS = (
    *("rebuild.after_plan", "rebuild.after_first_mirror", "rebuild.after_mirrors", "rebuild.after_catch_up"),
    *("rebuild.after_views", "rebuild.after_comparison", "takeover.after_fence", "epoch.after_intent"),
    *("mirrors.after_first_commit", "views.after_first_commit", "epoch.before_publish", "epoch.after_publish"),
)
# Each "kill" starts a process with its own JVM, which takes some 25 s: all of them run by `just rebuild-kills`.
ALL = os.environ.get("CDC_VIEWS_REBUILD_KILLS") == "all"
# The steps of one rebuild, which it comes to only once: those behind it are done when it goes on. After the last
# there is nothing to be done any more.
Steps = list[tuple[str, str]]
EACH: dict[str, Steps] = {
    "raise": [(point, "raise") for point in POINTS[:-1]],
    "kill": [(point, "kill") for point in POINTS],
}
ENDED = EACH if ALL else {"some": [(POINTS[3], "raise"), (POINTS[-1], "kill")]}


@pytest.mark.nightly
def test_rebuild_from_topics_that_were_compacted_heals_too(ready: Project) -> None:
    for balance in range(20):
        ready.database.execute(f"UPDATE accounts SET balance = {balance} WHERE id = 1")
    ready.database.execute("INSERT INTO accounts VALUES (5, 'cat', 1)", "DELETE FROM accounts WHERE id = 3",
                           "UPDATE accounts SET id = 12 WHERE id = 2")  # fmt: skip
    ready.catch_up()
    compact(ready)
    delete_behind(ready, "public.accounts", "id", 12)
    report = rebuild(ready, "accounts", "--from", "earliest", "--swap")
    assert [each["only_new"] for each in report["tables"]] == [1]
    ready.assert_equal_to_postgres()


def compact(project: Project) -> None:
    """Let the topic of `accounts` be compacted for once: most of its offsets hold no record any more."""
    log = project.capture.settings.log
    topic = topic_name(log.topic_prefix, TableName("public", "accounts"))
    admin = admin_client(log)
    [before] = describe_topics(admin, [topic]).values()
    _alter(admin, topic, FAST)

    def is_compacted() -> bool:
        # A segment is rolled by what comes after it; an update that changes nothing is written all the same.
        project.database.execute("UPDATE accounts SET holder = holder")
        ends = end_offsets(admin, partitions_of(before))
        found = sum(len(records) for each, end in ends.items() for records in read_piece(log, each, 0, end))
        return found < sum(ends.values()) / 3

    wait_for(is_compacted, 60)
    _alter(admin, topic, {name: before.settings[name] for name in FAST})
    project.catch_up()


def _alter(admin: AdminClient, topic: str, settings: dict[str, str]) -> None:
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
               for name, value in settings.items()]  # fmt: skip
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def test_rebuild_beside_a_running_engine_is_swapped_in_by_it_and_rolled_back(ready: Project) -> None:
    engine, before = ready.start("run"), ready.published()
    try:
        # A rebuild that finds no engine publishes in its place.
        wait_for(lambda: read_control(ready.warehouse)[-1].seq > before.seq, LIMIT_S)
        with Writer(ready) as writer:
            wait_for(lambda: writer.written > 20, LIMIT_S)
            assert rebuild(ready, "balances", "--from", "snapshot")["equal"]
            report = rebuild(ready, "--all", "--from", "earliest", "--swap")
            assert report["equal"], report
            # What was written between the comparison and the swap is in the swap's epoch.
            assert Lsn.parse(report["swapped"]["position"]) > Lsn.parse(report["compared_at"]["position"])
            assert [each["table"] for each in report["tables"]] == ["public.accounts", "balances"]
            written = writer.written
            wait_for(lambda: writer.written > written, LIMIT_S)
        # The mirror's rows, not the view's: sums of two states may be equal.
        wait_for(lambda: ready.rows("public.accounts") == ready.expected("public.accounts"), LIMIT_S)
        ready.assert_equal_to_postgres()
        swapped = ready.published()
        gone = SwapRequest("gone", "swap", {"balances": ShadowTable(f"{paths(before)['balances']}-gone", 3, 1)})
        answer = Requests(ready.warehouse).ask(gone, lambda: engine.poll() is None)
        assert answer is not None
        assert answer.error == "BadReplay"
        done = ready.here("rollback", "balances")
        assert done.returncode == 0, done.stderr
        rolled_back = ready.published()
        assert paths(rolled_back) == paths(before)
        assert not paths(before).items() & paths(swapped).items()
        ready.assert_equal_to_postgres()
        ready.database.execute("UPDATE accounts SET balance = balance + 1")
        wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
        assert engine.poll() is None
    finally:
        engine.send_signal(signal.SIGTERM)
        engine.communicate(timeout=LIMIT_S)
    kinds = [record.kind for record in read_control(ready.warehouse)]
    assert (kinds.count("swap"), kinds.count("rollback"), kinds.count("takeover")) == (1, 1, 2)


@pytest.mark.nightly
def test_swap_in_which_the_engine_is_killed_is_done_in_its_place(ready: Project) -> None:
    term = read_control(ready.warehouse)[-1].term
    engine = ready.start("run", CDC_VIEWS_FAULT="epoch.before_publish:kill")
    wait_for(lambda: read_control(ready.warehouse)[-1].term > term, LIMIT_S)
    report = rebuild(ready, "balances", "--from", "earliest", "--swap")
    engine.communicate(timeout=LIMIT_S)
    assert engine.returncode == -signal.SIGKILL
    kinds = [record.kind for record in read_control(ready.warehouse)]
    assert kinds[-5:] == ["intent", "takeover", "abandon", "intent", "swap"]
    assert report["equal"]
    ready.assert_equal_to_postgres()
    ready.catch_up()
    ready.assert_equal_to_postgres()


@pytest.mark.nightly
@pytest.mark.parametrize("deed", ["raise", "kill"])
def test_rebuild_after_an_epoch_that_was_cut_off_has_every_row_once(ready: Project, deed: str) -> None:
    ready.database.execute("UPDATE accounts SET balance = 7 WHERE id = 1", "DELETE FROM accounts WHERE id = 3")
    end_at(ready, "epoch.after_mirrors", deed, "run", "--until-caught-up")
    before = ready.published()
    delete_behind(ready, "public.accounts", "id", 2)
    rebuild(ready, "balances", "--from", "earliest", "--swap")
    assert [record.kind for record in read_control(ready.warehouse)][-4:] == ["takeover", "abandon", "intent", "swap"]
    ready.assert_equal_to_postgres()
    done = ready.here("rollback", "balances")
    assert done.returncode == 0, done.stderr
    # To a copy of what was published, since somebody else has written there.
    assert ready.published().tables["public.accounts"].path.startswith(f"{paths(before)['public.accounts']}-")
    ready.assert_equal_to_postgres()


def paths(record: ControlRecord) -> dict[str, str]:
    """Where the published tables are."""
    return {name: table.path for name, table in record.tables.items()}


class Writer:
    """Somebody who writes to the source all the time."""

    def __init__(self, project: Project) -> None:
        self._database = project.database
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self.written = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        with self._database.connect() as connection:
            while not self._stop.is_set():
                number = self.written % 50 + 100
                connection.execute("INSERT INTO accounts VALUES (%s, 'dan', 1) ON CONFLICT (id) DO UPDATE SET "
                                   "balance = accounts.balance + 1", (number,))  # fmt: skip
                connection.execute("DELETE FROM accounts WHERE id = %s", (number - 7,))
                self.written += 1
                self._stop.wait(0.02)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("ended_at", ENDED.values(), ids=ENDED)
def test_rebuild_that_is_ended_at_each_step_goes_on_and_leaves_nothing_behind(ready: Project, ended_at: Steps) -> None:
    delete_behind(ready, "public.accounts", "id", 2)
    for number, (point, deed) in enumerate(ended_at):
        ready.database.execute(f"UPDATE accounts SET balance = {number} WHERE id = 1")
        end_at(ready, point, deed, "rebuild", "balances", "--from", "earliest", "--swap")
        assert (read_control(ready.warehouse)[-1].kind == "swap") == (point == "epoch.after_publish"), point
    done = ready.here("rebuild", "balances", "--from", "earliest", "--swap")
    assert done.returncode == 0, done.stderr
    assert "continuing rebuild" in done.stderr
    assert [record.kind for record in read_control(ready.warehouse)].count("swap") == 1
    ready.assert_equal_to_postgres()
    assert {point for point in faults.POINTS if point.startswith("rebuild.")} <= {*POINTS}
    assert len(list(ready.warehouse.glob("mirrors/*/*/*"))) == 2
    assert not list(ready.warehouse.glob(".rebuilds/*"))


@pytest.mark.parametrize("deed", ["raise", pytest.param("kill", marks=pytest.mark.nightly)])
def test_rebuild_of_another_table_removes_what_a_killed_one_has_left(ready: Project, deed: str) -> None:
    end_at(ready, "rebuild.after_mirrors", deed, "rebuild", "balances", "--from", "earliest")
    assert len(list(ready.warehouse.glob("mirrors/*/*/*"))) == 2
    assert rebuild(ready, "accounts", "--from", f"epoch:{ready.published().epoch}")["equal"]
    assert len(list(ready.warehouse.glob("mirrors/*/*/*"))) == 2


@pytest.mark.proves(
    wrong="A table with TOAST columns and without REPLICA IDENTITY FULL is rebuilt from the log",
    seen="`NotSelfContained` with the column",
    do="run `cdc-views rebuild TABLE --from snapshot --swap`",
)
def test_rebuild_of_a_table_whose_log_is_not_enough_is_refused_but_from_a_snapshot(project: Project) -> None:
    project.database.execute(
        "ALTER TABLE accounts ALTER holder TYPE text", "ALTER TABLE accounts REPLICA IDENTITY DEFAULT"
    )
    project.configure(toast="lookup")
    project.fix()
    project.catch_up()
    checked = project.here("check", "--json")
    assert "log is not self-contained" in checked.stdout
    refusal = assert_refused(
        project, "NotSelfContained", 2, "--from snapshot", "rebuild", "accounts", "--from", "earliest"
    )
    assert 'column "holder" can be stored out of line' in refusal
    delete_behind(project, "public.accounts", "id", 2)
    project.database.execute("UPDATE accounts SET balance = 1 WHERE id = 1", "INSERT INTO accounts VALUES (4, 'e', 2)")
    report = rebuild(project, "accounts", "--from", "snapshot", "--swap")
    assert report["compared_at"] is None  # nothing can be published on top of what the stranger wrote
    project.assert_equal_to_postgres()


def test_rebuild_from_an_epoch_and_from_an_offset_replays_on_top_of_it(ready: Project) -> None:
    first = ready.published()
    ready.database.execute("UPDATE accounts SET balance = 77 WHERE id = 3", "DELETE FROM accounts WHERE id = 1")
    ready.catch_up()
    for offsets in ("100000", "1"):  # held by the driver, and read by tasks
        report = rebuild(ready, "balances", "--from", f"epoch:{first.epoch}", CDC_VIEWS_LOG__BULK_OFFSETS=offsets)
        assert report["equal"]
    topic = topic_name(ready.capture.settings.log.topic_prefix, TableName("public", "accounts"))
    [partition] = [name for name, offset in first.offsets.items() if name.startswith(f"{topic}/") and offset][:1]
    held = first.offsets[partition]
    onto = ("--onto", f"epoch:{first.epoch}")
    assert_refused(ready, "LogGap", 1, f"from offset {held}",
                   "rebuild", "accounts", "--from", f"offset:{partition}/{held + 1}", *onto)  # fmt: skip
    assert_refused(ready, "BadReplay", 2, "--onto epoch:N", "rebuild", "accounts", "--from", f"offset:{partition}/0")
    assert_refused(ready, "BadReplay", 2, "epochs", "rebuild", "accounts", "--from", "epoch:99")
    assert_refused(ready, "BadReplay", 2, "they are", "rebuild", "accounts", "--from", "offset:other/0/0", *onto)
    report = rebuild(ready, "accounts", "--from", f"offset:{partition}/0", *onto, "--swap")
    assert report["equal"]
    ready.assert_equal_to_postgres()

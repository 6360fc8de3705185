"""The connector and the log, with all services: one fact each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from cdc_views.base.captured import CapturedSet
from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.engine.capture import start
from cdc_views.engine.capture.start import begin_capture, confirmed_flush, forget_capture
from cdc_views.errors import (
    ConnectorFailed,
    LogGap,
    SchemaChanged,
    SlotChanged,
    SnapshotInterrupted,
    TableTruncated,
    TopicChanged,
)
from cdc_views.host.waiting import wait_while
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.cuts.ranges import read_range
from cdc_views.log.debezium.connector import connector_config
from cdc_views.log.debezium.placeholder import new_placeholder
from cdc_views.log.debezium.snapshot import SnapshotProgress, wait_snapshot
from cdc_views.log.kafka.topics import admin_client, delete_topics, end_offsets, ensure_topics
from cdc_views.log.log import Log
from cdc_views.log.preflight import check_log, require_slot_matches
from cdc_views.source.checks.fixes import fix_source
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.connection import connect
from cdc_views.source.reading.position import wal_end
from cdc_views.source.slot import drop_slot, read_slot
from cdc_views.stack.local import LocalStack
from tests.fix_kafka import Capture, CaptureOf, resume_connector
from tests.fix_postgres import Database
from tests.seed import drawn
from tests.waiting import wait_for

CREATE = "CREATE TABLE orders (id int PRIMARY KEY, amount int)"
TEN_ROWS = "INSERT INTO orders SELECT g, g FROM generate_series(1, 10) g"


@pytest.fixture
def started(database: Database, capture: CaptureOf) -> Capture:
    """Ten orders, captured, with a complete snapshot."""
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders")
    captured.start()
    return captured


def log_of(captured: Capture) -> Log:
    """A Log of the captured tables."""
    return captured.log()


def keys(log: Log, cut: Cut) -> list[int]:
    """The keys of the records in a cut, in order."""
    return sorted(record.key["id"] for record in log.records(cut))


def test_first_cut_holds_the_snapshot(started: Capture) -> None:
    log = log_of(started)
    assert started.connect.task_state(started.settings.log.connector).state == "RUNNING"
    assert keys(log, log.cut(log.begin(), None)) == list(range(1, 11))


def test_cut_without_changes_moves_the_position(started: Capture) -> None:
    log = log_of(started)
    first = log.cut(log.begin(), None)
    second = log.cut(first.end, first.position)
    assert second.position > first.position
    assert second.complete_to >= second.position
    assert not log.has_changes(second)


def left_of_3(captured: Capture, database: Database, cut: Cut) -> list[Any]:
    """The values that the log still holds of order 3 after a cut."""
    database.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")  # segments roll only on a write
    end = end_offsets(admin_client(captured.settings.log), cut.end)
    left = read_range(captured.settings.log, replace(cut, start=cut.end, end=end), 30)
    return [record.value for records in left.values() for record in records if record.key == {"id": 3}]


class Mirror:
    """What the records of cuts leave of each table: its rows by key."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._cut: Cut | None = None
        self.rows: dict[str, dict[int, Any]] = defaultdict(dict)

    def advance(self) -> dict[str, dict[int, Any]]:
        """Take the next cut; the rows after it."""
        before = (self._log.begin(), None) if self._cut is None else (self._cut.end, self._cut.position)
        self._cut = self._log.cut(*before)
        for record in self._log.records(self._cut):
            rows, key = self.rows[self._log.table_of(record.topic).table], record.key["id"]
            if record.value is None or record.value["op"] == "d":
                rows.pop(key, None)
            else:
                rows[key] = record.value["after"]["amount"]
        return self.rows


def rows_of(database: Database, *tables: str) -> dict[str, dict[int, Any]]:
    """The same from Postgres."""
    return {table: dict(database.execute(f"SELECT id, amount FROM {table}")) for table in tables}


@pytest.mark.parametrize(
    "filled", drawn(1, [["INSERT INTO one VALUES (1, 1)", TEN_ROWS], []], ids=["some rows", "no rows"])
)
def test_snapshot_with_a_transaction_in_flight_while_the_slot_is_made(
    database: Database, capture: CaptureOf, filled: list[str]
) -> None:
    tables = ("orders", "one", "empty")
    database.execute(*(CREATE.replace("orders", table) for table in tables), *filled)
    captured = capture(*(f"public.{table}" for table in tables))
    fix_source(captured.settings, check_source(captured.settings))

    def is_slot_waiting() -> bool:
        with closing(database.connect()) as connection:
            slot = read_slot(connection, captured.settings.source.slot)
        return slot is not None and slot.confirmed_flush_lsn is None

    with closing(database.connect()) as connection, connection.transaction():
        connection.execute("UPDATE orders SET amount = -1 WHERE id = 1")
        connection.execute("INSERT INTO orders VALUES (11, 11)")
        ensure_topics(captured.settings.log, captured.settings.source.tables)
        captured.connect.put_connector(captured.settings.log.connector, captured.config())
        wait_for(is_slot_waiting, 60)
        database.execute("DELETE FROM orders WHERE id = 2", "INSERT INTO orders VALUES (12, 12)")
    wait_snapshot(captured.settings.log, lambda progress: None)
    mirror = Mirror(log_of(captured))
    assert mirror.advance() == {name: rows for name, rows in rows_of(database, *tables).items() if rows}
    database.execute(*(f"INSERT INTO {table} VALUES (20, 20)" for table in tables))
    assert mirror.advance() == rows_of(database, *tables)


def test_transaction_that_is_open_over_cuts_is_whole_in_the_one_after_its_commit(
    database: Database, capture: CaptureOf
) -> None:
    tables = ("orders", "others")
    database.execute(*(CREATE.replace("orders", table) for table in tables), TEN_ROWS)
    captured = capture(*(f"public.{table}" for table in tables))
    captured.start()
    mirror = Mirror(log_of(captured))
    mirror.advance()
    with closing(database.connect()) as connection, connection.transaction():
        connection.execute("UPDATE orders SET amount = -1")
        connection.execute("INSERT INTO others SELECT id, amount FROM orders")
        for number in range(3):
            database.execute(f"INSERT INTO orders VALUES ({100 + number}, 0)")
            assert mirror.advance() == {name: rows for name, rows in rows_of(database, *tables).items() if rows}
    assert mirror.advance() == rows_of(database, *tables)


@pytest.mark.parametrize("others", drawn(1, ["INSERT INTO others SELECT generate_series(1, 20000)", "SELECT 1"]))
def test_slot_moves_though_no_captured_table_changes(started: Capture, database: Database, others: str) -> None:
    database.execute("CREATE TABLE others (id int)", others)
    with closing(database.connect()) as connection:
        written = wal_end(connection)
    wait_for(lambda: (confirmed_flush(started.settings) or 0) > written, 30)


def test_ddl_ends_the_cut_before_its_transaction_and_stops_the_next(started: Capture, database: Database) -> None:
    log = log_of(started)
    first = log.cut(log.begin(), None)
    database.execute("INSERT INTO orders VALUES (11, 1)", "ALTER TABLE orders REPLICA IDENTITY FULL")
    with database.connect() as connection, connection.transaction():
        connection.execute("INSERT INTO orders VALUES (12, 1)")
        connection.execute("ALTER TABLE orders ADD COLUMN extra int")
    database.execute("INSERT INTO orders VALUES (13, 1)")
    second = log.cut(first.end, first.position)
    assert keys(log, second) == [11]
    with pytest.raises(SchemaChanged, match='was changed by "ALTER TABLE"'):
        log.cut(second.end, second.position)


def test_truncate_with_nothing_before_it_stops_at_once(started: Capture, database: Database) -> None:
    log = log_of(started)
    first = log.cut(log.begin(), None)
    database.execute("TRUNCATE orders")
    with pytest.raises(TableTruncated, match=r'was emptied by "TRUNCATE public\.orders"') as error:
        log.cut(first.end, first.position)
    assert error.value.hint


@pytest.mark.proves(
    wrong="The slot is advanced by hand while no engine runs",
    seen="`SlotChanged` at the start",
    do="run `cdc-views reset`: the changes in between are lost",
)
def test_slot_that_was_advanced_by_hand_is_refused(started: Capture, database: Database) -> None:
    name, slot = started.settings.log.connector, started.settings.source.slot
    wait_for(lambda: started.connect.stored_commit(name, name), 30)
    started.connect.stop_connector(name)

    def advance() -> bool:
        with closing(database.connect()) as connection:
            found = read_slot(connection, slot)
            if found is None or found.active_pid is not None:
                return False
            require_slot_matches(started.settings.log, found.confirmed_flush_lsn)
            connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (slot,))
            return True

    database.execute("INSERT INTO orders VALUES (11, 1)")
    wait_for(advance, 60)
    with closing(database.connect()) as connection:
        advanced = read_slot(connection, slot)
    assert advanced is not None
    with pytest.raises(SlotChanged, match="wanted at most"):
        require_slot_matches(started.settings.log, advanced.confirmed_flush_lsn)


@pytest.mark.proves(
    wrong="The connector's task fails and cannot continue",
    seen="`ConnectorFailed` with the message of the task",
    do="fix what the message says; the next start of the engine restarts the task",
)
def test_failed_task_is_reported_by_the_cut_that_waits_for_it(started: Capture, database: Database) -> None:
    log, name = started.log(watches_slot=False), started.settings.log.connector
    first = log.cut(log.begin(), None)
    started.connect.stop_connector(name)
    with closing(database.connect()) as connection:
        drop_slot(connection, started.settings.source.slot, limit_s=60)
    resume_connector(started.connect, name)
    with pytest.raises(ConnectorFailed, match=r"has failed: .*no longer available"):
        log.cut(first.end, first.position)


@pytest.mark.nightly
def test_snapshot_that_is_restarted_is_an_error(database: Database, capture: CaptureOf) -> None:
    # Some seconds of rows: a snapshot that is complete before its restart arrives is not cut off.
    database.execute(CREATE, "INSERT INTO orders SELECT g, g FROM generate_series(1, 600000) g")
    captured = capture("public.orders")
    captured.start_connector()
    restarts: list[Callable[[], None]] = [lambda: captured.connect.restart_connector(captured.settings.log.connector)]

    def restart_once(progress: SnapshotProgress) -> None:
        if progress.table == "public.orders" and restarts:
            restarts.pop()()

    with pytest.raises(SnapshotInterrupted):
        wait_snapshot(captured.settings.log, restart_once)


def test_first_cut_of_two_snapshots_is_refused(started: Capture, database: Database) -> None:
    name = started.settings.log.connector
    started.connect.delete_connector(name)
    with closing(database.connect()) as connection:
        drop_slot(connection, started.settings.source.slot, limit_s=60)
    database.execute("DELETE FROM orders WHERE id = 3")
    started.connect.put_connector(name, started.config())
    # A marker of before would be in the snapshot.
    assert wait_for(lambda: started.connect.stored_commit(name, name) is not None, 60)
    log = log_of(started)
    with pytest.raises(SnapshotInterrupted, match="started again"):
        log.cut(log.begin(), None)


@pytest.mark.proves(
    wrong="Connect is killed during the initial snapshot",
    seen="a line `SnapshotInterrupted: ...; taking it again`",
    do="nothing, as long as the warehouse is empty",
)
def test_snapshot_that_was_cut_off_is_taken_again_without_phantom_rows(
    database: Database, capture: CaptureOf, stack: LocalStack
) -> None:
    database.execute(CREATE, "INSERT INTO orders SELECT g, g FROM generate_series(1, 100000) g")
    captured = capture("public.orders")
    fix_source(captured.settings, check_source(captured.settings))
    interruptions: list[SnapshotInterrupted] = []
    deletes = ["DELETE FROM orders WHERE id <= 99000"]

    def kill_once(progress: SnapshotProgress) -> None:
        if progress.table == "public.orders" and deletes:
            stack.connect.kill()
            database.execute(deletes.pop())
            stack.connect.start()

    begin_capture(captured.settings, kill_once, interruptions.append)
    assert len(interruptions) == 1
    log = log_of(captured)
    cut = log.cut(log.begin(), None)
    assert {record.key["id"] for record in log.records(cut)} == set(range(99001, 100001))


def test_capture_that_waits_for_an_open_transaction_says_so_and_begins_after_it(
    database: Database, capture: CaptureOf, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(start, "RUNNING_S", 5.0)
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders")
    fix_source(captured.settings, check_source(captured.settings))
    with connect(database.dsn, autocommit=False, pinned=FOR_SQL_OF_USERS) as other, ThreadPoolExecutor() as pool:
        other.execute("UPDATE orders SET amount = 0 WHERE id = 1")
        capturing = pool.submit(begin_capture, captured.settings, lambda _: None, lambda _: None)
        try:
            wait_for(lambda: f"when process {other.info.backend_pid}, in a transaction since " in caplog.text, 60)
        finally:
            other.commit()
        capturing.result(120)
    log = log_of(captured)
    assert keys(log, log.cut(log.begin(), None)) == list(range(1, 11))


@pytest.mark.nightly
def test_slot_that_was_still_being_made_does_not_come_back(
    database: Database, capture: CaptureOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connect gives up a task that waits for its slot, but the task goes on and tries again."""
    monkeypatch.setattr(start, "RUNNING_S", 5.0)
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders", snapshot_timeout_s=1)
    fix_source(captured.settings, check_source(captured.settings))
    slot = captured.settings.source.slot
    with connect(database.dsn, autocommit=False, pinned=FOR_SQL_OF_USERS) as other, database.connect() as connection:
        other.execute("UPDATE orders SET amount = 0 WHERE id = 1")
        with pytest.raises(ConnectorFailed, match="is STARTING after 5 s"):
            begin_capture(captured.settings, lambda _: None, lambda _: None)
        assert read_slot(connection, slot) is not None
        forget_capture(captured.settings)
        other.commit()
        assert wait_while(lambda: read_slot(connection, slot) is None, 20)


def test_topic_that_was_made_anew_is_refused(started: Capture) -> None:
    known = log_of(started).topics()
    started.connect.delete_connector(started.settings.log.connector)
    delete_topics(started.settings.log, started.settings.source.tables)
    ensure_topics(started.settings.log, started.settings.source.tables)
    with pytest.raises(TopicChanged, match=r"wanted \{'id'"):
        Log(started.settings.log, started.settings.source.tables, _Nobody(), known_topics=known)


def test_tombstone_whose_delete_was_compacted_away_deletes(database: Database, capture: CaptureOf) -> None:
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders", partitions=1, min_compaction_lag_ms=2000)
    captured.start({"segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"})
    log = log_of(captured)
    first = log.cut(log.begin(), None)
    database.execute("DELETE FROM orders WHERE id = 3")

    wait_for(lambda: left_of_3(captured, database, first) == [None], 90, every_s=0.3)
    fresh = log_of(captured)
    second = fresh.cut(first.end, first.position, first.committed_at)
    assert [record.value for record in fresh.records(second) if record.key == {"id": 3}] == [None]


@pytest.mark.proves(
    wrong="Kafka compacts the log past an engine that was down: deletes and their tombstones are gone",
    seen="`LogGap`",
    do="run `cdc-views reset`; set `min.compaction.lag.ms` and `delete.retention.ms` to more than the longest downtime",
)
def test_delete_of_which_nothing_is_left_is_a_gap(database: Database, capture: CaptureOf) -> None:
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders", partitions=1, min_compaction_lag_ms=1000)
    captured.start({"segment.ms": "500", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "1000"})
    log = log_of(captured)
    first = log.cut(log.begin(), None)
    database.execute("DELETE FROM orders WHERE id = 3")
    # One that does not know when the first cut was made: on a busy machine more than two seconds may have gone.
    second = log_of(captured).cut(first.end, first.position)

    wait_for(lambda: left_of_3(captured, database, first), 30)
    wait_for(lambda: not left_of_3(captured, database, first), 90, every_s=0.3)
    for each in (log, log_of(captured)):
        with pytest.raises(LogGap, match="the log was last read to its end"):
            each.cut(first.end, first.position, first.committed_at)
    with pytest.raises(LogGap):
        log_of(captured).require_repeatable(second)


@pytest.mark.proves(
    wrong="A row is larger than a Kafka message may be (10 MB)",
    seen="`ConnectorFailed` with the size",
    do="make the row smaller, then run `cdc-views reset`: the log cannot hold that change",
)
def test_row_that_is_larger_than_a_message_is_an_error(database: Database, capture: CaptureOf) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, note text)")
    captured = capture("public.orders")
    captured.start()
    log = log_of(captured)
    first = log.cut(log.begin(), None)
    database.execute("INSERT INTO orders VALUES (1, repeat('x', 9000000))")
    second = log.cut(first.end, first.position)
    assert [len(record.value["after"]["note"]) for record in log.records(second) if record.value] == [9_000_000]
    database.execute("INSERT INTO orders VALUES (2, repeat('x', 11000000))")
    with pytest.raises(ConnectorFailed, match=r"larger than .*10485760"):
        log.cut(second.end, second.position)


def test_check_of_a_good_log_finds_nothing(started: Capture) -> None:
    log = started.settings.log
    stored = wait_for(lambda: started.connect.stored_commit(log.connector, log.topic_prefix), 30)
    assert check_log(started.settings, stored) == []


def test_check_of_what_connect_cannot_use_names_the_setting(database: Database, capture: CaptureOf) -> None:
    database.execute(CREATE)
    captured = capture("public.orders", dsn=database.as_role("postgres", "wrong-secret"))
    findings = check_log(captured.settings)
    assert "connector setting database" in findings[0].subject
    assert "wrong-secret" not in str(findings)


def test_settings_that_connect_refuses_are_told_without_the_password(database: Database, capture: CaptureOf) -> None:
    captured = capture("public.orders")
    config = connector_config(captured.settings, new_placeholder()) | {"slot.name": "Not A Slot"}
    with pytest.raises(ConnectorFailed, match="slot") as error:
        captured.connect.put_connector(database.name, config)
    assert config["database.password"] not in str(error.value)


class _Nobody:
    writer = "nobody"

    def touch(self) -> int:
        raise AssertionError("this log only reads")

    def captured(self) -> CapturedSet:
        raise AssertionError("this log only reads")

"""The connector and the log, with all services: one fact each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from cdc_views.engine.capture import begin_capture
from cdc_views.errors import (
    ConnectorFailed,
    SchemaChanged,
    SlotChanged,
    SnapshotInterrupted,
    TableTruncated,
    TopicChanged,
)
from cdc_views.log.connector import connector_config
from cdc_views.log.cut import Cut
from cdc_views.log.log import Log
from cdc_views.log.preflight import check_log, require_slot_matches
from cdc_views.log.ranges import read_range
from cdc_views.log.snapshot import SnapshotProgress, wait_snapshot
from cdc_views.log.topics import admin_client, delete_topics, end_offsets, ensure_topics
from cdc_views.source.preflight import check_source, fix_source
from cdc_views.source.slot import drop_slot, read_slot
from cdc_views.stack.local import LocalStack
from tests.fix_kafka import Capture, CaptureOf
from tests.fix_postgres import Database
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
    """A Log that knows the tables as they are now."""
    return captured.log({name: table.fingerprint() for name, table in captured.tables().items()})


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
    with pytest.raises(TableTruncated, match='was emptied by "TRUNCATE"') as error:
        log.cut(first.end, first.position)
    assert error.value.hint


@pytest.mark.proves(
    wrong="the slot is advanced by hand",
    seen="`SlotChanged` at the start",
    do="begin anew: the changes between are lost",
)
def test_slot_that_was_advanced_by_hand_is_refused(started: Capture, database: Database) -> None:
    name, slot = started.settings.log.connector, started.settings.source.slot
    wait_for(lambda: started.connect.stored_commit(name), 30)
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
    wrong="the connector's task fails",
    seen="`ConnectorFailed` with what the task says",
    do="mend what it says; the next start of the engine starts the task again",
)
def test_task_that_failed_is_told_by_the_cut_that_waits_for_it(started: Capture, database: Database) -> None:
    log, name = started.log(watches_slot=False), started.settings.log.connector
    first = log.cut(log.begin(), None)
    started.connect.stop_connector(name)
    with closing(database.connect()) as connection:
        drop_slot(connection, started.settings.source.slot, limit_s=60)
    started.connect.resume_connector(name)
    with pytest.raises(ConnectorFailed, match=r"has failed: .*no longer available"):
        log.cut(first.end, first.position)


def test_snapshot_that_is_restarted_is_an_error(database: Database, capture: CaptureOf) -> None:
    database.execute(CREATE, "INSERT INTO orders SELECT g, g FROM generate_series(1, 100000) g")
    captured = capture("public.orders")
    captured.start_connector()
    restarts: list[Callable[[], None]] = [lambda: captured.connect.restart_connector(captured.settings.log.connector)]

    def restart_once(progress: SnapshotProgress) -> None:
        if progress.table == "public.orders" and restarts:
            restarts.pop()()

    with pytest.raises(SnapshotInterrupted):
        wait_snapshot(captured.settings.log, restart_once)


@pytest.mark.proves(
    wrong="Connect is killed in the initial snapshot",
    seen="a line `SnapshotInterrupted: ...; taking it again`",
    do="nothing, while the warehouse is empty",
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

    def only_the_tombstone_is_left() -> bool:
        database.execute("UPDATE orders SET amount = amount + 1 WHERE id = 1")  # segments roll only on a write
        end = end_offsets(admin_client(captured.settings.log), first.end)
        left = read_range(captured.settings.log, replace(first, start=first.end, end=end), 30)
        of_3 = [record.value for records in left.values() for record in records if record.key == {"id": 3}]
        return of_3 == [None]

    wait_for(only_the_tombstone_is_left, 90, every_s=0.3)
    fresh = log_of(captured)
    second = fresh.cut(first.end, first.position, first.committed_at)
    assert [record.value for record in fresh.records(second) if record.key == {"id": 3}] == [None]


def test_check_of_a_good_log_finds_nothing(started: Capture) -> None:
    assert check_log(started.settings, started.connect.stored_commit(started.settings.log.connector)) == []


def test_check_of_what_connect_cannot_use_names_the_setting(database: Database, capture: CaptureOf) -> None:
    database.execute(CREATE)
    captured = capture("public.orders", dsn=database.as_role("postgres", "wrong-secret"))
    findings = check_log(captured.settings)
    assert "connector setting database" in findings[0].subject
    assert "wrong-secret" not in str(findings)


def test_settings_that_connect_refuses_are_told_without_the_password(database: Database, capture: CaptureOf) -> None:
    captured = capture("public.orders")
    config = connector_config(captured.settings) | {"slot.name": "Not A Slot"}
    with pytest.raises(ConnectorFailed, match="slot") as error:
        captured.connect.put_connector(database.name, config)
    assert config["database.password"] not in str(error.value)


class _Nobody:
    writer = "nobody"

    def touch(self) -> int:
        raise AssertionError("this log only reads")

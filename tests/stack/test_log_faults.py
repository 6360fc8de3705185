"""What others may do to the log under a running engine: each is an error of its own name, before a cut is given."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from cdc_views.base.names import TableName
from cdc_views.base.rendering import PINNED, options
from cdc_views.base.service_schema import HEARTBEAT
from cdc_views.capture.types import prints_in_zone
from cdc_views.engine.capture.start import confirmed_flush
from cdc_views.errors import (
    ConnectorFailed,
    LogDiscontinuity,
    MarkerTimeout,
    NotRunning,
    OffsetCompacted,
    PrintedOtherwise,
    SchemaChanged,
    SequenceRegressed,
    SlotChanged,
    SnapshotInterrupted,
    TopicChanged,
)
from cdc_views.log.cuts.cut import Cut
from cdc_views.log.debezium.snapshot import wait_snapshot
from cdc_views.log.kafka.reader import Reader
from cdc_views.log.kafka.record import RawRecord
from cdc_views.log.kafka.topics import (
    admin_client,
    delete_topics,
    end_offsets,
    ensure_topics,
    notification_topic,
    topic_facts,
    topic_name,
)
from cdc_views.log.log import Log
from cdc_views.log.preflight import require_slot_matches
from cdc_views.log.topic_lag import TopicLag
from cdc_views.serve.watch.looks import LIMIT_S
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.publication import FIRST_GENERATED, publication_sql
from cdc_views.source.service.service_sql import EVENT_TRIGGERS
from cdc_views.source.slot import Slot, drop_slot, read_slot
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services import jvm
from cdc_views.stack.services.connect import Connect
from cdc_views.stack.services.kafka import Kafka
from tests.fix_kafka import Capture, CaptureOf, resume_connector
from tests.fix_postgres import Database, server_setting
from tests.fix_services import AT_LEAST_ONCE, log_settings_for, second_worker
from tests.seed import drawn
from tests.waiting import wait_for

NAME = TableName("public", "orders")
CREATE = "CREATE TABLE orders (id int PRIMARY KEY, amount int)"
TEN_ROWS = "INSERT INTO orders SELECT g, g FROM generate_series(1, 10) g"
INSERT = "INSERT INTO orders SELECT g, g FROM generate_series(11, 60) g"


class Followed:
    """A captured table, its log, and the first cut of it."""

    def __init__(self, captured: Capture, database: Database, *, watches_slot: bool = True) -> None:
        self.captured = captured
        self._watches_slot = watches_slot
        self.database = database
        self.settings = captured.settings.log
        self.topic = topic_name(self.settings.topic_prefix, NAME)
        self.log = self.new_log()
        self.first = self.log.cut(self.log.begin(), None)

    def new_log(self) -> Log:
        return self.captured.log(watches_slot=self._watches_slot)

    def next_cut(self, log: Log | None = None) -> Cut:
        return (log or self.log).cut(self.first.end, self.first.position, self.first.committed_at)

    def stop_connector(self) -> None:
        """Stop it once it has stored where it is, and wait until it has let go of its slot."""
        wait_for(lambda: self.captured.connect.stored_commit(self.settings.connector, self.settings.topic_prefix), 30)
        self.captured.connect.stop_connector(self.settings.connector)
        wait_for(self._slot_is_free, 60)

    def slot(self) -> Slot | None:
        with closing(self.database.connect()) as connection:
            return read_slot(connection, self.captured.settings.source.slot)

    def _slot_is_free(self) -> bool:
        slot = self.slot()
        return slot is not None and slot.active_pid is None

    def alter_topic(self, name: str, value: str) -> None:
        """Change a setting of the table's topic."""
        admin = admin_client(self.settings)
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        changed = ConfigResource(ResourceType.TOPIC, self.topic, incremental_configs=[entry])
        for future in admin.incremental_alter_configs([changed]).values():
            future.result()

    def require_slot_matches(self) -> None:
        require_slot_matches(self.settings, confirmed_flush(self.captured.settings))

    def drop_slot(self) -> None:
        with closing(self.database.connect()) as connection:
            drop_slot(connection, self.captured.settings.source.slot, limit_s=60)

    def begin_again(self, *, keeps_slot: bool = False) -> None:
        """Replace the connector as if it were broken: delete it with its offsets and slot, and create it again."""
        self.captured.connect.delete_connector(self.settings.connector)
        if not keeps_slot:
            self.drop_slot()
        self.captured.connect.put_connector(self.settings.connector, self.captured.config())


@pytest.fixture
def captured(database: Database, capture: CaptureOf) -> Capture:
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders", partitions=2)
    captured.start()
    return captured


@pytest.fixture
def followed(captured: Capture, database: Database) -> Followed:
    return Followed(captured, database)


@pytest.fixture
def unwatched(captured: Capture, database: Database) -> Followed:
    """The same, if nobody sees what becomes of the slot."""
    return Followed(captured, database, watches_slot=False)


def test_each_new_client_gets_the_ends_of_topics_within_the_limit_of_a_look(followed: Followed) -> None:
    for _ in range(40):
        lag = TopicLag(followed.settings, LIMIT_S)
        assert [followed.topic in lag.behind(followed.first.end) for _ in range(2)] == [True, True]


@pytest.mark.proves(
    wrong="Partitions are added to a topic",
    seen="`TopicChanged`",
    do="run `cdc-views reset`: keys have moved to other partitions",
)
def test_partitions_that_are_added_stop_the_next_cut(followed: Followed) -> None:
    admin = admin_client(followed.settings)
    [added] = admin.create_partitions([NewPartitions(followed.topic, 5)]).values()
    added.result()
    followed.database.execute(INSERT)
    with pytest.raises(TopicChanged, match=r"'partitions': 5\}, wanted \{.*'partitions': 2\}"):
        followed.next_cut()
    with pytest.raises(TopicChanged):
        followed.next_cut(followed.new_log())


@pytest.mark.proves(
    wrong="A topic is deleted, or deleted and recreated",
    seen="`TopicChanged`",
    do="run `cdc-views reset`",
)
@pytest.mark.nightly
def test_topic_that_is_recreated_under_the_engine_stops_the_next_cut(followed: Followed) -> None:
    followed.captured.connect.stop_connector(followed.settings.connector)
    tables = followed.captured.settings.source.tables
    delete_topics(followed.settings, tables)
    ensure_topics(followed.settings, tables)
    resume_connector(followed.captured.connect, followed.settings.connector)
    followed.database.execute(INSERT)
    with pytest.raises(TopicChanged):
        followed.next_cut()


@pytest.mark.proves(
    wrong="One of several topics is deleted and recreated under a running engine",
    seen="`TopicChanged` within seconds, with the name of the topic",
    do="run `cdc-views reset`",
)
def test_one_recreated_topic_is_named_and_stops_the_next_cut(followed: Followed) -> None:
    followed.captured.connect.stop_connector(followed.settings.connector)
    admin = admin_client(followed.settings)
    [deleted] = admin.delete_topics([followed.topic], operation_timeout=30).values()
    deleted.result()
    wait_for(lambda: not topic_facts(admin, [followed.topic]), 30)
    ensure_topics(followed.settings, followed.captured.settings.source.tables)
    resume_connector(followed.captured.connect, followed.settings.connector)
    with pytest.raises(TopicChanged, match=re.escape(f'topic "{followed.topic}" is')):
        followed.next_cut()


@pytest.mark.proves(
    wrong="The topic of notifications is deleted under a running engine",
    seen="`TopicChanged`: restarts of the connector are no longer reported",
    do=(
        "start the engine again, which creates the topic; if the connector was restarted meanwhile, run `cdc-views "
        "rebuild TABLE --from snapshot --swap` for each table"
    ),
)
def test_topic_of_notifications_that_is_deleted_stops_the_next_cut(followed: Followed) -> None:
    name = notification_topic(followed.settings.topic_prefix)
    admin = admin_client(followed.settings)
    [deleted] = admin.delete_topics([name], operation_timeout=30).values()
    deleted.result()
    wait_for(lambda: not topic_facts(admin, [name]), 30)
    with pytest.raises(TopicChanged, match=re.escape(f'topic "{name}" is gone')):
        followed.next_cut()
    ensure_topics(followed.settings, followed.captured.settings.source.tables)
    followed.next_cut(followed.new_log())


@pytest.mark.proves(
    wrong="Records are deleted before the engine has read them",
    seen="`OffsetCompacted`",
    do="run `cdc-views reset`",
)
def test_records_that_are_deleted_while_no_engine_runs_are_missed(followed: Followed) -> None:
    followed.database.execute(INSERT)
    second = followed.next_cut()
    admin = admin_client(followed.settings)
    # Of a topic that is compacted only, Kafka deletes nothing.
    followed.alter_topic("cleanup.policy", "compact,delete")
    behind = [each for each, end in second.end.items() if end > followed.first.end[each]]
    gone = [KafkaPartition(each.topic, each.partition, second.end[each]) for each in behind]
    for future in admin.delete_records(gone).values():
        future.result()
    with pytest.raises(OffsetCompacted, match="wanted"):
        followed.next_cut(followed.new_log())
    assert followed.log.cut(second.end, second.position).start == second.end  # it had read them


def truncate(kafka: Kafka, partition: str, end: int) -> None:
    """Take the last records of a partition from a broker that is down, as a loss of power does."""
    [segment] = kafka.data.rglob(f"{partition}/*.log")
    content, at = segment.read_bytes(), 0
    while at < len(content):
        offset, length = struct.unpack(">qi", content[at : at + 12])  # of a batch, and its bytes behind that
        if offset >= end:
            break
        at += 12 + length
    assert at < len(content)
    os.truncate(segment, at)


@pytest.mark.proves(
    wrong=(
        "The broker's machine loses power and loses records that were already read, even if others reused their offsets"
    ),
    seen="`LogDiscontinuity`",
    do=(
        "run `cdc-views reset`; keep each record on several machines, or set `flush.messages=1`: the loss of records "
        "that no engine has read cannot be detected"
    ),
)
def test_log_that_has_lost_what_was_read_stops_the_next_cut(
    database: Database, capture: CaptureOf, stack: LocalStack
) -> None:
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders", partitions=1)
    captured.start()
    followed = Followed(captured, database)
    database.execute(INSERT)
    second = followed.next_cut()
    in_bulk = captured.log(bulk=[NAME], bulk_offsets=5)
    all_in_bulk = in_bulk.cut(in_bulk.begin(), None)
    followed.stop_connector()
    stack.kafka.kill()
    [partition] = [each for each, end in second.end.items() if end > followed.first.end[each]]
    truncate(stack.kafka, f"{partition.topic}-{partition.partition}", followed.first.end[partition])
    stack.kafka.start()
    resume_connector(captured.connect, followed.settings.connector)
    captured.connect.wait_running(followed.settings.connector)
    database.execute("INSERT INTO orders SELECT g, g FROM generate_series(61, 300) g")
    wait_for(lambda: end_offsets(admin_client(followed.settings), [partition])[partition] > second.end[partition], 60)

    for log, last in (
        (followed.log, second),
        (captured.log(published=second), second),
        (captured.log(published=second, bulk=[NAME], bulk_offsets=10), second),
        (captured.log(published=all_in_bulk), all_in_bulk),
    ):
        with pytest.raises(LogDiscontinuity, match=r"wanted offset \d+ .* the log has lost records that it had"):
            log.cut(last.end, last.position, last.committed_at)
    with pytest.raises(LogDiscontinuity, match="the log has lost records that it had"):
        captured.log().require_repeatable(second)


def test_log_that_goes_on_after_an_error_reads_again_what_it_had_met(
    followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Reader.read

    def read_and_lose(reader: Reader, wait_s: float) -> list[RawRecord]:
        if any(record.topic() == followed.topic for record in read(reader, wait_s)):
            raise NotRunning("some of it was there")
        return []

    followed.database.execute(INSERT)
    with monkeypatch.context() as patched:
        patched.setattr(Reader, "read", read_and_lose)
        with pytest.raises(NotRunning, match="some of it"):
            followed.next_cut()
    assert sorted(record.key["id"] for record in followed.log.records(followed.next_cut())) == list(range(11, 61))


@pytest.mark.proves(
    wrong="The retention of a topic is shortened under a running engine",
    seen="`TopicChanged` within seconds",
    do=(
        "restore the setting and start the engine again; for tables that missed changes, run `cdc-views rebuild TABLE "
        "--from snapshot --swap`"
    ),
)
@pytest.mark.parametrize("name", drawn(1, ["min.compaction.lag.ms", "delete.retention.ms"]))
def test_topic_that_keeps_less_than_before_stops_a_cut_within_seconds(followed: Followed, name: str) -> None:
    followed.alter_topic(name, "100000000000")  # more is no harm
    assert followed.next_cut().position > followed.first.position
    followed.alter_topic(name, "1000")
    with pytest.raises(TopicChanged, match=rf'orders": {name} is 1000, wanted at least the former \d+'):
        wait_for(lambda: followed.next_cut().position is None, 10)


@pytest.mark.proves(
    wrong="The connector's offsets are lost, or it is deleted with its offsets and slot, and recreated",
    seen="`SlotChanged`, `LogDiscontinuity` or `SequenceRegressed`; at a start `SnapshotInterrupted`",
    do="run `cdc-views reset`",
)
@pytest.mark.parametrize("keeps_slot", drawn(1, [False, True]))
def test_connector_that_begins_again_stops_the_next_cut(unwatched: Followed, keeps_slot: bool) -> None:
    unwatched.stop_connector()
    unwatched.database.execute("DELETE FROM orders WHERE id = 3")
    unwatched.begin_again(keeps_slot=keeps_slot)
    with pytest.raises((LogDiscontinuity, SequenceRegressed)):
        unwatched.next_cut()
    with pytest.raises(SnapshotInterrupted):
        wait_snapshot(unwatched.settings, lambda progress: None)


@pytest.fixture(
    params=[pytest.param({}, marks=pytest.mark.nightly), AT_LEAST_ONCE], ids=["exactly once", "at least once"]
)
def own_worker(request: pytest.FixtureRequest, stack: LocalStack, enterable_folder: Path) -> Iterator[Connect]:
    """A worker that no other test has."""
    with second_worker(stack, enterable_folder, request.param) as worker:
        yield worker


@pytest.mark.proves(
    wrong="The topic in which the Connect worker stores offsets (`offset.storage.topic`) is deleted",
    seen="`LogDiscontinuity` or `SequenceRegressed` after the worker is restarted; at a start `SnapshotInterrupted`",
    do="run `cdc-views reset`",
)
def test_worker_whose_offsets_topic_is_deleted_stops_the_next_cut(
    own_worker: Connect, database: Database, capture: CaptureOf
) -> None:
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders", **log_settings_for(own_worker))
    captured.start()
    followed = Followed(captured, database)
    wait_for(lambda: captured.connect.stored_commit(followed.settings.connector, followed.settings.topic_prefix), 30)
    own_worker.kill()
    database.execute("DELETE FROM orders WHERE id = 3", INSERT)
    admin = admin_client(followed.settings)
    [deleted] = admin.delete_topics([own_worker.offsets_topic]).values()
    deleted.result()
    own_worker.start()
    with pytest.raises((LogDiscontinuity, SequenceRegressed)):
        followed.next_cut()
    with pytest.raises(SnapshotInterrupted):
        wait_snapshot(followed.settings, lambda progress: None)


@pytest.mark.proves(
    wrong="The connector's offsets are lost, and its tables are empty by then",
    seen="`SlotChanged` or `LogDiscontinuity`",
    do="run `cdc-views reset`",
)
def test_connector_that_begins_again_with_empty_tables_stops_the_next_cut(unwatched: Followed) -> None:
    unwatched.stop_connector()
    unwatched.database.execute("DELETE FROM orders")
    # The snapshot has the rows of the service tables again.
    orders = [each for each in unwatched.first.end if each.topic.endswith(".public.orders")]
    ends = end_offsets(admin_client(unwatched.settings), orders)
    unwatched.begin_again()
    with pytest.raises(LogDiscontinuity, match=r"a snapshot was taken again|order is \(none"):
        unwatched.next_cut()
    assert end_offsets(admin_client(unwatched.settings), orders) == ends  # nothing of the deletes came


@pytest.mark.proves(
    wrong="The slot is dropped, or dropped and recreated, while no engine runs",
    seen="`SlotChanged` at the start",
    do="run `cdc-views reset`",
)
@pytest.mark.parametrize(
    ("change", "problem"),
    drawn(1, [
        ("SELECT 1", "there is no slot"),
        ("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')", "wanted at most"),
    ]),
)  # fmt: skip
def test_slot_that_was_dropped_or_recreated_is_refused(followed: Followed, change: str, problem: str) -> None:
    followed.stop_connector()
    followed.require_slot_matches()
    followed.drop_slot()
    slot = followed.captured.settings.source.slot
    followed.database.execute("INSERT INTO orders VALUES (11, 1)", change.format(slot=slot))
    with pytest.raises(SlotChanged, match=problem):
        followed.require_slot_matches()


@pytest.mark.proves(
    wrong="The server invalidates the slot (`max_slot_wal_keep_size`)",
    seen="`SlotChanged` within seconds; `check` reports an error",
    do="run `cdc-views reset`",
)
def test_slot_that_the_server_has_invalidated_is_named_within_seconds(followed: Followed) -> None:
    followed.stop_connector()
    with server_setting(followed.database, "max_slot_wal_keep_size", "1MB"):
        followed.database.execute(INSERT)

        def is_lost() -> bool:
            followed.database.execute("SELECT pg_switch_wal()", "CHECKPOINT")
            slot = followed.slot()
            return slot is not None and slot.lost

        wait_for(is_lost, 60)
    with pytest.raises(SlotChanged, match="is lost: the server has removed WAL that it needs"):
        followed.next_cut()
    problems = [finding.problem for finding in check_source(followed.captured.settings)]
    assert "is lost: the server has removed WAL that it needs" in problems


@pytest.mark.proves(
    wrong="The slot is dropped under a running engine",
    seen="`SlotChanged` within seconds",
    do="run `cdc-views reset`",
)
def test_slot_that_is_dropped_under_a_waiting_engine_is_named_within_seconds(followed: Followed) -> None:
    followed.stop_connector()
    followed.drop_slot()
    with pytest.raises(SlotChanged, match=r'replication slot ".*" is gone'):
        followed.next_cut()


@pytest.mark.proves(
    wrong="The slot is advanced by hand, or dropped and recreated, under a running engine",
    seen="`SlotChanged`, perhaps after `ConnectorFailed`, before any later change is published",
    do="run `cdc-views reset`: the changes in between are lost",
)
@pytest.mark.parametrize(
    "change",
    drawn(1, [
        ["SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())"],
        ["SELECT pg_drop_replication_slot('{slot}')",
         "SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')"],
    ], ids=["advanced", "recreated"]),
)  # fmt: skip
def test_slot_that_is_moved_under_a_running_engine_stops_the_next_cut(followed: Followed, change: list[str]) -> None:
    slot = followed.captured.settings.source.slot
    followed.stop_connector()
    followed.database.execute("INSERT INTO orders VALUES (11, 1)", *(each.format(slot=slot) for each in change))
    resume_connector(followed.captured.connect, followed.settings.connector)

    def go_on() -> None:
        followed.captured.connect.wait_running(followed.settings.connector)
        followed.database.execute("INSERT INTO orders VALUES (12, 1)")
        followed.next_cut()

    # Debezium looks whether the slot is behind its offset, and not whether it is ahead; a new slot may be either.
    with pytest.raises((SlotChanged, ConnectorFailed), match=r"is gone|the slot has confirmed|is no longer available"):
        go_on()


PUBLICATION = publication_sql("{publication}", [NAME], FIRST_GENERATED, exists=False)


@pytest.mark.proves(
    wrong=(
        "The publication is narrowed, or dropped and recreated; an enum label is renamed; a replica identity is "
        "changed; one of our triggers is disabled for a TRUNCATE"
    ),
    seen="`SchemaChanged`; everything before the change is published",
    do="run `cdc-views check --fix`, then `cdc-views reset`",
)
@pytest.mark.parametrize(
    "change",
    drawn(
        3,
        [
            ["ALTER PUBLICATION {publication} SET (publish = 'update, delete')"],
            ["ALTER PUBLICATION {publication} SET (publish = 'insert, update')", "DELETE FROM orders WHERE id = 3"],
            ["DROP PUBLICATION {publication}", "DELETE FROM orders WHERE id = 3", PUBLICATION],
            ["ALTER TYPE kind RENAME VALUE 'a' TO 'b'"],
            ["ALTER TABLE orders REPLICA IDENTITY NOTHING"],
            [
                "ALTER TABLE orders DISABLE TRIGGER ALL",
                "TRUNCATE orders",
                "INSERT INTO orders VALUES (99, 9)",
                "ALTER TABLE orders ENABLE TRIGGER ALL",
            ],
        ],
        ids=["no inserts", "no deletes", "created again", "enum", "identity", "disabled trigger"],
    ),
)
def test_what_changes_rows_without_an_event_stops_the_next_cut(
    database: Database, capture: CaptureOf, change: list[str]
) -> None:
    database.execute("CREATE TYPE kind AS ENUM ('a')", CREATE, "ALTER TABLE orders ADD kind kind", TEN_ROWS)
    captured = capture("public.orders")
    captured.start()
    followed = Followed(captured, database)
    database.execute(*(each.format(publication=captured.settings.source.publication) for each in change))
    with pytest.raises(SchemaChanged):
        followed.next_cut()


@pytest.mark.proves(
    wrong="A table is rewritten while no engine runs and event triggers are missing",
    seen="`SchemaChanged` at the first epoch",
    do=(
        "run `cdc-views reset`; let a superuser create the event triggers (`cdc-views check --print-sql`), which "
        "report such changes exactly"
    ),
)
def test_rewrite_without_event_triggers_is_seen_by_the_next_engine(database: Database, capture: CaptureOf) -> None:
    database.execute(CREATE, TEN_ROWS)
    captured = capture("public.orders")
    captured.start()
    database.execute(*(f"DROP EVENT TRIGGER {name}" for name in EVENT_TRIGGERS))
    first = Followed(captured, database).first
    assert first.captured is not None
    assert not first.captured.event_triggers
    database.execute("ALTER TABLE orders ALTER amount TYPE int USING amount + 1")
    log = captured.log(published=first)
    with pytest.raises(SchemaChanged, match=r"an unrecorded command: storage of public\.orders is another file"):
        log.cut(first.end, first.position, first.committed_at)


@pytest.mark.proves(
    wrong="A transaction in the log is never ended, for example after a crash of brokers with KAFKA-20734",
    seen="`MarkerTimeout` with the partition and first offset of the transaction",
    do="end it with `kafka-transactions.sh abort`; the engine then continues",
)
def test_transaction_that_never_ends_is_named_when_the_marker_times_out(database: Database, capture: CaptureOf) -> None:
    database.execute(CREATE)
    captured = capture("public.orders", marker_timeout_s=3)
    captured.start()
    followed = Followed(captured, database)
    topic = topic_name(followed.settings.topic_prefix, HEARTBEAT)
    producer = Producer(
        {"bootstrap.servers": followed.settings.bootstrap_servers, "transactional.id": topic, "log_level": 2}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    for partition in followed.log.partitions_of([HEARTBEAT]):
        producer.produce(topic, b"x", b"x", partition=partition.partition)
    producer.flush(30)
    with pytest.raises(MarkerTimeout, match=r"heartbeat/0\" has a transaction from offset \d+ on that is still open"):
        followed.next_cut()
    producer.abort_transaction(30)
    assert followed.next_cut().position > followed.first.position


@pytest.fixture
def worker_of_berlin(stack: LocalStack, enterable_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """A second worker whose Java has another time zone."""
    flags = [flag.replace("UTC", "Europe/Berlin") for flag in jvm.FLAGS]
    assert flags != list(jvm.FLAGS)
    monkeypatch.setattr(jvm, "FLAGS", flags)
    with second_worker(stack, enterable_folder, {}) as worker:
        yield worker


@pytest.mark.proves(
    wrong="Kafka Connect's Java has a time zone other than UTC, and a table has composite types or arrays of times",
    seen="`PrintedOtherwise` before any of it is published",
    do="run Connect with `-Duser.timezone=UTC`, then run `cdc-views reset`",
)
def test_java_of_another_time_zone_stops_a_cut_of_tables_that_print_it(
    database: Database, worker_of_berlin: Connect, capture: CaptureOf
) -> None:
    database.execute(
        "CREATE TYPE trip AS (at timestamptz, km int)",
        "CREATE TABLE trips (id int PRIMARY KEY, trip trip)",
        "CREATE TABLE points (id int PRIMARY KEY, at timestamptz, during tstzrange)",
    )
    captured = capture("public.trips", "public.points", **log_settings_for(worker_of_berlin))
    captured.start()
    zoned = [name for name, table in captured.tables().items() if prints_in_zone(table)]
    assert zoned == [TableName("public", "trips")]
    log = captured.log()
    log.cut(log.begin(), None)
    log = captured.log(zoned=zoned)
    with pytest.raises(PrintedOtherwise, match=r'times as .*\+0[12].*table "public\.trips"') as raised:
        log.cut(log.begin(), None)
    assert "-Duser.timezone=UTC" in str(raised.value.hint)


@pytest.mark.proves(
    wrong="The options of the connector's connections are lost, by a pooler or another connector configuration",
    seen="`PrintedOtherwise` before anything is published, if numbers or times are printed in another form",
    do="make the pooler pass the options on, then run `cdc-views reset`",
)
def test_connector_without_its_options_stops_the_first_cut(database: Database, capture: CaptureOf) -> None:
    database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    captured = capture("public.orders")
    captured.start_connector(connector_settings={"driver.options": options({**PINNED, "extra_float_digits": "0"})})
    wait_snapshot(captured.settings.log, lambda progress: None)
    log = captured.log()
    with pytest.raises(PrintedOtherwise, match=r"prints the number 0\.30000000000000004 as 0\.3\n"):
        log.cut(log.begin(), None)

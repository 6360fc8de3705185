"""A reset on real services: readers keep the last epoch, crashes are continued, and every stop is left behind."""

from __future__ import annotations

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType
from pyspark.sql import SparkSession

from cdc_views.base.names import TableName
from cdc_views.cli.main import main
from cdc_views.config import Settings, load_settings
from cdc_views.engine.capture import capture_removal
from cdc_views.engine.capture.captures import current_capture, current_settings, require_no_reset
from cdc_views.engine.capture.initial import Shown
from cdc_views.engine.capture.readiness import require_ready
from cdc_views.engine.capture.start import resume_capture
from cdc_views.engine.service.destroy import destroy
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.target import current_target
from cdc_views.errors import (
    BadConfig,
    BadEvent,
    CdcViewsError,
    LogDiscontinuity,
    LogGap,
    OffsetCompacted,
    PreflightFailed,
    ResetUnfinished,
    SchemaChanged,
    SequenceRegressed,
    SlotChanged,
    SnapshotInterrupted,
    TableTruncated,
    TableUnavailable,
    TopicChanged,
    WarehouseLocked,
)
from cdc_views.host.clock import SYSTEM_CLOCK, Clock
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.connector import connector_config
from cdc_views.log.debezium.placeholder import read_placeholder
from cdc_views.log.debezium.snapshot import require_one_snapshot
from cdc_views.log.kafka.record import TopicPartition
from cdc_views.log.kafka.topics import (
    admin_client,
    delete_named_topics,
    delete_topics,
    describe_topics,
    end_offsets,
    ensure_topics,
    partitions_of,
    topic_name,
)
from cdc_views.replay.bad_events import listed
from cdc_views.replay.reset import remove_left, reset
from cdc_views.source.checks.fixes import fix_source
from cdc_views.source.checks.preflight import check_source
from cdc_views.source.slot import Slot, drop_slot, read_slot
from cdc_views.stack.local import LocalStack
from cdc_views.store.control.control_log import ControlRecord, read_control
from cdc_views.testing.crash import crash_at
from cdc_views.testing.hand_clock import HandClock
from tests.fix_kafka import captures
from tests.fix_postgres import new_database, server_setting
from tests.fix_project import ACCOUNTS, Project, projects
from tests.logged import logged
from tests.seed import SEED
from tests.stack.test_engine import restored_afterwards
from tests.waiting import wait_for

UPDATE = "UPDATE accounts SET balance = balance + 1"
SILENT = Shown(lambda expected: lambda progress: None, lambda word: lambda progress: None)


@dataclass
class World:
    """A project whose engine and resets run in this process, on the session's Spark."""

    project: Project
    spark: SparkSession
    said: list[str] = field(default_factory=list)
    overrides: dict[str, str] = field(default_factory=dict)
    clock: Clock = SYSTEM_CLOCK

    @property
    def base(self) -> Settings:
        """The settings as the user gave them."""
        return load_settings(self.project.folder, self.overrides)

    @property
    def settings(self) -> Settings:
        """The settings with the names of the current capture."""
        return current_settings(self.base)

    @property
    def slot(self) -> str:
        """The current slot."""
        return self.settings.source.slot

    @property
    def topic(self) -> str:
        """The current topic of `accounts`."""
        return topic_name(self.settings.log.topic_prefix, TableName("public", "accounts"))

    def fix(self) -> None:
        """Do what `check --fix` does."""
        fix_source(self.settings, check_source(self.settings))

    def stop_connector(self) -> None:
        """Stop the connector, and wait until it has let go of its slot."""
        ConnectClient(self.settings.log.connect_url).stop_connector(self.settings.log.connector)
        wait_for(lambda: self.found_slot().active_pid is None, 60)

    def found_slot(self) -> Slot:
        """The current slot as it is."""
        with self.project.database.connect() as connection:
            found = read_slot(connection, self.slot)
        assert found is not None
        return found

    def drop_slot(self) -> None:
        """Drop the current slot."""
        with self.project.database.connect() as connection:
            drop_slot(connection, self.slot)

    def is_slot_lost(self) -> bool:
        """Whether the server has invalidated the slot; brings that nearer."""
        self.execute(UPDATE, "SELECT pg_switch_wal()", "CHECKPOINT")
        return self.found_slot().lost

    def ends(self) -> dict[TopicPartition, int]:
        """Where the topic of `accounts` ends."""
        admin = admin_client(self.settings.log)
        return end_offsets(admin, partitions_of(describe_topics(admin, [self.topic])[self.topic]), committed=True)

    def alter_topic(self, name: str, value: str) -> None:
        """Change a setting of the topic of `accounts`."""
        admin = admin_client(self.settings.log)
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        changed = ConfigResource(ResourceType.TOPIC, self.topic, incremental_configs=[entry])
        [altered] = admin.incremental_alter_configs([changed]).values()
        altered.result()

    def has_begun_a_second_snapshot(self) -> bool:
        """Whether the notifications say so."""
        try:
            require_one_snapshot(self.settings.log)
        except SnapshotInterrupted:
            return True
        return False

    def publish(self) -> None:
        """Run an engine until it has caught up."""
        settings = self.settings
        require_ready(settings)
        resume_capture(settings)
        with Engine(settings, self.spark, self.clock) as engine:
            engine.run(until=current_target(settings))

    def reset(self) -> ControlRecord:
        """Reset the project."""
        with logged() as self.said:
            return reset(self.base, lambda: self.spark, SILENT)

    def execute(self, *statements: str) -> None:
        """Run statements in the source."""
        self.project.database.execute(*statements)

    def assert_reset(self) -> None:
        """An engine goes on and publishes what Postgres has, and of earlier captures nothing is there."""
        self.execute(UPDATE)
        self.publish()
        self.project.assert_equal_to_postgres()
        current = current_capture(self.base)
        assert (current.left, current.is_unfinished) == ((), False)
        assert listed(self.project.warehouse) == []
        world, name, here = self.project.world(), self.project.database.name, current.capture
        assert {slot for slot in world.slots if slot.startswith(name)} == {here.slot}
        assert {each for each in world.connectors if each.startswith(name)} == {here.connector}
        topics = {each for each in world.topics if each.startswith(f"{name}.")}
        assert {each for each in topics if not each.startswith(f"{here.topic_prefix}.")} == set()


@pytest.fixture(scope="module")
def started(stack: LocalStack, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A project that is captured; the tests of this module share it."""
    with (
        pytest.MonkeyPatch.context() as patch,
        new_database(stack.postgres.dsn) as database,
        captures(stack, database) as capture_of,
    ):
        database.execute(*ACCOUNTS)
        with projects(tmp_path_factory.mktemp("reset"), database, capture_of("public.accounts"), spark) as project:
            patch.setenv("PROJECT_DSN", project.dsn)
            project.capture.start()
            world = World(project, spark)
            yield world
            assert destroy(world.base, lambda text: None) == []


@pytest.fixture
def world(started: World) -> World:
    """The project, published up to now."""
    started.publish()
    return started


def test_reset_replaces_all_in_one_epoch_and_says_what_it_cannot_remove(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise SlotChanged("it is still in use")

    before, slot = world.project.published(), world.slot
    monkeypatch.setattr(capture_removal, "drop_slot", refuse)
    published = world.reset()
    assert (published.kind, published.epoch) == ("publish", before.epoch + 1)
    assert published.generation != before.generation
    assert {table.path for table in published.tables.values()}.isdisjoint(t.path for t in before.tables.values())
    world.project.assert_equal_to_postgres()
    assert f'left replication slot "{slot}": SlotChanged: it is still in use' in world.said
    assert [each.slot for each in current_capture(world.base).left] == [slot]
    monkeypatch.undo()
    assert remove_left(world.base) == []
    world.assert_reset()


ALL = os.environ.get("CDC_VIEWS_RESET_STOPS") == "all"
# In the order in which a reset comes to them.
BEFORE_PUBLICATION = (
    *("reset.after_record", "reset.after_capture", "takeover.after_record", "takeover.after_fence"),
    *("epoch.after_cut", "epoch.after_intent", "mirrors.after_first_commit", "epoch.after_mirrors"),
    *("views.after_first_commit", "epoch.before_publish"),
)
AFTER_PUBLICATION = (
    *("epoch.after_publish", "reset.after_publish", "removal.after_connector", "removal.after_slot"),
    "removal.after_topics",
)


def some_of(points: Sequence[str]) -> list[str]:
    """Three of the points, others in each run of the tests, in their order; `just nightly`: all."""
    chosen = points if ALL else random.Random(SEED).sample(points, 3)
    return [point for point in points if point in chosen]


@pytest.mark.proves(
    wrong="A reset is interrupted, and another command is run before it is complete",
    seen="`ResetUnfinished` from `rebuild`, `rollback` and `quarantine`; readers keep the last epoch",
    do="run `cdc-views reset` again, or start the engine: both continue the reset",
)
def test_reset_that_crashes_at_every_step_is_continued(world: World) -> None:
    before = world.project.published()
    for point in some_of(BEFORE_PUBLICATION):
        with crash_at(point):
            world.reset()
        assert world.project.published() == before, point
        world.execute(UPDATE)
    with pytest.raises(ResetUnfinished):
        require_no_reset(world.project.warehouse)
    for point in some_of(AFTER_PUBLICATION):
        with crash_at(point):
            world.reset()
        assert world.project.published().generation != before.generation, point
    world.reset()
    kinds = [each.kind for each in read_control(world.project.warehouse) if each.seq > before.seq]
    assert (kinds.count("publish"), kinds.count("reset")) == (1, 2)
    world.assert_reset()


@pytest.mark.nightly
def test_reset_that_was_killed_is_continued_by_run(
    project: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT_DSN", project.dsn)
    project.capture.start()
    world = World(project, spark)
    world.publish()
    before = project.published()
    project.database.execute("ALTER TABLE accounts ALTER COLUMN holder TYPE varchar(25)", UPDATE)
    killed = project.run("reset", "--yes", CDC_VIEWS_FAULT="reset.after_capture:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert project.published() == before
    shown = CliRunner().invoke(main, ["-C", str(project.folder), "status"])
    assert "whose reset is unfinished" in shown.stderr
    done = project.here("run", "--until-caught-up")
    assert done.returncode == 0, done.stderr
    assert "continuing the reset to capture 2" in done.stderr
    project.assert_equal_to_postgres()
    assert destroy(world.base, lambda text: None) == []


@pytest.mark.nightly
def test_reset_whose_capture_was_outdated_begins_again(world: World) -> None:
    with crash_at("reset.after_capture"):
        world.reset()
    left = current_capture(world.base).capture
    world.execute("ALTER TABLE accounts ALTER COLUMN holder TYPE varchar(25)")
    world.reset()
    assert any(line.startswith("SchemaChanged: ") for line in world.said), world.said
    assert f'removed replication slot "{left.slot}"' in world.said
    world.assert_reset()


def test_reset_beside_an_engine_is_refused(world: World) -> None:
    with Engine(current_settings(world.base), world.spark), pytest.raises(WarehouseLocked):
        world.reset()
    assert not current_capture(world.base).is_unfinished


@dataclass(frozen=True)
class Stop:
    """What brings the engine to a lasting stop, and the error of its next start; `needs_fix`: after `check --fix`."""

    cause: Callable[[World], None]
    errors: tuple[type[CdcViewsError], ...]
    needs_fix: bool = False
    names_reset: bool = True


def drop_the_slot(world: World) -> None:
    world.stop_connector()
    world.drop_slot()


def move_the_slot(world: World) -> None:
    world.stop_connector()
    world.execute(UPDATE, f"SELECT pg_replication_slot_advance('{world.slot}', pg_current_wal_lsn())")


def invalidate_the_slot(world: World) -> None:
    world.stop_connector()
    with server_setting(world.project.database, "max_slot_wal_keep_size", "1MB"):
        wait_for(world.is_slot_lost, 60)


def create_the_topics_again(world: World) -> None:
    delete_topics(world.settings.log, world.settings.source.tables)
    ensure_topics(world.settings.log, world.settings.source.tables)


def delete_a_topic(world: World) -> None:
    admin = admin_client(world.settings.log)
    delete_named_topics(admin, [world.topic])


def add_partitions(world: World) -> None:
    admin = admin_client(world.settings.log)
    [added] = admin.create_partitions([NewPartitions(world.topic, 9)]).values()
    added.result()


def delete_unread_records(world: World) -> None:
    admin, before = admin_client(world.settings.log), world.ends()
    world.execute(*[UPDATE] * 20)
    wait_for(lambda: sum(world.ends().values()) > sum(before.values()) + 40, 30)
    deleted = [KafkaPartition(each.topic, each.partition, end) for each, end in world.ends().items()]
    world.alter_topic("cleanup.policy", "compact,delete")  # of a topic that is compacted only, Kafka deletes nothing
    for future in admin.delete_records(deleted).values():
        future.result()
    world.alter_topic("cleanup.policy", "compact")


def take_the_snapshot_twice(world: World) -> None:
    connector, worker = world.settings.log.connector, ConnectClient(world.settings.log.connect_url)
    worker.delete_connector(connector)
    worker.put_connector(connector, connector_config(world.settings, read_placeholder(world.settings.log)))
    wait_for(world.has_begun_a_second_snapshot, 60)


def change_a_column(world: World) -> None:
    [(length,)] = world.project.database.execute(
        "SELECT character_maximum_length FROM information_schema.columns"
        " WHERE (table_name, column_name) = ('accounts', 'holder')"
    )
    world.execute(f"ALTER TABLE accounts ALTER COLUMN holder TYPE varchar({length + 1})")


def truncate(world: World) -> None:
    world.execute("TRUNCATE accounts", "INSERT INTO accounts VALUES (1, 'ada', 7)")


def create_the_table_again(world: World) -> None:
    world.execute("DROP TABLE accounts", *ACCOUNTS)


def narrow_the_publication(world: World) -> None:
    publication = world.settings.source.publication
    world.execute(f"ALTER PUBLICATION {publication} SET (publish = 'insert')", UPDATE)


def put_a_bad_event(world: World) -> None:
    producer = Producer({"bootstrap.servers": world.settings.log.bootstrap_servers, "log_level": 2})
    producer.produce(world.topic, b"{}", b"{}")
    assert producer.flush(30) == 0


def add_a_table(world: World) -> None:
    world.execute("CREATE TABLE IF NOT EXISTS others (id int PRIMARY KEY, note varchar(5))")
    world.overrides = {"source.tables": "public.accounts,public.others"}


def be_away_for_long(world: World) -> None:
    world.clock = HandClock(datetime.now(UTC) + timedelta(days=365))


def remove_a_mirror(world: World) -> None:
    shutil.rmtree(world.project.warehouse / world.project.published().tables["public.accounts"].path)


STOPS = {
    "slot dropped": Stop(drop_the_slot, (SlotChanged,)),
    "slot moved": Stop(move_the_slot, (SlotChanged,)),
    "slot invalidated": Stop(invalidate_the_slot, (SlotChanged, PreflightFailed)),
    "topics created again": Stop(create_the_topics_again, (TopicChanged,)),
    "topic deleted": Stop(delete_a_topic, (TopicChanged,)),
    "partitions added": Stop(add_partitions, (TopicChanged,)),
    "unread records deleted": Stop(delete_unread_records, (OffsetCompacted,)),
    "snapshot taken twice": Stop(take_the_snapshot_twice, (SnapshotInterrupted, LogDiscontinuity, SequenceRegressed)),
    "column changed": Stop(change_a_column, (SchemaChanged,)),
    "table truncated": Stop(truncate, (TableTruncated,)),
    "table created again": Stop(create_the_table_again, (SchemaChanged, PreflightFailed), needs_fix=True),
    "publication narrowed": Stop(narrow_the_publication, (SchemaChanged,), needs_fix=True),
    "log compacted ahead": Stop(be_away_for_long, (LogGap,)),
    "bad event": Stop(put_a_bad_event, (BadEvent,), names_reset=False),
    "mirror removed": Stop(remove_a_mirror, (TableUnavailable,), names_reset=False),
    "table added": Stop(add_a_table, (BadConfig,), needs_fix=True),
}


if ALL:

    @pytest.mark.parametrize("name", STOPS)
    def test_reset_after_a_lasting_stop_goes_on(world: World, name: str) -> None:
        stop, before = STOPS[name], world.project.published()
        stop.cause(world)
        if stop.needs_fix:
            world.fix()
        with pytest.raises(stop.errors) as raised:
            world.publish()
        assert ("cdc-views reset" in str(raised.value.hint)) is stop.names_reset, raised.value.hint
        assert world.project.published().generation == before.generation
        world.clock = SYSTEM_CLOCK
        world.reset()
        world.assert_reset()

    # After all others: the server is what it was before.
    def test_reset_after_postgres_was_promoted_and_after_it_was_restored_goes_on(
        world: World, stack: LocalStack, enterable_folder: Path
    ) -> None:
        with restored_afterwards(stack.postgres, enterable_folder / uuid4().hex):
            stack.postgres.stop()
            (stack.postgres.data / "standby.signal").touch()
            stack.postgres.start()
            world.execute("SELECT pg_promote()")
            with pytest.raises(LogDiscontinuity, match="timeline"):
                world.publish()
            world.reset()
            world.assert_reset()
        with pytest.raises(LogDiscontinuity, match="timeline"):
            world.publish()
        world.reset()
        world.publish()
        world.project.assert_equal_to_postgres()

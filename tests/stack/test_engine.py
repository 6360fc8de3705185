"""The engine as a process on real services: equal, killed, alone, and stopped by what it cannot do yet."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psutil
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.engine.capture.start import confirmed_flush
from cdc_views.errors import CdcViewsError
from cdc_views.log.kafka.topics import delete_topics, ensure_topics
from cdc_views.source.reading.position import wal_end
from cdc_views.source.slot import read_slot
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services import process
from cdc_views.stack.services.connect import SETTINGS, Connect
from cdc_views.stack.services.postgres import Postgres
from cdc_views.store.control.control_log import read_control
from tests.fix_kafka import CaptureOf, resume_connector
from tests.fix_postgres import Database
from tests.fix_project import ACCOUNTS, Project, assert_refused, end_at, projects
from tests.fix_services import log_settings_for
from tests.logged import messages
from tests.seed import drawn
from tests.waiting import wait_for

LIMIT_S = 120
INTERRUPTED = "interrupted by SIGTERM; exit status 130"
TRANSFER = (
    "BEGIN; UPDATE accounts SET balance = balance - 50 WHERE id = 1;"
    " UPDATE accounts SET balance = balance + 50 WHERE id = 3; COMMIT"
)


def wal_end_of(project: Project) -> Lsn:
    """Where the source's WAL ends."""
    with project.database.connect() as connection:
        return wal_end(connection)


def active_pid(project: Project) -> int | None:
    """The process that reads from the connector's slot."""
    with project.database.connect() as connection:
        slot = read_slot(connection, project.capture.settings.source.slot)
    assert slot is not None
    return slot.active_pid


def has_stored(project: Project, position: Lsn) -> bool:
    """Whether Connect has stored a commit that is not before `position`."""
    log = project.capture.settings.log
    stored = project.capture.connect.stored_commit(log.connector, log.topic_prefix)
    return stored is not None and stored >= position


def is_stored_up_to_the_slot(project: Project) -> bool:
    """Whether Connect has stored all that the slot has confirmed, after some more changes."""
    log = project.capture.settings.log
    project.capture.connect.wait_running(log.connector)
    project.database.execute(TRANSFER)
    confirmed = confirmed_flush(project.capture.settings)
    stored = project.capture.connect.stored_commit(log.connector, log.topic_prefix)
    return confirmed is not None and stored is not None and stored >= confirmed


@contextmanager
def without_running_xacts(project: Project) -> Iterator[None]:
    """Pause Postgres's background writer, which logs the running transactions every 15 seconds.

    A slot that is advanced takes its restart_lsn from the last such record. If that is behind what Connect has stored,
    Debezium goes on as if nothing were lost; if it is ahead, Debezium fails by itself.
    """
    with project.database.connect() as connection:
        query = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'"
        found = connection.execute(query).fetchone()
    assert found is not None
    writer = psutil.Process(found[0])
    writer.suspend()
    try:
        yield
    finally:
        writer.resume()


@contextmanager
def restored_afterwards(server: Postgres, copy: Path) -> Iterator[None]:
    """Put the server back to its present state at the end, as from a backup."""
    server.stop()
    subprocess.run(["cp", "-a", server.data, copy], check=True)
    server.start()
    try:
        yield
    finally:
        server.stop()
        shutil.rmtree(server.data)
        copy.rename(server.data)
        server.start()


def fence_task(project: Project) -> None:
    """Let the connector's task fail when it next commits: somebody else has its transactional id now (Worker.java)."""
    log = project.capture.settings.log
    name = f"{SETTINGS['group.id']}-{log.connector}-0"
    producer = Producer({"bootstrap.servers": log.bootstrap_servers, "transactional.id": name, "log_level": 2})
    producer.init_transactions(LIMIT_S)


@pytest.fixture
def ready(project: Project) -> Project:
    """What `check --fix` can do is done."""
    project.fix()
    return project


@pytest.fixture
def of_either_worker(
    worker: Connect, tmp_path: Path, database: Database, capture: CaptureOf, spark: SparkSession
) -> Iterator[Project]:
    """A ready project on a worker that delivers exactly once, and on one that does not."""
    database.execute(*ACCOUNTS)
    with projects(tmp_path, database, capture("public.accounts", **log_settings_for(worker)), spark) as made:
        made.fix()
        yield made


@pytest.mark.proves(
    wrong="The engine is killed in the middle of an epoch (SIGKILL, also of its JVM)",
    seen="no error; readers keep the last epoch",
    do="start the engine again; it finishes the same epoch",
)
@pytest.mark.nightly
def test_run_that_was_killed_in_an_epoch_is_finished_by_the_next(ready: Project) -> None:
    ready.catch_up()
    ready.assert_equal_to_postgres()
    ready.database.execute(TRANSFER)
    killed = ready.run("run", "--until-caught-up", CDC_VIEWS_FAULT="mirrors.after_first_commit:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    intent = read_control(ready.warehouse)[-1]
    assert intent.kind == "intent"
    wait_for(lambda: not ready.processes(), LIMIT_S)
    ready.catch_up()
    records = read_control(ready.warehouse)
    assert [record.epoch for record in records if record.kind == "publish"].count(intent.epoch) == 1
    ready.assert_equal_to_postgres()


def test_check_and_explain_say_what_postgres_answers_otherwise(ready: Project) -> None:
    ready.database.execute("ALTER TABLE accounts ADD COLUMN worth numeric")
    ready.view("CREATE MATERIALIZED VIEW balances AS SELECT id / 2 AS half, id, worth FROM accounts")
    ready.view("CREATE MATERIALIZED VIEW most AS SELECT max(worth) AS most FROM accounts", "most")
    difference = '"id / 2": Spark gives a fraction for integers; Postgres gives a whole number'
    explained = ready.here("explain", "balances")
    assert explained.returncode == 0, explained.stderr
    assert f"views/balances.sql:1:45: {difference}\n    write div\n" in explained.stdout
    checked = ready.here("check", "--json")
    lines = [json.loads(line) for line in checked.stdout.splitlines()]
    found = {(line["severity"], line["problem"].partition(": ")[2]) for line in lines}
    assert (checked.returncode, ("info", difference) in found) == (2, True), checked.stdout + checked.stderr
    [refused] = [problem for severity, problem in found if severity == "error"]
    assert refused.startswith('column "worth" of "public.accounts" is numeric in Postgres and text here')


def test_run_over_an_empty_table_publishes_it_and_what_comes(ready: Project) -> None:
    ready.database.execute("DELETE FROM accounts")
    ready.capture.start()
    with ready.engine() as catch_up:
        catch_up()
        assert ready.rows("public.accounts") == ready.rows("balances") == []
        ready.database.execute("INSERT INTO accounts VALUES (1, 'ada', 1)")
        catch_up()
        assert ready.rows("balances") == [("ada", 1, 1)]
        ready.assert_equal_to_postgres()


@pytest.mark.proves(
    wrong="The engine is killed while Spark reads a large first epoch",
    seen="no error",
    do="start the engine again",
)
@pytest.mark.parametrize(
    ("point", "deed"),
    [
        ("bulk.after_files", "raise"),
        pytest.param("epoch.after_intent", "raise", marks=pytest.mark.nightly),
        pytest.param("epoch.after_intent", "kill", marks=pytest.mark.nightly),
        pytest.param("bulk.after_files", "kill", marks=pytest.mark.nightly),
    ],
)
def test_first_epoch_in_bulk_that_was_killed_is_read_again_and_equal(ready: Project, point: str, deed: str) -> None:
    ready.capture.start()
    ready.database.execute(TRANSFER, "UPDATE accounts SET id = 7 WHERE id = 2", "DELETE FROM accounts WHERE id = 1")
    bulk = ("--set", "log.bulk_offsets=1", "run", "--until-caught-up")
    end_at(ready, point, deed, *bulk)
    assert read_control(ready.warehouse)[-1].detail["bulk"] == ["public.accounts"]
    done = ready.here(*bulk)
    assert done.returncode == 0, done.stderr
    assert "reading: public.accounts: " in done.stderr
    ready.assert_equal_to_postgres()


@pytest.mark.proves(
    wrong=(
        "A transaction, or the backlog after a downtime, is larger than the driver may hold (`log.bulk_offsets` for "
        "one table, `log.driver_mb` for all tables)"
    ),
    seen=(
        "no error: Spark tasks read it, partition by partition. What they cannot read (a table with `toast: lookup` "
        "or parked events, changes before a schema change) is split into several epochs. If that is impossible: "
        "`CutTooLarge`"
    ),
    do="for `CutTooLarge`, raise `log.driver_mb`, or set REPLICA IDENTITY FULL",
)
@pytest.mark.parametrize(
    "worker", ["exactly once", pytest.param("at least once", marks=pytest.mark.nightly)], indirect=True
)
@pytest.mark.parametrize("deed", ["raise", pytest.param("kill", marks=pytest.mark.nightly)])
def test_large_transaction_is_read_by_tasks_also_after_a_kill(of_either_worker: Project, deed: str) -> None:
    ready = of_either_worker
    run = ("--set", "log.bulk_offsets=300", "run", "--until-caught-up")
    assert ready.here(*run).returncode == 0
    ready.database.execute(
        "INSERT INTO accounts SELECT n, 'eve', n FROM generate_series(100, 1100) n",
        "BEGIN; UPDATE accounts SET balance = balance + 1; DELETE FROM accounts WHERE id % 7 = 0;"
        " UPDATE accounts SET id = id + 10000 WHERE id % 11 = 0; COMMIT",
    )
    end_at(ready, "bulk.after_files", deed, *run)
    assert ready.here(*run).returncode == 0
    ways = [record.detail["ways"]["commit"] for record in read_control(ready.warehouse) if "ways" in record.detail]
    assert ways[-1]["public.accounts"] == "bulk"
    ready.assert_equal_to_postgres()


@pytest.mark.proves(
    wrong="All topics are recreated while no engine runs",
    seen="`TopicChanged` at the start",
    do="run `cdc-views reset`",
)
@pytest.mark.nightly
def test_run_on_recreated_topics_is_refused(ready: Project) -> None:
    ready.catch_up()
    published, settings = ready.published(), ready.capture.settings
    delete_topics(settings.log, settings.source.tables)
    ensure_topics(settings.log, settings.source.tables)
    assert_refused(ready, "TopicChanged", 1, "cdc-views reset", "run", "--until-caught-up")
    assert ready.published() == published


@pytest.mark.proves(
    wrong="Postgres is restored to an earlier state, even if its WAL has passed the published position again",
    seen="`LogDiscontinuity`; a running engine reports it as soon as the server is back",
    do="run `cdc-views reset`",
)
@pytest.mark.nightly
def test_run_on_a_source_that_was_restored_to_an_earlier_state_is_refused(
    ready: Project, stack: LocalStack, enterable_folder: Path
) -> None:
    ready.catch_up()
    with restored_afterwards(stack.postgres, enterable_folder / uuid4().hex):
        engine = ready.start("run")
        ready.database.execute(TRANSFER)
        wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    _, err = engine.communicate(timeout=LIMIT_S)
    assert engine.returncode == 1, err
    assert "\nLogDiscontinuity: source is at " in err
    published = ready.published()
    assert published.position is not None
    while wal_end_of(ready) <= published.position:
        ready.database.execute("SELECT pg_logical_emit_message(false, 'filler', repeat('x', 100000))")
    found = assert_refused(ready, "LogDiscontinuity", 1, "earlier state of itself", "run", "--until-caught-up")
    assert "source is at marker" in found
    assert ready.published() == published


@pytest.mark.proves(
    wrong="The DSN leads to a standby, or to a promoted one, also under a running engine",
    seen="`PreflightFailed` for a standby; `LogDiscontinuity` (another timeline) after a promotion",
    do="use the DSN of the primary; after a promotion run `cdc-views reset`",
)
@pytest.mark.nightly
def test_run_on_a_standby_and_after_it_was_promoted_is_refused(
    ready: Project, stack: LocalStack, enterable_folder: Path
) -> None:
    with restored_afterwards(stack.postgres, enterable_folder / uuid4().hex):
        engine = ready.start("run")
        wait_for(ready.has_published, LIMIT_S)
        stack.postgres.stop()
        (stack.postgres.data / "standby.signal").touch()
        stack.postgres.start()
        refused = ready.here("run", "--until-caught-up")
        assert refused.returncode == 2, refused.stderr
        assert "PreflightFailed: " in refused.stderr
        assert "is a standby" in refused.stderr + refused.stdout
        published = ready.published()
        ready.database.execute("SELECT pg_promote()", TRANSFER)
        _, err = engine.communicate(timeout=LIMIT_S)
        assert engine.returncode == 1, err
        assert 'source has timeline "2", wanted "1"' in err
        found = assert_refused(ready, "LogDiscontinuity", 1, "not the database", "run", "--until-caught-up")
        assert 'source has timeline "2", wanted "1"' in found
    assert ready.published() == published


@pytest.mark.proves(
    wrong="An engine is restarted after its slot was moved, when the slot and the stored offsets agree again",
    seen="`SlotChanged` as before, with the time when it was found; `check` shows it, too",
    do="run `cdc-views reset`",
)
@pytest.mark.nightly
def test_run_after_a_slot_was_moved_under_the_engine_is_refused_for_good(ready: Project) -> None:
    engine, log, slot = ready.start("run"), ready.capture.settings.log, ready.capture.settings.source.slot
    wait_for(ready.has_published, LIMIT_S)
    with without_running_xacts(ready):
        last_xacts = wal_end_of(ready)
        ready.database.execute(TRANSFER)
        wait_for(lambda: has_stored(ready, last_xacts), LIMIT_S)
        ready.capture.connect.stop_connector(log.connector)
        wait_for(lambda: active_pid(ready) is None, LIMIT_S)
        ready.database.execute(TRANSFER, f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())")
    resume_connector(ready.capture.connect, log.connector)
    _, err = engine.communicate(timeout=LIMIT_S)
    assert (engine.returncode, "\nSlotChanged: " in err) == (1, True), err
    published = ready.published()

    # By now nothing tells of what was lost but what was written down.
    wait_for(lambda: is_stored_up_to_the_slot(ready), LIMIT_S)
    refused = ready.here("run", "--until-caught-up")
    assert (refused.returncode, "SlotChanged: " in refused.stderr) == (1, True), refused.stderr
    assert "(seen at 2" in refused.stderr
    assert "(seen at 2" in ready.here("check").stdout
    assert ready.published() == published


@pytest.mark.proves(
    wrong="Postgres or Connect is down for a while",
    seen="a line `SourceUnreachable: ...; trying again` (or `NotRunning`, `MarkerTimeout`, `ConnectorFailed`)",
    do="nothing, if it is back within `engine.retry_s`; otherwise start the engine again",
)
@pytest.mark.proves(
    wrong="The connector's task fails under a running engine",
    seen="a line `ConnectorFailed: ...; trying again` with the message of the task",
    do="nothing, if the engine can restart the task within `engine.retry_s`; otherwise fix what the message says",
)
@pytest.mark.proves(
    wrong="The JVM of Spark's driver is killed or runs out of memory, also while it starts",
    seen="a line `DriverLost: ...; trying again`",
    do="nothing, if another JVM can start within `engine.retry_s`; see `engine.driver_memory`",
)
@pytest.mark.nightly
def test_run_goes_on_when_services_are_back_and_with_another_jvm(ready: Project, stack: LocalStack) -> None:
    engine = ready.start("run")
    wait_for(ready.has_published, LIMIT_S)
    stack.postgres.kill()
    stack.connect.kill()
    stack.postgres.start()
    stack.connect.start()
    ready.database.execute(TRANSFER)
    wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    fence_task(ready)
    ready.database.execute(TRANSFER)
    wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    ready.assert_equal_to_postgres()
    jvms = [pid for pid in process.family(engine.pid) if psutil.Process(pid).name() == "java"]
    process.send(jvms, signal.SIGKILL)
    ready.database.execute(TRANSFER)
    wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    engine.send_signal(signal.SIGTERM)
    _, err = engine.communicate(timeout=LIMIT_S)
    assert (engine.returncode, err.splitlines()[-1]) == (130, INTERRUPTED), err
    said = messages(err)
    assert any(re.fullmatch(r"ConnectorFailed: .* has failed: .*; trying again", each, re.DOTALL) for each in said), err
    assert any(each.startswith("DriverLost: the JVM of Spark ended while the engine was running") for each in said), err
    assert said.count("engine: running") > 3
    assert "Traceback" not in err


@pytest.mark.proves(
    wrong="A second engine is started on the same machine",
    seen="`WarehouseLocked`; the first engine goes on",
    do="stop the first engine if you want the second one",
)
def test_run_beside_another_is_refused_and_the_other_goes_on(ready: Project) -> None:
    first = ready.start("run")
    wait_for(ready.has_published, LIMIT_S)
    second = ready.here("--set", "engine.lock_timeout_s=0.2", "run")
    assert second.returncode == 1, second.stderr
    assert f'WarehouseLocked: warehouse "{ready.warehouse}" is locked by process {first.pid}\nhint: ' in second.stderr
    ready.database.execute(TRANSFER)
    wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    first.send_signal(signal.SIGTERM)
    _, err = first.communicate(timeout=LIMIT_S)
    last = ready.published()
    assert (first.returncode, err.splitlines()[-1]) == (130, INTERRUPTED), err
    assert messages(err)[-1] == f"last published: epoch {last.epoch} at {last.position}"
    assert re.match(f"stopped between two epochs$|stopped in epoch {last.epoch + 1}, not yet", messages(err)[-2])
    wait_for(lambda: not ready.processes(), LIMIT_S)
    ready.database.execute("ALTER TABLE accounts ADD COLUMN note varchar(5)")
    stopped = ready.here("run", "--once")
    assert stopped.returncode == 1, stopped.stderr
    assert "\nSchemaChanged: " in stopped.stderr
    assert "cdc-views reset" in stopped.stderr.splitlines()[-1]
    assert ready.rows("balances") == ready.expected("balances")


@pytest.mark.proves(
    wrong="DDL or TRUNCATE on the only captured table",
    seen="the engine ends with `SchemaChanged` or `TableTruncated`; everything before the change is published",
    do="run `cdc-views reset`",
)
@pytest.mark.parametrize(
    ("statement", "error"),
    drawn(
        1,
        [
            ("ALTER TABLE accounts ADD COLUMN note varchar(5)", "SchemaChanged"),
            ("TRUNCATE accounts", "TableTruncated"),
        ],
    ),
)
def test_run_during_what_it_cannot_apply_stops_at_the_epoch_before(ready: Project, statement: str, error: str) -> None:
    expected = {name: ready.expected(name) for name in ("public.accounts", "balances")}
    ready.capture.start()
    with ready.engine() as catch_up:
        catch_up()
        ready.database.execute(statement, "INSERT INTO accounts (id, holder, balance) VALUES (9, 'eve', 1)")
        with pytest.raises(CdcViewsError, match=r'"public\.accounts"') as raised:
            catch_up()
        assert type(raised.value).__name__ == error
    ended = ready.here("run")  # the next start ends in the same way, although nobody asks it to end
    assert ended.returncode == 1, ended.stderr
    assert f"\n{error}: " in ended.stderr
    assert '"public.accounts"' in ended.stderr
    assert "\nhint: " in ended.stderr
    assert {name: ready.rows(name) for name in expected} == expected
    assert read_control(ready.warehouse)[-1].kind != "intent"

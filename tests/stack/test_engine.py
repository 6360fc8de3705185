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

import pytest
from confluent_kafka import Producer

from cdc_views.engine.capture.start import confirmed_flush
from cdc_views.log.topics import delete_topics, ensure_topics
from cdc_views.lsn import Lsn
from cdc_views.source.position import wal_end
from cdc_views.source.slot import read_slot
from cdc_views.stack import process
from cdc_views.stack.connect import SETTINGS, Connect
from cdc_views.stack.local import LocalStack
from cdc_views.stack.postgres import Postgres
from cdc_views.store.control.control_log import read_control
from tests.fix_kafka import CaptureOf
from tests.fix_postgres import Database
from tests.fix_project import ACCOUNTS, Project, assert_refused, projects
from tests.fix_services import log_settings_for
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


def is_stored_up_to_the_slot(project: Project) -> bool:
    """Whether Connect has stored all that the slot has confirmed, after some more changes."""
    log = project.capture.settings.log
    project.capture.connect.wait_running(log.connector)
    project.database.execute(TRANSFER)
    confirmed = confirmed_flush(project.capture.settings)
    stored = project.capture.connect.stored_commit(log.connector, log.topic_prefix)
    return confirmed is not None and stored is not None and stored >= confirmed


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
def of_either_worker(worker: Connect, tmp_path: Path, database: Database, capture: CaptureOf) -> Iterator[Project]:
    """A ready project on a worker that delivers exactly once, and on one that does not."""
    database.execute(*ACCOUNTS)
    with projects(tmp_path, database, capture("public.accounts", **log_settings_for(worker))) as made:
        made.fix()
        yield made


@pytest.mark.proves(
    wrong="the engine is killed (SIGKILL, with its JVM) in an epoch",
    seen="nothing; readers keep the last epoch",
    do="start it again: it finishes the same epoch",
)
def test_run_that_was_killed_in_an_epoch_is_finished_by_the_next(ready: Project) -> None:
    done = ready.run("run", "--until-caught-up")
    assert done.returncode == 0, done.stderr
    ready.assert_equal_to_postgres()
    ready.database.execute(TRANSFER)
    killed = ready.run("run", "--until-caught-up", CDC_VIEWS_FAULT="mirrors.after_first_commit:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    intent = read_control(ready.warehouse)[-1]
    assert intent.kind == "intent"
    wait_for(lambda: not ready.processes(), LIMIT_S)
    assert ready.run("run", "--until-caught-up").returncode == 0
    records = read_control(ready.warehouse)
    assert [record.epoch for record in records if record.kind == "publish"].count(intent.epoch) == 1
    ready.assert_equal_to_postgres()


def test_check_and_explain_say_what_postgres_answers_otherwise(ready: Project) -> None:
    ready.database.execute("ALTER TABLE accounts ADD COLUMN worth numeric")
    ready.view("CREATE MATERIALIZED VIEW balances AS SELECT id / 2 AS half, id, worth FROM accounts")
    ready.view("CREATE MATERIALIZED VIEW most AS SELECT max(worth) AS most FROM accounts", "most")
    difference = '"id / 2": Spark gives a fraction for integers; Postgres gives a whole number'
    explained = ready.run("explain", "balances")
    assert explained.returncode == 0, explained.stderr
    assert f"views/balances.sql:1:45: {difference}\n    write div\n" in explained.stdout
    checked = ready.run("check", "--json")
    lines = [json.loads(line) for line in checked.stdout.splitlines()]
    found = {(line["severity"], line["problem"].partition(": ")[2]) for line in lines}
    assert (checked.returncode, ("info", difference) in found) == (2, True), checked.stdout + checked.stderr
    [refused] = [problem for severity, problem in found if severity == "error"]
    assert refused.startswith('column "worth" of "public.accounts" is numeric in Postgres and text here')


def test_run_over_an_empty_table_publishes_it_and_what_comes(ready: Project) -> None:
    ready.database.execute("DELETE FROM accounts")
    engine = ready.start("run")
    wait_for(ready.has_published, LIMIT_S)
    assert ready.rows("public.accounts") == ready.rows("balances") == []
    ready.database.execute("INSERT INTO accounts VALUES (1, 'ada', 1)")
    wait_for(lambda: ready.rows("balances") == [("ada", 1, 1)], LIMIT_S)
    ready.assert_equal_to_postgres()
    engine.send_signal(signal.SIGTERM)
    engine.communicate(timeout=LIMIT_S)


@pytest.mark.proves(
    wrong="the engine is killed while Spark reads a long first epoch",
    seen="nothing",
    do="start it again",
)
@pytest.mark.parametrize("point", ["epoch.after_intent", "bulk.after_files"])
def test_first_epoch_in_bulk_that_was_killed_is_read_again_and_equal(ready: Project, point: str) -> None:
    ready.capture.start()
    ready.database.execute(TRANSFER, "UPDATE accounts SET id = 7 WHERE id = 2", "DELETE FROM accounts WHERE id = 1")
    bulk = ("--set", "log.bulk_offsets=1", "run", "--until-caught-up")
    killed = ready.run(*bulk, CDC_VIEWS_FAULT=f"{point}:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert read_control(ready.warehouse)[-1].detail["bulk"] == ["public.accounts"]
    wait_for(lambda: not ready.processes(), LIMIT_S)
    done = ready.run(*bulk)
    assert done.returncode == 0, done.stderr
    assert "reading: public.accounts: " in done.stderr
    ready.assert_equal_to_postgres()


@pytest.mark.proves(
    wrong="a transaction, or what has come while the engine was away, is more than it is to hold (`log.bulk_offsets` "
    "of a table, `log.driver_mb` of all tables)",
    seen="nothing: Spark's tasks read it, partition by partition; what they cannot read (a table with `toast: lookup` "
    "or parked events, what is before a change of schema) comes in several epochs; else `CutTooLarge`",
    do="at `CutTooLarge` raise `log.driver_mb`, or set REPLICA IDENTITY FULL",
)
def test_large_transaction_is_read_by_tasks_also_after_a_kill(of_either_worker: Project) -> None:
    ready = of_either_worker
    run = ("--set", "log.bulk_offsets=300", "run", "--until-caught-up")
    assert ready.run(*run).returncode == 0
    ready.database.execute(
        "INSERT INTO accounts SELECT n, 'eve', n FROM generate_series(100, 1100) n",
        "BEGIN; UPDATE accounts SET balance = balance + 1; DELETE FROM accounts WHERE id % 7 = 0;"
        " UPDATE accounts SET id = id + 10000 WHERE id % 11 = 0; COMMIT",
    )
    killed = ready.run(*run, CDC_VIEWS_FAULT="bulk.after_files:kill")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    wait_for(lambda: not ready.processes(), LIMIT_S)
    assert ready.run(*run).returncode == 0
    ways = [record.detail["ways"]["commit"] for record in read_control(ready.warehouse) if "ways" in record.detail]
    assert ways[-1]["public.accounts"] == "bulk"
    ready.assert_equal_to_postgres()


@pytest.mark.proves(
    wrong="all topics are made anew while no engine runs",
    seen="`TopicChanged` at the start",
    do="`cdc-views reset`",
)
def test_run_on_topics_that_were_made_anew_is_refused(ready: Project) -> None:
    assert ready.run("run", "--until-caught-up").returncode == 0
    published, settings = ready.published(), ready.capture.settings
    delete_topics(settings.log, settings.source.tables)
    ensure_topics(settings.log, settings.source.tables)
    assert_refused(ready, "TopicChanged", 1, "cdc-views reset", "run", "--until-caught-up")
    assert ready.published() == published


@pytest.mark.proves(
    wrong="Postgres is restored to an earlier state, also if its WAL has passed the published position since",
    seen="`LogDiscontinuity`, of a running engine as soon as the server is back",
    do="`cdc-views reset`",
)
def test_run_on_a_source_that_was_restored_to_an_earlier_state_is_refused(
    ready: Project, stack: LocalStack, enterable_folder: Path
) -> None:
    assert ready.run("run", "--until-caught-up").returncode == 0
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
    wrong="the DSN leads to a standby, or to one that was promoted, also under a running engine",
    seen="`PreflightFailed`; `LogDiscontinuity` (another timeline)",
    do="give the DSN of the primary; after a promotion `cdc-views reset`",
)
def test_run_on_a_standby_and_after_it_was_promoted_is_refused(
    ready: Project, stack: LocalStack, enterable_folder: Path
) -> None:
    with restored_afterwards(stack.postgres, enterable_folder / uuid4().hex):
        engine = ready.start("run")
        wait_for(ready.has_published, LIMIT_S)
        stack.postgres.stop()
        (stack.postgres.data / "standby.signal").touch()
        stack.postgres.start()
        refused = ready.run("run", "--until-caught-up")
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
    wrong="an engine whose slot was moved is started again, by when the slot and the stored offsets agree",
    seen="`SlotChanged` as before, and when it was seen; `check` shows it too",
    do="`cdc-views reset`",
)
def test_run_after_a_slot_was_moved_under_the_engine_is_refused_for_good(ready: Project) -> None:
    engine, log, slot = ready.start("run"), ready.capture.settings.log, ready.capture.settings.source.slot
    wait_for(ready.has_published, LIMIT_S)
    wait_for(lambda: ready.capture.connect.stored_commit(log.connector, log.topic_prefix), LIMIT_S)
    ready.capture.connect.stop_connector(log.connector)
    wait_for(lambda: active_pid(ready) is None, LIMIT_S)
    ready.database.execute(TRANSFER, f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())")
    ready.capture.connect.resume_connector(log.connector)
    _, err = engine.communicate(timeout=LIMIT_S)
    assert (engine.returncode, "\nSlotChanged: " in err) == (1, True), err
    published = ready.published()

    # By now nothing tells of what was lost but what was written down.
    wait_for(lambda: is_stored_up_to_the_slot(ready), LIMIT_S)
    refused = ready.run("run", "--until-caught-up")
    assert (refused.returncode, "SlotChanged: " in refused.stderr) == (1, True), refused.stderr
    assert "(seen at 2" in refused.stderr
    assert "(seen at 2" in ready.run("check").stdout
    assert ready.published() == published


@pytest.mark.proves(
    wrong="Postgres or Connect is away for a while",
    seen="a line `SourceUnreachable: ...; trying again` (`NotRunning`, `MarkerTimeout`, `ConnectorFailed`)",
    do="nothing, if it is back within `engine.retry_s`; else start the engine again",
)
@pytest.mark.proves(
    wrong="the connector's task fails under a running engine",
    seen="a line `ConnectorFailed: ...; trying again` with what the task says",
    do="nothing, if the engine can start the task again within `engine.retry_s`; else mend what it says",
)
@pytest.mark.proves(
    wrong="the JVM of Spark's driver is killed or runs out of memory, also while it starts",
    seen="a line `DriverLost: ...; trying again`",
    do="nothing, if another JVM can be started within `engine.retry_s`; see `engine.driver_memory`",
)
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
    jvms = [pid for pid in process.family(engine.pid) if Path(f"/proc/{pid}/comm").read_text() == "java\n"]
    process.send(jvms, signal.SIGKILL)
    ready.database.execute(TRANSFER)
    wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    engine.send_signal(signal.SIGTERM)
    _, err = engine.communicate(timeout=LIMIT_S)
    assert (engine.returncode, err.splitlines()[-1]) == (130, INTERRUPTED), err
    assert re.search(r"^ConnectorFailed: .* has failed: .*; trying again$", err, re.MULTILINE)
    assert "\nDriverLost: the JVM of Spark has ended under the engine" in err
    assert err.count("engine: running") > 3
    assert "Traceback" not in err


@pytest.mark.proves(
    wrong="a second engine is started on the same machine",
    seen="`WarehouseLocked`",
    do="stop the first one, if it is the second that you want",
)
def test_run_beside_another_is_refused_and_the_other_goes_on(ready: Project) -> None:
    first = ready.start("run")
    wait_for(ready.has_published, LIMIT_S)
    second = ready.run("--set", "engine.lock_timeout_s=0.2", "run")
    assert second.returncode == 1, second.stderr
    assert f'WarehouseLocked: warehouse "{ready.warehouse}" is locked by process {first.pid}\nhint: ' in second.stderr
    ready.database.execute(TRANSFER)
    wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    first.send_signal(signal.SIGTERM)
    _, err = first.communicate(timeout=LIMIT_S)
    last = ready.published()
    assert (first.returncode, err.splitlines()[-1]) == (130, INTERRUPTED)
    assert err.splitlines()[-2] == f"last published: epoch {last.epoch} at {last.position}"
    assert re.match(f"stopped between two epochs$|stopped in epoch {last.epoch + 1}, not yet", err.splitlines()[-3])
    wait_for(lambda: not ready.processes(), LIMIT_S)
    ready.database.execute("ALTER TABLE accounts ADD COLUMN note varchar(5)")
    stopped = ready.run("run", "--once")
    assert stopped.returncode == 1, stopped.stderr
    assert "\nSchemaChanged: " in stopped.stderr
    assert "cdc-views reset" in stopped.stderr.splitlines()[-1]
    assert ready.rows("balances") == ready.expected("balances")


@pytest.mark.proves(
    wrong="DDL on the only captured table, or TRUNCATE",
    seen="the engine ends with `SchemaChanged` or `TableTruncated`; everything before it is published",
    do="`cdc-views reset`",
)
@pytest.mark.parametrize(
    ("statement", "error"),
    [("ALTER TABLE accounts ADD COLUMN note varchar(5)", "SchemaChanged"), ("TRUNCATE accounts", "TableTruncated")],
)
def test_run_during_what_it_cannot_apply_stops_at_the_epoch_before(ready: Project, statement: str, error: str) -> None:
    expected = {name: ready.expected(name) for name in ("public.accounts", "balances")}
    engine = ready.start("run")
    wait_for(ready.has_published, LIMIT_S)
    ready.database.execute(statement, "INSERT INTO accounts (id, holder, balance) VALUES (9, 'eve', 1)")
    _, err = engine.communicate(timeout=LIMIT_S)
    assert engine.returncode == 1, err
    assert f"\n{error}: " in err
    assert '"public.accounts"' in err
    assert "\nhint: " in err
    wait_for(lambda: not ready.processes(), LIMIT_S)
    assert {name: ready.rows(name) for name in expected} == expected
    assert read_control(ready.warehouse)[-1].kind != "intent"

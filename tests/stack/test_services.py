"""The services themselves: they start, answer, survive kills, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import requests
from click.testing import CliRunner
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from cdc_views.cli.setup.down import down
from cdc_views.cli.setup.up import up
from cdc_views.demo.project import forget_project, make_project
from cdc_views.errors import BadConfig, NotRunning
from cdc_views.log.kafka.record import TopicPartition
from cdc_views.log.kafka.topics import end_offsets, ensure_topics, topics_below
from cdc_views.stack.local import LocalStack
from cdc_views.stack.services.process import start_mark
from cdc_views.stack.services.service import Service
from tests.seed import drawn
from tests.waiting import wait_for

LIMIT_S = 60
SILENCE_S = 0.5  # in which a broker on this machine would have answered
INTERRUPTED_UP = """
import sys
from pathlib import Path
from cdc_views.stack.local import LocalStack
try:
    LocalStack(Path(sys.argv[1]), durable=False, short_lived=True).up(progress_bar=False)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.fixture
def whole(stack: LocalStack) -> Iterator[LocalStack]:
    """The stack for a test that stops parts of it; whole again afterwards."""
    yield stack
    stack.up(progress_bar=False)


def processes_naming(folder: Path) -> list[str]:
    """Commands of live processes that mention a folder."""
    shown = subprocess.run(["ps", "-A", "-ww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in shown.splitlines() if str(folder) in line]


def test_up_postgres_has_the_settings_that_capture_needs(stack: LocalStack) -> None:
    with psycopg.connect(stack.addresses.dsn) as connection:
        names = ["wal_level", "max_replication_slots", "unix_socket_directories", "server_version"]
        shown = [connection.execute(f"SHOW {name}").fetchone() for name in names]
    assert shown == [("logical",), ("20",), ("",), ("18.3",)]


def test_up_postgres_knows_case_beyond_ascii_and_compares_by_code_point(stack: LocalStack) -> None:
    with psycopg.connect(stack.addresses.dsn) as connection:
        assert connection.execute("SELECT lower('ÄΩ'), 'Z' < 'a'").fetchone() == ("äω", True)


def test_up_postgres_without_the_password_refuses(stack: LocalStack) -> None:
    with pytest.raises(psycopg.OperationalError, match=r"password authentication failed|no password supplied"):
        psycopg.connect(stack.addresses.dsn, password="wrong")


def test_up_kafka_creates_no_topic_by_itself(stack: LocalStack) -> None:
    admin = AdminClient({"bootstrap.servers": stack.addresses.bootstrap_servers})
    admin.list_topics("never-made", timeout=LIMIT_S)
    assert "never-made" not in admin.list_topics(timeout=LIMIT_S).topics


@pytest.mark.proves(
    wrong=(
        "Connect hangs but reports RUNNING. With `transaction.version` 2 a Kafka 4.3.1 producer can end a transaction "
        "before it has sent all batches, and then retries for ever"
    ),
    seen=(
        "no error with new brokers of the native stack or of Docker, which use version 1. With other brokers "
        "`MarkerTimeout`, or a snapshot without progress"
    ),
    do="restart the connector and its tasks; `kafka-features.sh downgrade --feature transaction.version=1` prevents it",
)
def test_up_kafka_has_the_first_version_of_transactions(stack: LocalStack) -> None:
    assert "setting feature transaction.version to 1 (" in (stack.state / "logs/kafka.log").read_text()


def test_up_connect_has_the_pinned_debezium(stack: LocalStack) -> None:
    plugins = requests.get(f"{stack.addresses.connect_url}/connector-plugins", timeout=LIMIT_S).json()
    versions = {plugin["class"]: plugin["version"] for plugin in plugins}
    assert versions["io.debezium.connector.postgresql.PostgresConnector"] == "3.7.0.Final"


def test_up_again_reuses_what_runs(stack: LocalStack) -> None:
    before = [service.pid for service in stack.services]
    LocalStack(stack.state).up(progress_bar=False)
    assert [service.pid for service in stack.services] == before


def test_up_other_port_while_running_is_bad_config(stack: LocalStack) -> None:
    with pytest.raises(BadConfig, match=r"is wanted for postgres, which already uses \d+"):
        LocalStack(stack.state, {"postgres": stack.postgres.port + 1}).up(progress_bar=False)


@pytest.mark.parametrize("name", drawn(1, ["postgres", "kafka", "connect"]))
def test_start_after_kill_keeps_the_address(whole: LocalStack, name: str) -> None:
    service: Service = getattr(whole, name)
    before, first = whole.addresses, service.pid
    service.kill()
    assert not service.is_healthy()
    service.start()
    assert service.pid not in (None, first)
    assert whole.addresses == before
    assert whole.is_running()


@pytest.mark.proves(
    wrong="The broker is killed while it ends a transaction",
    seen="no error: before a new broker starts, the old one is fenced; the new one then ends all transactions",
    do="nothing; with your own brokers and Kafka 4.3 or earlier see KAFKA-20734",
)
@pytest.mark.nightly
def test_kafka_that_is_killed_while_it_ends_transactions_leaves_none_open(whole: LocalStack) -> None:
    server = {"bootstrap.servers": whole.kafka.bootstrap_servers}
    admin, topic = AdminClient(server), f"t_{uuid4().hex}"
    partitions = [TopicPartition(topic, number) for number in range(100)]
    admin.create_topics([NewTopic(topic, len(partitions))])[topic].result()
    for _ in range(2):
        options = {"transactional.id": topic, "transaction.timeout.ms": 3000, "log_level": 0}
        producer = Producer(server | options)
        producer.init_transactions(LIMIT_S)
        ended = threading.Event()
        writer = threading.Thread(target=write_transactions, args=(producer, partitions, ended))
        writer.start()
        written = sum(end_offsets(admin, partitions, committed=True).values())
        wait_for(
            lambda: sum(end_offsets(admin, partitions, committed=True).values()) > written + 1000,  # noqa: B023
            LIMIT_S,
        )
        whole.kafka.kill()
        ended.set()
        writer.join()
        whole.kafka.start()
        wait_for(
            lambda: end_offsets(admin, partitions) == end_offsets(admin, partitions, committed=True), LIMIT_S
        )  # fmt: skip


def write_transactions(producer: Producer, partitions: list[TopicPartition], ended: threading.Event) -> None:
    while not ended.is_set():
        producer.begin_transaction()
        for each in partitions:
            producer.produce(each.topic, b"x", partition=each.partition)
        is_committed = False
        while not is_committed and not ended.is_set():
            with suppress(KafkaException):  # as long as the broker takes; one that was killed never answers
                producer.commit_transaction(1)
                is_committed = True


@pytest.mark.proves(
    wrong="The broker is killed during a request for end offsets. librdkafka then answers -1001 without an error",
    seen="no error: the engine asks again and never treats that answer as an end offset",
    do="nothing",
)
@pytest.mark.nightly
def test_end_offsets_of_a_broker_that_is_killed_meanwhile_are_asked_for_again(whole: LocalStack) -> None:
    server = {"bootstrap.servers": whole.kafka.bootstrap_servers, "log_level": 0}
    admin, topic = AdminClient(server), f"t_{uuid4().hex}"
    partitions = [TopicPartition(topic, number) for number in range(3)]
    admin.create_topics([NewTopic(topic, len(partitions))])[topic].result()
    producer = Producer(server)
    for each in partitions:
        producer.produce(each.topic, b"x", partition=each.partition)
    producer.flush(LIMIT_S)
    answers: list[dict[TopicPartition, int]] = []
    heard_s, ended = [time.monotonic()], threading.Event()
    asking = threading.Thread(target=ask_for_ends, args=(admin, partitions, answers, heard_s, ended))
    asking.start()
    wait_for(lambda: answers, LIMIT_S)
    whole.kafka.pause()
    wait_for(lambda: time.monotonic() - heard_s[0] > SILENCE_S, LIMIT_S)  # a question is with the broker
    before = len(answers)
    whole.kafka.kill()
    whole.kafka.start()
    wait_for(lambda: len(answers) > before, LIMIT_S)
    ended.set()
    asking.join()
    assert [each for each in answers if each != dict.fromkeys(partitions, 1)] == []


def ask_for_ends(
    admin: AdminClient, partitions: list[TopicPartition], answers: list[dict[TopicPartition, int]],
    heard_s: list[float], ended: threading.Event,
) -> None:  # fmt: skip
    while not ended.is_set():
        with suppress(NotRunning):
            answers.append(end_offsets(admin, partitions))
        heard_s[0] = time.monotonic()


def test_start_postgres_after_kill_has_what_was_committed(whole: LocalStack) -> None:
    with psycopg.connect(whole.addresses.dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE survivor AS SELECT 1")
    whole.postgres.kill()
    whole.postgres.start()
    with psycopg.connect(whole.addresses.dsn, autocommit=True) as connection:
        connection.execute("DROP TABLE survivor")


def test_pause_postgres_answers_nothing_until_resumed(whole: LocalStack) -> None:
    whole.postgres.pause()
    assert not whole.postgres.is_healthy()
    whole.postgres.resume()
    wait_for(whole.postgres.is_healthy, LIMIT_S)


def test_command_up_running_stack_says_so(stack: LocalStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(stack.state))
    shown = CliRunner().invoke(up, catch_exceptions=False).output
    assert f"kafka: port {stack.kafka.port}, was running" in shown


def test_command_down_from_another_process_leaves_none(whole: LocalStack) -> None:
    pids = [service.pid for service in whole.services]
    command = [sys.executable, "-m", "cdc_views.cli.main", "down"]
    environment = {**os.environ, "CDC_VIEWS_STATE": str(whole.state)}
    assert subprocess.check_output(command, env=environment, timeout=LIMIT_S) == b"stopped: postgres, kafka, connect\n"
    assert [start_mark(pid) for pid in pids if pid] == [None, None, None]
    assert processes_naming(whole.state) == []
    assert not (whole.state / "stack.json").exists()


def test_command_down_nothing_running_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(tmp_path / "state"))
    assert CliRunner().invoke(down, catch_exceptions=False).output == "nothing was running\n"


@pytest.mark.parametrize(
    ("at", "signum"),
    [("postgres-initdb", signal.SIGINT), ("kafka-format", signal.SIGTERM), ("connect", signal.SIGINT)],
)
def test_up_interrupted_leaves_no_process(enterable_folder: Path, at: str, signum: signal.Signals) -> None:
    state = enterable_folder / f"interrupted-at-{at}"
    starting = subprocess.Popen([sys.executable, "-c", INTERRUPTED_UP, str(state)])
    wait_for((state / f"{at}.pid").exists, LIMIT_S)
    starting.send_signal(signum)
    assert starting.wait(LIMIT_S) == 130
    assert processes_naming(state) == []
    assert not (state / "stack.json").exists()


def test_earlier_project_of_the_demo_is_removed_though_its_dsn_is_of_a_stack_that_is_gone(
    stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDC_VIEWS_STATE", str(stack.state))
    admin_dsn = stack.addresses.dsn
    made = make_project(tmp_path / "demo", admin_dsn)
    ensure_topics(made.settings().log, made.settings().source.tables)
    (made.folder / "dsn").write_text("host=127.0.0.1 port=1 dbname=nowhere user=nobody")
    forget_project(made.folder, admin_dsn)
    with psycopg.connect(admin_dsn) as connection:
        assert connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (made.name,)).fetchall() == []
    assert topics_below(made.settings().log) == []
    forget_project(made.folder, admin_dsn)  # which is gone

"""What Connect says, and what of it counts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pydantic import SecretStr

from cdc_views.base.names import TableName
from cdc_views.config import LogSettings, Settings, SourceSettings
from cdc_views.errors import BadConfig, ConnectorFailed, NotRunning
from cdc_views.log.debezium.connect import ConnectClient, TaskState, require_not_failed
from cdc_views.log.debezium.ownership import other_owner
from cdc_views.log.kafka.topics import topic_name, topic_names
from cdc_views.log.preflight import require_same_cluster
from tests.unit.log_records import log_settings

TRACE = "org.x.ConnectException: stopped\n\tat a.b\nCaused by: org.y.IOError: first\n\tat c\nCaused by: PSQL: no slot"


def test_failure_of_a_task_is_its_first_line_and_the_last_cause() -> None:
    assert TaskState("FAILED", TRACE).failure == "org.x.ConnectException: stopped: PSQL: no slot"


def test_failure_of_a_running_task_is_none() -> None:
    assert TaskState("RUNNING").failure is None


def test_failed_task_is_an_error_that_names_the_connector() -> None:
    with pytest.raises(ConnectorFailed, match=r'connector "app" has failed: .*no slot') as error:
        require_not_failed("app", TaskState("FAILED", TRACE))
    assert error.value.hint


def test_worker_that_does_not_answer_is_not_running() -> None:
    with pytest.raises(NotRunning, match="does not answer") as error:
        ConnectClient("http://127.0.0.1:1").task_state("app")
    assert error.value.exit_status == 3


@contextmanager
def worker(*answers: tuple[int, object], asked: list[str] | None = None) -> Iterator[str]:
    """A server that gives these answers, one after the other, and then the last of them again; yields its address.

    What it is asked goes into `asked`.
    """
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if asked is not None:
                asked.append(f"{self.command} {self.path}")
            status, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.end_headers()
            if status != 204:
                self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    for method in ("GET", "PUT", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are over soon."""
    for name in ("_REBALANCE_LIMIT_S", "_STOP_LIMIT_S"):
        monkeypatch.setattr(f"cdc_views.log.debezium.connect.{name}", 0.1)
    monkeypatch.setattr("cdc_views.log.debezium.connect._POLL_S", 0.01)


DONE = (204, b"")
NO_TASKS = (200, {"connector": {"state": "STOPPED"}, "tasks": []})
REBALANCING = (409, {"error_code": 409, "message": "rebalance in progress"})
UNKNOWN = (404, {"error_code": 404, "message": "Connector app not found"})
NOT_STOPPED = (400, {"error_code": 400, "message": "Connectors must be in the STOPPED state"})
FAILED = (500, {"error_code": 500, "message": "Request timed out"})
FORBIDDEN = (403, b"<html>go away</html>")
STARTING = (404, b"<html>not found</html>")
STORED = (200, {"offsets": [{"partition": {"server": "app"}, "offset": {"lsn_commit": 17}}]})


def test_offsets_are_asked_for_until_the_worker_has_started() -> None:
    with worker(STARTING, (409, {"error_code": 409}), STORED) as url:
        assert ConnectClient(url).stored_commit("app", "app") == 17


def test_stored_commit_is_that_of_the_topic_prefix() -> None:
    stored = [{"partition": {"server": name}, "offset": {"lsn_commit": lsn}} for name, lsn in (("old", 3), ("app", 9))]
    with worker((200, {"offsets": stored})) as url:
        assert ConnectClient(url).stored_commit("app", "app") == 9


def test_connect_of_another_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_views.log.preflight.cluster_of", lambda admin: "ours")
    with worker((200, {"kafka_cluster_id": "theirs"})) as url:
        settings = log_settings().model_copy(update={"connect_url": url})
        with pytest.raises(BadConfig, match='writes to the cluster "theirs", wanted "ours"'):
            require_same_cluster(settings)


def test_offsets_of_a_connector_that_the_worker_does_not_know_are_none() -> None:
    with worker((404, {"error_code": 404, "message": "Connector app not found"})) as url:
        assert ConnectClient(url).stored_commit("app", "app") is None


def test_worker_that_never_answers_a_question_is_not_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_views.log.debezium.connect._REBALANCE_LIMIT_S", 0.2)
    with worker(STARTING) as url, pytest.raises(NotRunning, match="answers 404 to GET /connector-plugins"):
        ConnectClient(url).plugin_version("x")


def test_topic_of_an_odd_name_has_underscores() -> None:
    assert topic_name("app", TableName("public", "odd (name)")) == "app.public.odd__name_"
    assert topic_name("app", TableName("public", "é😀")) == "app.public.___"  # Java has two characters of the last


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a b", "a_b"),
        ("é", "ü"),
        ('"a.b"', "a_b"),
        ('"a.b".c', 'a."b.c"'),
        ("sales_eu.orders", "sales.eu_orders"),  # Kafka refuses the second of them
    ],
)
def test_tables_that_cannot_both_have_a_topic_are_refused(one: str, other: str) -> None:
    with pytest.raises(BadConfig, match="cannot both have a topic"):
        topic_names("app", [TableName.parse(one), TableName.parse(other)])


def test_delete_waits_out_a_rebalance_and_a_worker_that_does_not_know_of_the_stop_yet() -> None:
    asked: list[str] = []
    with worker(REBALANCING, DONE, NO_TASKS, NOT_STOPPED, (200, {"message": "reset"}), DONE, asked=asked) as url:
        ConnectClient(url).delete_connector("app")
    stop, status, offsets, connector = (
        "PUT /connectors/app/stop", "GET /connectors/app/status", "DELETE /connectors/app/offsets",
        "DELETE /connectors/app",
    )  # fmt: skip
    assert asked == [stop, stop, status, offsets, offsets, connector]


def test_delete_of_a_connector_that_is_not_there_is_done() -> None:
    asked: list[str] = []
    with worker(UNKNOWN, asked=asked) as url:
        ConnectClient(url).delete_connector("app")
    assert asked == ["PUT /connectors/app/stop"]


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ((REBALANCING,), "answers 409 to PUT /connectors/app/stop for 0 s: rebalance in progress"),
        ((FORBIDDEN,), "answers 403 to PUT /connectors/app/stop: <html>go away</html>"),
        ((DONE, NO_TASKS, NOT_STOPPED), "answers 400 to DELETE /connectors/app/offsets for 0 s: .*STOPPED state"),
        ((DONE, NO_TASKS, FAILED), "answers 500 to DELETE /connectors/app/offsets for 0 s: Request timed out"),
        ((DONE, NO_TASKS, DONE, FORBIDDEN), "answers 403 to DELETE /connectors/app: "),
        ((DONE, (200, {"tasks": [{"id": 0}]})), 'connector "app" has 1 tasks 0 s after its stop, wanted none'),
        ((DONE, FORBIDDEN), "answers 403 to GET /connectors/app/status"),
    ],
)
def test_delete_that_was_not_done_is_an_error(answers: tuple[tuple[int, object], ...], problem: str) -> None:
    with worker(*answers) as url, pytest.raises(ConnectorFailed, match=problem) as error:
        ConnectClient(url).delete_connector("app")
    assert error.value.hint


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("order", ["restart_connector", "stop_connector"])
@pytest.mark.parametrize("answer", [UNKNOWN, REBALANCING, FAILED, NOT_STOPPED, FORBIDDEN])
def test_order_that_was_not_done_is_an_error(order: str, answer: tuple[int, object]) -> None:
    asked: list[str] = []
    with worker(answer, asked=asked) as url, pytest.raises(ConnectorFailed, match=f"answers {answer[0]} to P"):
        getattr(ConnectClient(url), order)("app")
    if answer[0] in (400, 403):
        assert len(asked) == 1


def test_settings_that_are_refused_are_an_error_without_the_password() -> None:
    refused = (400, {"error_code": 400, "message": "Invalid value s3cret for configuration x"})
    with worker(refused) as url, pytest.raises(ConnectorFailed, match=r"answers 400 .* value \*\*\* for") as error:
        ConnectClient(url).put_connector("app", {"database.password": "s3cret"})
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("status", [404, 409, 500, 503])
def test_state_of_a_task_that_the_worker_cannot_tell_now_is_starting(status: int) -> None:
    with worker((status, b"")) as url:
        assert ConnectClient(url).task_state("app") == TaskState("STARTING")


@pytest.mark.parametrize("answer", [FORBIDDEN, (200, b"<html>log in</html>")])
def test_state_of_a_task_that_somebody_else_answers_is_an_error(answer: tuple[int, object]) -> None:
    with worker(answer) as url, pytest.raises(ConnectorFailed, match=f"answers {answer[0]} to GET /"):
        ConnectClient(url).task_state("app")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("answer", "is_there"), [(UNKNOWN, False), ((200, {"name": "app"}), True)])
def test_connector_is_there_only_if_the_worker_says_so(answer: tuple[int, object], is_there: bool) -> None:
    with worker(REBALANCING, answer) as url:
        assert ConnectClient(url).exists("app") is is_there
    with worker(FAILED) as url, pytest.raises(NotRunning, match=r"answers 500 .* for 0 s: Request timed out"):
        ConnectClient(url).exists("app")


OURS = {
    "topic.prefix": "app", "slot.name": "cdc_views", "database.dbname": "shop", "database.hostname": "db.example",
    "database.port": "5432",
}  # fmt: skip


@pytest.mark.parametrize(
    ("theirs", "may_have_moved", "other"),
    [
        ({}, False, None),
        ({"database.dbname": "payroll"}, True, 'database.dbname is "payroll", wanted "shop"'),
        ({"topic.prefix": "b"}, True, 'topic.prefix is "b", wanted "app"'),
        ({"slot.name": None}, True, 'slot.name is "None", wanted "cdc_views"'),
        ({"database.hostname": "production"}, False, 'database.hostname is "production", wanted "db.example"'),
        ({"database.hostname": "production", "database.port": "1"}, True, None),
    ],
)
def test_connector_of_another_project_is_told_by_what_it_reads(
    theirs: dict[str, str | None], may_have_moved: bool, other: str | None
) -> None:
    source = SourceSettings(dsn=SecretStr("host=db.example dbname=shop user=u"), tables=("orders",))
    with worker((200, OURS | theirs)) as url:
        settings = Settings(source=source, log=LogSettings(bootstrap_servers="nowhere:1", connect_url=url))
        assert other_owner(settings, may_have_moved=may_have_moved) == other


def test_connector_that_does_not_exist_is_of_nobody() -> None:
    with worker((404, {"error_code": 404, "message": "Connector app not found"})) as url:
        settings = Settings(
            source=SourceSettings(dsn=SecretStr("dbname=shop"), tables=("orders",)),
            log=LogSettings(bootstrap_servers="nowhere:1", connect_url=url),
        )
        assert other_owner(settings, may_have_moved=False) is None

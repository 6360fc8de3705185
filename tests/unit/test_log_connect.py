"""What Connect says, and what of it counts."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cdc_views.errors import BadConfig, ConnectorFailed, NotRunning
from cdc_views.log.connect import Connect, TaskState, require_not_failed
from cdc_views.log.preflight import require_same_cluster
from cdc_views.log.topics import topic_name, topic_names
from cdc_views.names import TableName
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
        Connect("http://127.0.0.1:1").task_state("app")
    assert error.value.exit_status == 3


@contextmanager
def worker(*answers: tuple[int, object]) -> Iterator[str]:
    """A server that gives these answers, one after the other, and then the last of them again; yields its address."""
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


STARTING = (404, b"<html>not found</html>")
STORED = (200, {"offsets": [{"partition": {"server": "app"}, "offset": {"lsn_commit": 17}}]})


def test_offsets_are_asked_for_until_the_worker_has_started() -> None:
    with worker(STARTING, (409, {"error_code": 409}), STORED) as url:
        assert Connect(url).stored_commit("app", "app") == 17


def test_stored_commit_is_that_of_the_topic_prefix() -> None:
    stored = [{"partition": {"server": name}, "offset": {"lsn_commit": lsn}} for name, lsn in (("old", 3), ("app", 9))]
    with worker((200, {"offsets": stored})) as url:
        assert Connect(url).stored_commit("app", "app") == 9


def test_connect_of_another_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_views.log.preflight.cluster_of", lambda admin: "ours")
    with worker((200, {"kafka_cluster_id": "theirs"})) as url:
        settings = log_settings().model_copy(update={"connect_url": url})
        with pytest.raises(BadConfig, match='writes to the cluster "theirs", wanted "ours"'):
            require_same_cluster(settings)


def test_offsets_of_a_connector_that_the_worker_does_not_know_are_none() -> None:
    with worker((404, {"error_code": 404, "message": "Connector app not found"})) as url:
        assert Connect(url).stored_commit("app", "app") is None


def test_worker_that_never_answers_a_question_is_not_running(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_views.log.connect._REBALANCE_LIMIT_S", 0.2)
    with worker(STARTING) as url, pytest.raises(NotRunning, match="answers 404 to a question about connector-plugins"):
        Connect(url).plugin_version("x")


def test_topic_of_an_odd_name_has_underscores() -> None:
    assert topic_name("app", TableName("public", "odd (name)")) == "app.public.odd__name_"


def test_tables_that_would_share_a_topic_are_refused() -> None:
    with pytest.raises(BadConfig, match="would share the topic"):
        topic_names("app", [TableName("public", "a b"), TableName("public", "a_b")])

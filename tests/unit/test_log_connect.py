"""What Connect says, and what of it counts."""

from __future__ import annotations

import pytest

from cdc_views.errors import BadConfig, ConnectorFailed, NotRunning
from cdc_views.log.connect import Connect, TaskState, require_not_failed
from cdc_views.log.topics import topic_name, topic_names
from cdc_views.names import TableName

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


def test_topic_of_an_odd_name_has_underscores() -> None:
    assert topic_name("app", TableName("public", "odd (name)")) == "app.public.odd__name_"


def test_tables_that_would_share_a_topic_are_refused() -> None:
    with pytest.raises(BadConfig, match="would share the topic"):
        topic_names("app", [TableName("public", "a b"), TableName("public", "a_b")])

"""What `status` says is wrong, and whether an engine is idle or stuck."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cdc_views.errors import BadConfig, NotRunning
from cdc_views.serve.watch.health import ProjectFacts, activity, trouble, trouble_before_the_first_epoch
from cdc_views.serve.watch.stages import stages_of
from cdc_views.store.control import ControlRecord
from tests.unit.watched import EPOCH, NOON, Watched, backlog

GOOD = replace(EPOCH, detail={"changes": {"public.t": 5}})
IDLE = replace(GOOD, epoch=9, detail={})
INTENT = replace(GOOD, epoch=10, kind="intent", published_at=None)


def project(
    last: ControlRecord = IDLE, *, ago_s: float = 2, pid: int | None = 7, intent: ControlRecord | None = None,
    slowest_s: float = 3,
) -> ProjectFacts:  # fmt: skip
    """One whose last epoch was published so long ago, and which has recorded nothing for nearly as long."""
    return ProjectFacts(pid, last, GOOD, intent, NOON + timedelta(seconds=ago_s), ago_s - 1, slowest_s)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (project(), "running, pid 7; idle: nothing has changed since epoch 7, and it looked 2.0 s ago"),
        (project(GOOD), "running, pid 7; following: epoch 7 with 5 changes was published 2.0 s ago"),
        (
            project(ago_s=45),
            "running, pid 7; stuck: it has published nothing for 45 s, and is not computing an epoch",
        ),
        (
            project(ago_s=45, intent=INTENT),
            "running, pid 7; computing epoch 10, the last one was published 45 s ago",
        ),
        (
            project(ago_s=2700, intent=INTENT),
            "running, pid 7; slow: it has been computing epoch 10 for 45 min",
        ),
        (
            project(ago_s=2700, intent=INTENT, slowest_s=270),
            "running, pid 7; computing epoch 10, the last one was published 45 min ago",
        ),
        (project(pid=None, ago_s=45), "not running"),
        (project(pid=None, ago_s=2700, intent=INTENT), "not running"),
    ],
)
def test_idle_and_stuck_are_told_apart(found: ProjectFacts, said: str) -> None:
    assert activity(found) == said


def test_nothing_is_wrong_with_an_idle_project_whose_services_answer() -> None:
    watched = Watched([IDLE])
    watched.answers.backlog = backlog(confirmed=100, wal_end=101, limit=1000)
    watched.look()
    assert trouble(project(), watched.watch) is None


def test_engine_that_does_not_run_is_to_be_started() -> None:
    assert trouble(project(pid=None, ago_s=300), None, BadConfig("no secret")) == (
        'run "cdc-views run": no engine is running, and readers see the source as it was 5 min ago'
    )


def test_stack_that_is_down_is_to_be_started_first() -> None:
    down = NotRunning("the native stack is not running", hint='start it with "cdc-views up"')
    assert trouble(project(pid=None), None, down) == 'start it with "cdc-views up": the native stack is not running'


def test_connect_that_is_gone_comes_before_an_engine_that_is_stuck() -> None:
    watched = Watched([GOOD])
    watched.answers.state, watched.answers.backlog = None, backlog(confirmed=100, wal_end=110, limit=110)
    watched.look(after_s=45)
    assert trouble(project(ago_s=45), watched.watch) == (
        "start Kafka Connect, or correct log.connect_url: Kafka Connect does not answer; Postgres keeps 10.5 MB of WAL "
        "for it, and the limit of 115.3 MB will be reached in about 8 min"
    )


def test_task_that_has_failed_is_named_with_its_connector() -> None:
    watched = Watched([GOOD])
    watched.answers.state, watched.answers.backlog = "FAILED", backlog(confirmed=100, wal_end=110)
    watched.look()
    assert trouble(project(), watched.watch) == (
        'see the log of Connect, and "cdc-views check"; then restart connector "cdc-views": its task is FAILED, wanted '
        "RUNNING; Postgres keeps 10.5 MB of WAL for it, without a limit (max_slot_wal_keep_size)"
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, 'run "cdc-views reset": replication slot "cdc_views" is gone, and with it the changes since'),
        (
            backlog(confirmed=100, wal_end=300, limit=100, wal_status="lost"),
            'run "cdc-views reset": replication slot "cdc_views" is lost: Postgres has removed WAL that it needs: '
            "the limit of 104.9 MB was reached",
        ),
        (
            backlog(confirmed=100, wal_end=195, limit=100, wal_status="unreserved"),
            'raise max_slot_wal_keep_size, or look for what the connector waits for: slot "cdc_views" may be lost; '
            "Postgres keeps 99.6 MB of WAL for it, and the limit of 104.9 MB will be reached in about 0.5 s",
        ),
    ],
)
def test_slot_that_is_lost_or_near_its_limit(found: None, said: str) -> None:
    watched = Watched([GOOD])
    watched.answers.backlog = found
    watched.look(after_s=10)
    assert trouble(project(), watched.watch) == said


def test_stuck_engine_whose_services_all_answer_is_known_by_its_log() -> None:
    watched = Watched([GOOD])
    watched.answers.backlog = backlog(confirmed=100, wal_end=101)
    watched.look()
    assert trouble(project(ago_s=45), watched.watch) == (
        "see the log of the engine, which says what it waits for: nothing was published for 45 s, and it is not "
        "computing an epoch"
    )


def test_epoch_that_takes_unusually_long_is_named_with_the_log_of_the_engine() -> None:
    watched = Watched([GOOD])
    watched.answers.backlog = backlog(confirmed=100, wal_end=101)
    watched.look()
    found = project(ago_s=2700, intent=INTENT)
    assert trouble(found, watched.watch) == (
        "see the log of the engine, and start it again if it hangs: it has been computing epoch 10 for 45 min, and the "
        "slowest of the last ones took 3.0 s"
    )
    assert [stage.state for stage in stages_of(found, watched.watch, []) if stage.name == "engine"] == ["bad"]
    assert trouble(project(ago_s=300, intent=INTENT), watched.watch) is None


def test_before_the_first_epoch_a_service_or_task_that_is_not_well_is_named() -> None:
    watched = Watched()
    assert trouble_before_the_first_epoch(watched.watch, None, is_running=True) is None
    watched.look()
    assert trouble_before_the_first_epoch(watched.watch, None, is_running=True) is None
    watched.answers.state = "FAILED"
    watched.look()
    assert trouble_before_the_first_epoch(watched.watch, None, is_running=True) == (
        'see the log of Connect, and "cdc-views check"; then restart connector "cdc-views": its task is FAILED, wanted '
        "RUNNING"
    )
    watched.answers.state = None
    watched.look()
    assert trouble_before_the_first_epoch(watched.watch, None, is_running=True) == (
        "start Kafka Connect, or correct log.connect_url: Kafka Connect does not answer"
    )


def test_before_the_first_epoch_a_stack_that_is_down_is_to_be_started() -> None:
    down = NotRunning("the native stack is not running", hint='start it with "cdc-views up"')
    assert trouble_before_the_first_epoch(None, down, is_running=False) == (
        'start it with "cdc-views up": the native stack is not running'
    )
    assert trouble_before_the_first_epoch(None, BadConfig("no secret"), is_running=False) is None


def test_tables_that_are_not_well_come_last() -> None:
    stopped = {"public.t": {"error": "SchemaChanged", "message": "gone", "hint": "do this", "position": "0/1"}}
    assert trouble(project(replace(EPOCH, detail={"stopped": stopped})), None) == (
        'do this: table "public.t" is stopped: gone'
    )
    assert trouble(project(replace(EPOCH, detail={"parked": {"public.t": 2}})), None) == (
        'see "cdc-views quarantine list": table "public.t" has 2 parked keys'
    )
    assert trouble(project(EPOCH), None) == (
        'correct the view or its data, and start the engine again: view "v" has failed: DIVIDE_BY_ZERO'
    )

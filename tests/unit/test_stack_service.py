from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdc_views.errors import PortInUse, ServiceFailed, ServiceKilled
from cdc_views.stack.services import process, service
from cdc_views.stack.services.ports import choose_ports
from tests.unit.scripted_service import ENDS_AT_ONCE, GOOD, NEVER_HEALTHY, STUBBORN, WITH_CHILD, ScriptedService
from tests.waiting import wait_for

Make = Callable[..., ScriptedService]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[ScriptedService] = []

    def make(script: str = GOOD) -> ScriptedService:
        made.append(ScriptedService(tmp_path, choose_ports(tmp_path, {})["connect"], script))
        return made[-1]

    yield make
    for one in made:
        one.kill()


def test_start_process_that_ends_at_once_fails_with_the_end_of_its_log(make: Make) -> None:
    ending = make(ENDS_AT_ONCE)
    with pytest.raises(ServiceFailed, match=r"ended while it was starting; its log ends:\nthe reason") as failure:
        ending.start()
    assert failure.value.hint == f'the log is "{ending.log_file}"'
    assert failure.value.exit_status == 1


@pytest.mark.parametrize("script", ["kill -KILL $$", "exit 143"])
def test_start_process_that_is_killed_can_be_tried_again(make: Make, script: str) -> None:
    with pytest.raises(ServiceKilled, match=r"scripted was ended by SIG(KILL|TERM) while it was starting") as failure:
        make(script).start()
    assert failure.value.retryable


def test_step_of_a_start_that_is_killed_can_be_tried_again(make: Make) -> None:
    one = make()
    one.log_file.parent.mkdir()
    one.folder.mkdir()
    with pytest.raises(ServiceKilled, match="scripted was ended by SIGKILL while it was running format"):
        service.run(one._run("format", ["/bin/sh", "-c", "kill -KILL $$"]))


def test_step_of_a_start_that_does_not_end_fails_after_the_limit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "START_LIMIT_S", 0.3)
    one = make()
    one.log_file.parent.mkdir()
    with pytest.raises(ServiceFailed, match="scripted format did not end within 0 s"):
        service.run(one._run("format", ["/bin/sh", "-c", "exec sleep 600"]))


def test_start_process_that_stays_unhealthy_fails_after_the_limit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "START_LIMIT_S", 0.3)
    with pytest.raises(ServiceFailed, match="did not become healthy within"):
        make(NEVER_HEALTHY).start()


def test_start_port_taken_names_it_and_starts_nothing(make: Make) -> None:
    one = make()
    taken = pytest.raises(PortInUse, match=f"port {one.port} for scripted belongs to another process")
    with socket.create_server(("127.0.0.1", one.port)), taken as failure:
        one.start()
    assert one.pid is None
    assert "other ports" in str(failure.value.hint)


def test_start_running_service_is_left_alone(make: Make) -> None:
    one = make()
    one.start()
    first = one.pid
    one.start()
    assert one.pid == first


def test_start_after_kill_runs_again(make: Make) -> None:
    one = make()
    one.start()
    first = one.pid
    one.kill()
    assert one.pid is None
    one.start()
    assert one.pid not in (None, first)


def test_stop_stubborn_process_is_killed_after_the_limit(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "STOP_LIMIT_S", 0.3)
    one = make(STUBBORN)
    one.start()
    one.stop()
    assert one.pid is None


def test_stop_paused_process_ends(make: Make) -> None:
    one = make()
    one.start()
    one.pause()
    one.stop()
    assert one.pid is None


def test_kill_process_with_a_child_ends_both(make: Make) -> None:
    one = make(WITH_CHILD)
    one.start()
    pid = one.pid
    assert pid is not None
    family = wait_for(lambda: found if len(found := process.family(pid)) == 2 else None, 10)
    assert family is not None
    one.kill()
    assert [process.start_mark(member) for member in family] == [None, None]


def test_stop_service_that_another_object_started_ends_it(make: Make) -> None:
    make().start()
    other = make()
    other.stop()
    assert other.pid is None


def test_run_one_of_two_fails_the_other_is_closed() -> None:
    closed = []

    def waiting() -> service.Steps:
        try:
            while True:
                yield
        finally:
            closed.append("waiting")

    def failing() -> service.Steps:
        yield
        raise ServiceFailed("it failed")

    with pytest.raises(ServiceFailed, match="it failed"):
        service.run(waiting(), failing())
    assert closed == ["waiting"]


def test_pause_and_resume_process_is_stopped_and_goes_on(make: Make) -> None:
    one = make()
    one.start()
    assert one.pid is not None
    one.pause()
    assert os.waitpid(one.pid, os.WUNTRACED)[1] >> 8 == signal.SIGSTOP
    one.resume()
    assert os.WIFCONTINUED(os.waitpid(one.pid, os.WCONTINUED)[1])

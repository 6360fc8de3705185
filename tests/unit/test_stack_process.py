from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdc_views.host import signals
from cdc_views.stack.services import process
from cdc_views.stack.services.process import PidFile


@pytest.fixture
def pid_file(tmp_path: Path) -> Iterator[PidFile]:
    file = PidFile(tmp_path / "sleeper.pid")
    yield file
    process.kill(file)


def spawn(pid_file: PidFile, script: str = "exec sleep 600") -> int:
    folder = pid_file.path.parent
    return process.spawn(["/bin/sh", "-c", script], pid_file, folder / "log", cwd=folder, environment={})


def test_spawn_process_is_registered_in_a_session_of_its_own(pid_file: PidFile) -> None:
    pid = spawn(pid_file)
    assert pid_file.read() == pid
    assert os.getsid(pid) == pid


def test_read_pid_of_another_start_time_is_not_ours(pid_file: PidFile) -> None:
    pid = spawn(pid_file)
    foreign = PidFile(pid_file.path.with_name("foreign.pid"))
    foreign.path.write_text(f"{pid} 12345@an-earlier-boot\n")
    assert foreign.read() is None


def test_kill_reused_pid_is_left_alone(pid_file: PidFile) -> None:
    pid = spawn(pid_file)
    foreign = PidFile(pid_file.path.with_name("foreign.pid"))
    foreign.path.write_text(f"{pid} 12345@an-earlier-boot\n")
    process.kill(foreign)
    assert pid_file.read() == pid
    assert not foreign.path.exists()


@pytest.mark.parametrize("content", ["", "no number", "123", "99999999 1@boot"])
def test_read_file_that_names_no_live_process_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "some.pid").write_text(content)
    assert PidFile(tmp_path / "some.pid").read() is None


def test_read_process_that_has_ended_is_none(pid_file: PidFile) -> None:
    pid = spawn(pid_file)
    process.kill(pid_file)
    pid_file.path.write_text(f"{pid} {process.start_mark(pid)}")
    assert pid_file.read() is None


def test_last_lines_long_log_gives_its_end(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {i}\n" for i in range(10_000)))
    assert process.last_lines(log, 2) == "line 9998\nline 9999"


def test_deferred_signal_is_delivered_at_the_end_of_the_block() -> None:
    steps = []

    def interrupted() -> None:
        with signals.deferred():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("after the signal")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert steps == ["after the signal"]


def test_interrupting_sigterm_raises_and_the_handler_is_put_back() -> None:
    former = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), signals.interrupting():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == former


def failing_cleanup() -> None:
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        raise OSError("the connection is closed")


def replaced_exception() -> None:
    """What DuckDB does if a signal comes during a query."""
    try:
        signal.raise_signal(signal.SIGTERM)
    except KeyboardInterrupt:
        raise RuntimeError("Query interrupted") from None


@pytest.mark.parametrize("interrupted", [failing_cleanup, replaced_exception])
def test_interrupting_error_after_a_signal_is_an_interrupt(interrupted: Callable[[], None]) -> None:
    with pytest.raises(KeyboardInterrupt, match="SIGTERM") as raised, signals.interrupting():
        interrupted()
    assert isinstance(raised.value.__cause__, Exception)


def test_interrupting_error_without_a_signal_stays() -> None:
    with pytest.raises(OSError, match="full"), signals.interrupting():
        raise OSError("full")


def test_deferred_child_started_meanwhile_can_be_terminated() -> None:
    with signals.deferred():
        child = subprocess.Popen(["sleep", "600"])
    child.terminate()
    assert child.wait(10) == -signal.SIGTERM

"""Python's half of the lock, and what it sees of the JVM's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc_views.engine.service.holder import holder as holding_pid
from cdc_views.engine.service.lock import WarehouseLock, only_reset, only_run, require_no_engine
from cdc_views.errors import WarehouseLocked

HOLD = {
    "engine": "import fcntl as f; f.flock(file, f.LOCK_EX)",
    "driver": "import fcntl as f; f.lockf(file, f.LOCK_EX)",
}


@pytest.fixture
def holder(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / ".lock").mkdir()
    program = f"file = open({str(tmp_path / '.lock' / request.param)!r}, 'w'); {HOLD[request.param]}; " \
        "import os; file.write(str(os.getpid())); file.flush(); print('held', flush=True); input()"  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("holder", ["engine", "driver"], indirect=True)
def test_acquire_while_another_process_holds_it_names_that_process(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(WarehouseLocked, match=f"is locked by process {holder.pid}"):
        WarehouseLock(tmp_path, 0).acquire()


@pytest.mark.parametrize("holder", ["engine", "driver"], indirect=True)
def test_acquire_waits_until_the_other_process_is_killed(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    lock = WarehouseLock(tmp_path, 10)
    lock.acquire()
    lock.release()


def test_acquire_after_release_succeeds(tmp_path: Path) -> None:
    first = WarehouseLock(tmp_path, 0)
    first.acquire()
    with pytest.raises(WarehouseLocked, match=f"process {os.getpid()}"):
        WarehouseLock(tmp_path, 0).acquire()
    first.release()
    WarehouseLock(tmp_path, 0).acquire()


def test_acquire_is_not_inherited_by_child_processes(tmp_path: Path) -> None:
    lock = WarehouseLock(tmp_path, 0)
    lock.acquire()
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    lock.release()
    again = WarehouseLock(tmp_path, 0)
    again.acquire()
    again.release()
    child.kill()
    child.wait()


def test_second_reset_of_a_warehouse_is_refused(tmp_path: Path) -> None:
    with only_reset(tmp_path), pytest.raises(WarehouseLocked, match="is being reset by process"), only_reset(tmp_path):
        pass
    with only_reset(tmp_path):
        pass


def test_run_without_an_engine_yet_is_seen_by_what_must_not_run_beside_it(tmp_path: Path) -> None:
    require_no_engine(tmp_path)
    with only_run(tmp_path, 0):
        for beside in (lambda: require_no_engine(tmp_path), lambda: only_run(tmp_path, 0).__enter__()):
            with pytest.raises(WarehouseLocked, match=f"is locked by process {os.getpid()}"):
                beside()
    require_no_engine(tmp_path)


def test_lock_whose_holder_has_not_written_its_pid_yet_is_held(tmp_path: Path) -> None:
    lock = WarehouseLock(tmp_path, 0)
    lock.acquire()
    (tmp_path / ".lock" / "engine").write_text("")
    assert holding_pid(tmp_path) == 0
    with pytest.raises(WarehouseLocked, match="is locked by process unknown"):
        require_no_engine(tmp_path)
    lock.release()
    assert holding_pid(tmp_path) is None


@pytest.mark.parametrize("holder", ["driver"], indirect=True)
def test_engine_that_waits_for_the_jvm_of_an_earlier_one_has_written_its_pid(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(WarehouseLocked):
        WarehouseLock(tmp_path, 0).acquire()
    assert (tmp_path / ".lock" / "engine").read_text() == f"{os.getpid()}\n"

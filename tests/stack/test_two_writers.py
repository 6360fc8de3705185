"""Real engines on real services: three stopped at a point, replaced and woken; one killed with its JVM in a MERGE."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from cdc_views.store.control.control_log import read_control
from cdc_views.store.control.records import PUBLISHING
from cdc_views.store.delta_log.entries import newest_version
from tests.fix_project import Project
from tests.stopped import is_stopped
from tests.waiting import wait_for

LIMIT_S = 120
TRANSFER = (
    "BEGIN; UPDATE accounts SET balance = balance - 50 WHERE id = 1;"
    " UPDATE accounts SET balance = balance + 50 WHERE id = 3; COMMIT"
)
# An epoch's way through its engines: the next one goes on from where the one before was stopped.
STOPPED_AT = ("views.after_first_commit", "epoch.before_publish")


@pytest.fixture
def ready(project: Project) -> Project:
    """What `check --fix` can do is done."""
    project.fix()
    return project


def stopped_at(project: Project, point: str) -> subprocess.Popen[str]:
    """An engine that stands still at a point, and whose locks are those of another machine."""
    engine = project.start("--set", "log.bulk_offsets=1", "run", CDC_VIEWS_FAULT=f"{point}:stop")

    def has_stopped() -> bool:
        assert engine.poll() is None, engine.communicate()[1]
        return is_stopped(engine.pid)

    wait_for(has_stopped, LIMIT_S)
    # Locks are a machine's: on another one, that sees the same files, nobody holds them. The engine keeps its own.
    (project.warehouse / ".lock").rename(project.folder / f"lock-of-{point}")
    return engine


def entries_of(project: Project) -> set[Path]:
    """Every entry of every log of the warehouse."""
    return {*project.warehouse.rglob("_delta_log/*.json")}


@pytest.mark.proves(
    wrong="An engine is paused (SIGSTOP, a frozen machine), replaced by another one, and resumed",
    seen="`Fenced` from the old engine; readers see nothing of it",
    do="nothing: the new engine is the writer",
)
@pytest.mark.nightly
def test_engines_that_were_stopped_and_replaced_are_fenced_when_they_are_woken(ready: Project) -> None:
    engines = [stopped_at(ready, point) for point in STOPPED_AT]
    assert not any(record.kind in PUBLISHING for record in read_control(ready.warehouse))
    ready.database.execute(TRANSFER)
    ready.catch_up()
    ready.assert_equal_to_postgres()
    last, entries = ready.published(), entries_of(ready)
    for engine in engines:
        engine.send_signal(signal.SIGCONT)
    for engine, point in zip(engines, STOPPED_AT, strict=True):
        _, err = engine.communicate(timeout=LIMIT_S)
        assert engine.returncode == 1, (point, err)
        assert "\nFenced: " in err, (point, err)
        assert "\nhint: another engine has taken over" in err, (point, err)
    assert (ready.published(), entries_of(ready)) == (last, entries)
    ready.database.execute(TRANSFER)
    ready.catch_up()
    ready.assert_equal_to_postgres()
    records = read_control(ready.warehouse)
    assert [record.kind for record in records if record.kind == "takeover"] == ["takeover"] * (len(engines) + 2)
    assert [record.term for record in records] == sorted(record.term for record in records)


@pytest.mark.proves(
    wrong="The engine and its JVM are killed during a commit by Spark",
    seen="no error",
    do="start the engine again",
)
@pytest.mark.nightly
def test_engine_killed_with_its_jvm_in_a_merge_is_recovered(ready: Project) -> None:
    engine = ready.start("--set", "store.direct_rows=0", "--set", "upkeep.share=0", "run")
    wait_for(ready.has_published, LIMIT_S)
    mirror = ready.warehouse / ready.published().tables["public.accounts"].path
    for _ in range(10):
        version, files = newest_version(mirror), {*os.listdir(mirror)}
        ready.database.execute(TRANSFER)
        # A MERGE writes its files first, then its entry.
        wait_for(lambda files=files: data_files(mirror) - files, LIMIT_S, every_s=0.0005)  # type: ignore[misc]
        jvms = ready.processes() - {engine.pid}
        signal_all([engine.pid, *jvms], signal.SIGSTOP)
        if newest_version(mirror) == version:
            break
        signal_all([*jvms, engine.pid], signal.SIGCONT)
        wait_for(lambda: ready.rows("balances") == ready.expected("balances"), LIMIT_S)
    signal_all([engine.pid, *jvms], signal.SIGKILL)
    engine.communicate(timeout=LIMIT_S)
    assert read_control(ready.warehouse)[-1].kind == "intent"
    assert newest_version(mirror) == version
    assert data_files(mirror) - files
    wait_for(lambda: not ready.processes(), LIMIT_S)
    ready.catch_up()
    ready.assert_equal_to_postgres()


def data_files(table: Path) -> set[str]:
    """Every data file of a table, whether a version names it or not."""
    return {file for file in os.listdir(table) if file.endswith(".parquet") and not file.startswith(".")}


def signal_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes of ours."""
    for pid in pids:
        with suppress(ProcessLookupError):  # a worker of Spark's that has ended since
            os.kill(pid, number)

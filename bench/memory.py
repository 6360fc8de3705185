"""The memory that one transaction with many rows costs the engine."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import click
import psutil

from bench import command
from bench.equality import differences, published_mirrors
from bench.rig import Rig, rig
from cdc_views.base.lsn import Lsn
from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.demo.programs import Program, engine
from cdc_views.errors import NothingPublished, NotRunning
from cdc_views.host.waiting import wait_until
from cdc_views.source.connection import connect
from cdc_views.source.reading.position import wal_end
from cdc_views.stack.services import process
from cdc_views.store.control import ControlRecord, last_published
from cdc_views.testing.postgres.compare import describe

LIMIT_S: Final = 1800.0
HELD: Final = 1 << 40  # offsets; more than there ever are
_SAMPLE_S: Final = 0.2


class Peaks:
    """Peak memory in MB: an engine's Python process, its JVM, and the Python processes of its tasks together."""

    def __init__(self, pid: int) -> None:
        self.of = {"driver": 0.0, "jvm": 0.0, "tasks": 0.0}
        self._pid = pid
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peaks", daemon=True)

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch while the block runs."""
        self._thread.start()
        try:
            yield
        finally:
            self._ended.set()
            self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_S):
            now = dict.fromkeys(self.of, 0.0)
            for pid in process.family(self._pid):
                with suppress(psutil.Error):
                    is_jvm = psutil.Process(pid).name() == "java"
                    now["driver" if pid == self._pid else "jvm" if is_jvm else "tasks"] += _memory_mb(pid)
            self.of = {part: max(before, now[part]) for part, before in self.of.items()}


def _memory_mb(pid: int) -> float:
    """What a process has of the memory, what it shares with others divided among them."""
    return float(psutil.Process(pid).memory_full_info().pss) / 2**20


def measure(ready: Rig, label: str, bulk_offsets: int) -> Mapping[str, Any]:
    """Measure an engine that has published once, and then a transaction that changes every row of one table."""
    project = ready.project(label)
    first = engine(project)
    first.start()
    _wait(first, lambda: _published(ready, project) is not None)
    first.stop()
    running = engine(project, {"CDC_VIEWS_LOG__BULK_OFFSETS": str(bulk_offsets)})
    started = _times_running(running)
    running.start()
    _wait(running, lambda: _times_running(running) > started)
    assert running.pid is not None
    peaks, before_mb, began = Peaks(running.pid), _memory_mb(running.pid), time.monotonic()
    try:
        with peaks.watched():
            with connect(ready.dsn, pinned=FOR_SQL_OF_USERS) as source:
                changed = source.execute("UPDATE posts SET likes = likes + 1, body = body || '!'").rowcount
                end = wal_end(source)
            committed_s = time.monotonic() - began
            _wait(running, lambda: _holds(_published(ready, project), end))
            took_s = time.monotonic() - began - committed_s
    finally:
        running.stop()
    found = differences(ready.dsn, published_mirrors(ready.settings(project).warehouse))
    if found:
        command.tell(describe(found))
    figures = {"driver_before_mb": round(before_mb)} | {f"{part}_peak_mb": round(mb) for part, mb in peaks.of.items()}
    return {"rows_changed": changed, "published_after_s": round(took_s, 1), **figures, "equal": not found}


def _times_running(program: Program) -> int:
    """How many engines have reported that they run, in the log that all engines of a project share."""
    return program.log_file.read_text().count("engine: running")


def _wait(program: Program, condition: Any) -> None:
    def met() -> bool:
        program.require_running()
        return bool(condition())

    if not wait_until(met, LIMIT_S):
        raise NotRunning(f"the engine did not come so far within {LIMIT_S:.0f} s", hint=f'see "{program.log_file}"')


def _published(ready: Rig, project: Path) -> ControlRecord | None:
    try:
        return last_published(ready.settings(project).warehouse)
    except NothingPublished:
        return None


def _holds(record: ControlRecord | None, end: Lsn) -> bool:
    return record is not None and record.holds(end)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table; all of them are changed.")
@click.option("--held/--no-held", default=True, show_default=True, help="Also with all changes held by the driver.")
@command.stack_options
def main(rows: int, held: bool, state: Path | None, memory: str) -> None:
    """Measure the memory of an engine for one transaction that changes every row of a table.

    \b
    driver_before_mb   the engine's Python before the transaction
    driver_peak_mb     the peak of the same until publication
    jvm_peak_mb        Spark's JVM; its heap is limited by --memory
    tasks_peak_mb      the Python processes of Spark's tasks together
    published_after_s  from the commit of the transaction to the published epoch that contains it
    equal              every row of every mirror equals Postgres

    held_* is the same with log.bulk_offsets so high that the driver holds everything.

    Example: python -m bench.memory --rows 1000000
    """

    def figures() -> Mapping[str, Any]:
        with rig(state, rows, memory) as ready:
            command.tell(f"snapshot of {ready.contents.rows} rows")
            ready.capture()
            found = dict(measure(ready, "tasks", 100_000))
            if held:
                found |= {f"held_{name}": value for name, value in measure(ready, "held", HELD).items()}
            return found

    command.run("memory", {"rows": rows}, figures)


if __name__ == "__main__":
    main()

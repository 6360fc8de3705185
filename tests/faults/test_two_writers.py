"""An engine that is stopped (SIGSTOP) at each point, replaced, and woken: nothing of it is read, and it says so.

One that is killed (SIGKILL) at each point is replaced in the same way, and never says anything.

Engine A is a process, and does what needs no JVM. With views, Kafka and Postgres: tests/stack/test_two_writers.py.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from cdc_views.faults import POINTS
from cdc_views.store.control.control_log import read_control
from cdc_views.store.delta_log.entries import newest_version
from cdc_views.store.reading import read_table
from cdc_views.testing import crash_at
from tests.ledger import EIGHT_DAYS_S, NAMES, OFTEN, Ledger, MirrorEngine, assert_right, published
from tests.seed import drawn
from tests.stopped import LIMIT_S, forking, is_stopped, let_go, run_armed
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("without_fsync")

PREPARED = 4  # transactions that are published before A starts, and one that A finds half done
OF_A = 40  # more than A gets to
FEW, MANY = 4, 100  # epochs of B
# The others need Spark, or are a rebuild's.
POINTS_OF_A = sorted(
    point for point in POINTS
    if point.split(".")[0] in ("takeover", "epoch", "index", "mirrors", "recovery", "abandon", "upkeep")
)  # fmt: skip
# After many epochs the logs have lost what A's next versions would follow.
AFTER_MANY = POINTS_OF_A if os.environ.get("CDC_VIEWS_TWO_WRITERS") == "all" else ("epoch.before_publish",)


def work(root: Path) -> None:
    """Engine A: it recovers, then publishes epochs and keeps its tables up."""
    engine = MirrorEngine(root, Ledger(PREPARED + 1))
    engine.start()
    engine.epochs(OF_A)


def take_back(root: Path) -> None:
    """The same for whom the log can no longer be read as it was."""
    ledger = Ledger(PREPARED + 1)
    ledger.clock.advance(EIGHT_DAYS_S)
    MirrorEngine(root, ledger).start()


def start_armed(root: Path, point: str, deed: str, errors: Path) -> BaseProcess:
    """Engine A in a process of its own, with a fault at a point."""
    done = take_back if point.startswith("abandon") else work
    process: BaseProcess = forking("tests.ledger").Process(
        target=run_armed, args=(done, root, f"{point}:{deed}", errors)
    )
    process.start()
    return process


class Stopped:
    """Engine A, stopped at a point."""

    def __init__(self, root: Path, point: str, errors: Path) -> None:
        self._errors = errors
        self.process = start_armed(root, point, "stop", errors)
        wait_for(self._is_stopped, LIMIT_S)

    def _is_stopped(self) -> bool:
        assert self.process.exitcode is None, f"ended with {self.process.exitcode} before its point"
        assert self.process.pid is not None
        return is_stopped(self.process.pid)

    def assert_fenced(self) -> None:
        """Wake it: it ends with the named error, and its exit status."""
        let_go(self.process)
        assert self.process.exitcode == 1
        assert self._errors.read_text().startswith("Fenced: ")
        assert "\nhint: another engine " in self._errors.read_text()


StopAt = Callable[[str], Stopped]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A warehouse with an epoch half done, and tables that nobody reads."""
    root = tmp_path / "warehouse"
    engine = MirrorEngine(root, Ledger())
    engine.start()
    engine.epochs(PREPARED, upkeep=False)
    with crash_at("epoch.before_publish"):
        engine.epochs(1)
    for number in range(2):
        (root / "views" / "old" / str(number) / "_delta_log").mkdir(parents=True)
    return root


@pytest.fixture
def stop_at(root: Path, tmp_path: Path) -> Iterator[StopAt]:
    """Start engine A, and wait until it has stopped at a point."""
    started: list[Stopped] = []

    def stop(point: str) -> Stopped:
        started.append(Stopped(root, point, tmp_path / "errors"))
        return started[-1]

    yield stop
    for each in started:
        if each.process.exitcode is None and each.process.pid is not None:
            os.kill(each.process.pid, signal.SIGKILL)
            each.process.join(LIMIT_S)


@pytest.mark.parametrize("point", drawn(4, POINTS_OF_A))
def test_engine_killed_at_a_point_is_recovered_by_the_next(root: Path, tmp_path: Path, point: str) -> None:
    first = start_armed(root, point, "kill", tmp_path / "errors")
    first.join(LIMIT_S)
    assert first.exitcode == -signal.SIGKILL
    second = MirrorEngine(root, Ledger(PREPARED + 1 + OF_A))
    second.start()
    second.epochs(FEW)
    assert_right(root, second.ledger, OFTEN.keep_epochs)
    assert_newest_are_right(root, second.ledger)


@pytest.mark.proves(
    wrong="An engine is paused, replaced and resumed at any step of an epoch, a recovery or upkeep",
    seen="`Fenced`",
    do="nothing",
)
@pytest.mark.parametrize(
    ("point", "epochs"), [*drawn(4, [(point, FEW) for point in POINTS_OF_A]), *((point, MANY) for point in AFTER_MANY)]
)
def test_engine_woken_after_it_was_replaced_is_fenced(root: Path, stop_at: StopAt, point: str, epochs: int) -> None:
    first = stop_at(point)
    second = MirrorEngine(root, Ledger(PREPARED + 1 + OF_A))
    second.start()
    takeover = second.control.version
    second.epochs(epochs, upkeep=epochs == MANY)
    readable = OFTEN.keep_epochs
    assert_right(root, second.ledger, readable)
    last, entries = published(root)[-1], entries_of(root)
    first.assert_fenced()
    assert published(root)[-1] == last
    assert entries_of(root) <= entries
    assert_right(root, second.ledger, readable)
    assert {record.writer for record in read_control(root) if record.seq >= takeover} <= {second.writer}
    assert_newest_are_right(root, second.ledger)
    second.epochs(3)
    assert_right(root, second.ledger, readable)


def entries_of(root: Path) -> set[str]:
    """Every entry of a log, but for checkpoints."""
    return {str(file.relative_to(root)) for file in root.rglob("_delta_log/*.json")}


def assert_newest_are_right(root: Path, ledger: Ledger) -> None:
    """Whoever opens a table at its newest version finds the last epoch too."""
    last = published(root)[-1]
    for name in NAMES:
        path = last.tables[f"public.{name}"].path
        rows = read_table(root, path, newest_version(root / path)).to_pylist()
        assert {row["id"]: row["balance"] for row in rows} == ledger.states[str(last.position)][name]

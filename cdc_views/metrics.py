"""Names and measures of what the engine does: how long each stage took, and how much work a table was.

Work is counted where it is done: the store's readers and writers call `count`, which adds to the `Work`
of the `counting` block around them, if there is one. Each thread works for one table at a time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal

STAGES: Final = ("cut", "deltas", "mirrors", "views")

UpkeepStep = Literal["compaction", "checkpoint", "sweep", "leftovers"]


class Stages:
    """How long each stage of an epoch took, in the order in which they end."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._seconds: dict[str, float] = {}

    def done(self, stage: str) -> None:
        """The stage that ran since the last call has ended."""
        assert stage in STAGES, f"unknown stage {stage}"
        now = time.monotonic()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def milliseconds(self) -> dict[str, int]:
        """Whole milliseconds by stage."""
        return {stage: round(seconds * 1000) for stage, seconds in self._seconds.items()}


class Ways:
    """Which way each step went for each table since the last `taken`: `commit`, `lookup`, `read` and `diff`.

    A commit is `direct` (the rows that vanish are found by an index, or none vanish), `direct-scan` (by reading all
    keys), `bulk` (of files that Spark's tasks have written from the log) or `spark`; a lookup is `index` or `spark`.
    `read` is of a table that views read: `driver` (by delta-rs, handed to Spark as Arrow) or `spark`; `diff` of a view
    that was compared with its stored rows: `driver` (by DuckDB) or `spark`. Of several ways all are told, as
    `index+spark`. May be told from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ways: dict[str, dict[str, str]] = {}

    def took(self, step: str, table: str, way: str) -> None:
        """One step for one table went this way."""
        with self._lock:
            of_step = self._ways.setdefault(step, {})
            before = of_step.get(table, way)
            of_step[table] = way if before == way else "+".join(sorted({way, *before.split("+")}))

    def taken(self) -> dict[str, dict[str, str]]:
        """By step and table; forgets them."""
        with self._lock:
            ways, self._ways = self._ways, {}
            return ways


class UpkeepDone:
    """What upkeep has done since the last `taken`: how long its slots took, and how many steps it took of each kind.

    Milliseconds are those of all slots, of the looking for what is due too. Told by the engine's own thread alone.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._steps: Counter[UpkeepStep] = Counter()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Around a slot of upkeep."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds += time.monotonic() - began

    def did(self, step: UpkeepStep) -> None:
        """A step was taken, for one table or for the control log."""
        self._steps[step] += 1

    def taken(self) -> dict[str, float]:
        """Milliseconds (`ms`), and the number of steps by their kind; forgets them."""
        milliseconds, steps = round(self._seconds * 1000, 1), self._steps
        self._seconds, self._steps = 0.0, Counter()
        return {"ms": milliseconds} | {str(step): count for step, count in steps.items()}


@dataclass
class Work:
    """What the driver did by itself for one table: rows and files that it read, rows that its commits wrote.

    A file that is read twice counts twice. What Spark reads is counted by Spark (engine/spark/jobs.py).
    """

    rows_read: int = 0
    files_read: int = 0
    rows_written: int = 0


_current: ContextVar[Work | None] = ContextVar("_current", default=None)


@contextmanager
def counting(work: Work) -> Iterator[Work]:
    """Add to `work` what this thread does in the block."""
    token = _current.set(work)
    try:
        yield work
    finally:
        _current.reset(token)


def count(*, rows_read: int = 0, files_read: int = 0, rows_written: int = 0) -> None:
    """Say what was done; nothing is kept outside of a `counting` block."""
    work = _current.get()
    if work is not None:
        work.rows_read += rows_read
        work.files_read += files_read
        work.rows_written += rows_written

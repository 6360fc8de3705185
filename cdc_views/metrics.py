"""Measurements of the engine: the time of each stage, and the work for each table.

Work is counted where it is done: the store's readers and writers call `count`, which adds to the `Work` of the
enclosing `counting` block, if there is one. Each thread works on one table at a time.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Final, Literal

STAGES: Final = ("cut", "deltas", "mirrors", "views")

WhyFull = Literal[
    "strategy",
    "new view",
    "new input",
    "internal view",
    "no lookups",
    "large change",
    "extreme removed",
    "first row removed",
    "subquery changed",
    "sum not known",
    "number too large",
    "key of NULLs",
    "NULL in NOT IN",
    "equal hashes",
    "error",
]
"""Why a view was computed in full in an epoch (docs/cli.md says what each means)."""

UpkeepStep = Literal["compaction", "checkpoint", "sweep", "leftovers", "failed"]


class Stages:
    """The time that each stage of an epoch took, in the order in which they ended."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._seconds: dict[str, float] = {}

    def done(self, stage: str) -> None:
        """End the stage that has run since the last call."""
        assert stage in STAGES, f"unknown stage {stage}"
        now = time.monotonic()
        self._seconds[stage] = self._seconds.get(stage, 0.0) + now - self._last
        self._last = now

    def milliseconds(self) -> dict[str, int]:
        """Return whole milliseconds by stage."""
        return {stage: round(seconds * 1000) for stage, seconds in self._seconds.items()}


class Ways:
    """The execution path of each step for each table since the last `taken`. Safe to use from several threads.

    The steps and their paths:
    - `commit`: `direct` (an index finds the deleted rows, or there are none), `direct-scan` (reading all keys finds
      them), `bulk` (Spark's tasks wrote the files from the log), `spark`;
    - `lookup`: `index`; `spark`, for values that an event leaves unchanged, never for a view;
    - `read`, of a table that views read: `driver` (delta-rs reads it and Spark gets it as Arrow), `spark`;
    - `view`: `keys` (the rows of affected keys were computed again), `add` (the totals over changed rows were added to
      the stored ones), `patch` (the first rows of groups, or their ordered lists, were merged with changed ones),
      `full` (all rows were computed again), `failed` (before that, a better strategy had failed with an error, which is
      in the log). With `add+keys` and `keys+patch` some groups were computed again;
    - `diff`, of a view's result with its stored rows: `driver` (DuckDB; Python for a few rows), `spark`.
    Several paths of one step are joined, as in `index+spark`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ways: dict[str, dict[str, str]] = {}

    def took(self, step: str, table: str, way: str) -> None:
        """Note the path of a step for a table."""
        with self._lock:
            of_step = self._ways.setdefault(step, {})
            before = of_step.get(table, way)
            of_step[table] = way if before == way else "+".join(sorted({way, *before.split("+")}))

    def taken(self) -> dict[str, dict[str, str]]:
        """Return the paths by step and table, and reset them."""
        with self._lock:
            ways, self._ways = self._ways, {}
            return ways


class UpkeepDone:
    """The work of upkeep since the last `taken`: the time of its slots, and the number of steps of each kind.

    The time includes looking for work that is due. Only the engine's own thread uses it.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._steps: Counter[UpkeepStep] = Counter()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Measure a slot of upkeep."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._seconds += time.monotonic() - began

    def did(self, step: UpkeepStep) -> None:
        """Count a step for one table or for the control log."""
        self._steps[step] += 1

    def taken(self) -> dict[str, float]:
        """Return milliseconds (`ms`) and the number of steps by kind, and reset them."""
        milliseconds, steps = round(self._seconds * 1000, 1), self._steps
        self._seconds, self._steps = 0.0, Counter()
        return {"ms": milliseconds} | {str(step): count for step, count in steps.items()}


@dataclass
class Work:
    """The driver's own work for one table, such as a view in an epoch.

    - `keys_looked_up`: the keys of all lookups; `rows_found`: the rows that these lookups returned, the changed rows of
      the inputs, and all rows of a table that is read as a whole. Both follow from the strategy alone: what is cached,
      and where rows are in files, makes no difference.
    - `rows_recomputed`: the rows that the view's query returned, if the driver collected them.
    - `rows_read`, `files_read`: the rows that were decoded, and the data files that were opened for it. A file that is
      opened twice counts twice, and what a cache has counts nothing. Spark counts what its own scans read
      (engine/spark/jobs.py).
    - `rows_written`: the rows in the files that its commits added; `commits`: the versions that it committed.
    - `milliseconds`: how long it took, on the clock.
    """

    keys_looked_up: int = 0
    rows_found: int = 0
    rows_recomputed: int = 0
    rows_read: int = 0
    files_read: int = 0
    rows_written: int = 0
    commits: int = 0
    milliseconds: int = 0

    def add(self, other: Work) -> None:
        """Add the work of another part."""
        for each in fields(Work):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass
class ViewUpdate(Work):
    """The work of the update of a view, and why it was computed in full; None if it was not, or if nobody recorded it.

    A later version may have other reasons than those of WhyFull.
    """

    why_full: str | None = None


_current: ContextVar[Work | None] = ContextVar("_current", default=None)


@contextmanager
def counting(work: Work) -> Iterator[Work]:
    """Add the work of this thread in the block to `work`."""
    token = _current.set(work)
    try:
        yield work
    finally:
        _current.reset(token)


def count(**numbers: int) -> None:
    """Count work, by the fields of `Work`. Outside a `counting` block this does nothing."""
    add(Work(**numbers))


def add(work: Work) -> None:
    """Count work that was counted apart. Outside a `counting` block this does nothing."""
    current = _current.get()
    if current is not None:
        current.add(work)

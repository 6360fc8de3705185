"""Progress of long reads and of the initial snapshot: bars on a terminal, else log lines."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bars

from cdc_views.engine.capture.initial import Shown
from cdc_views.engine.input.bulk import Progress
from cdc_views.log.debezium.snapshot import SnapshotProgress

SHOWN_EVERY_S: Final = 1.0
SNAPSHOT_SHOWN_EVERY_S: Final = 5.0
_LOGGER: Final = logging.getLogger(__name__)
_BARS: Final = Bars(
    BarColumn(), TextColumn("{task.description}", markup=False), console=Console(stderr=True), transient=True
)

_SHOWING: Final = threading.RLock()  # tables may be read ahead in a thread of their own


class ShownProgress:
    """Shows how many offsets of each table were read, at most once a second. `command` begins each line."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._shown_s = 0.0
        self._last: dict[str, tuple[int, int]] = {}
        _close_with_command()

    def __call__(self, progress: Progress) -> None:
        """Show the progress if it is due."""
        now, at = time.monotonic(), (progress.done, progress.total)
        is_done = progress.done == progress.total
        if not progress.total or self._last.get(progress.table) == at:
            return
        if not is_done and now - self._shown_s < SHOWN_EVERY_S:
            return
        self._shown_s = now
        self._last[progress.table] = at
        left = "" if is_done or progress.seconds_left is None else f", {progress.seconds_left:.0f} s left"
        rate = f"{progress.per_second:.0f} a second{left}"
        line = f"{self._command}: {progress.table}: {progress.done} of {progress.total} offsets, {rate}"
        _show(progress.table, line, progress.done, progress.total)


class ShownSnapshot:
    """Shows the tables and rows that Debezium has read: after each table, and every few seconds while rows arrive.

    `expected` is Postgres's estimate of the number of rows, or None if it has none.
    """

    def __init__(self, expected: int | None) -> None:
        self._expected = expected
        self._shown_s = 0.0
        self._tables_done = 0
        self._rows = 0
        _close_with_command()

    def __call__(self, progress: SnapshotProgress) -> None:
        """Show the progress if it is due."""
        now, rows = time.monotonic(), max(progress.rows, progress.rows_in_log)
        is_time = rows > self._rows and now - self._shown_s >= SNAPSHOT_SHOWN_EVERY_S
        if progress.completed:
            close_bars()
        if progress.completed or not (is_time or progress.tables_done > self._tables_done):
            return
        self._shown_s, self._tables_done, self._rows = now, progress.tables_done, rows
        of, left, rate = "", "", progress.rows_per_second
        if self._expected is not None and rows < self._expected:
            of = f" of about {self._expected}"
            left = f", {(self._expected - rows) / rate:.0f} s left" if rate else ""
        per_second = f", {rate:.0f} a second" if rate else ""
        line = f"snapshot: {progress.tables_done} tables done, {rows}{of} rows{per_second}{left}"
        _show("", line, rows, self._expected)


SHOWN: Final = Shown(ShownSnapshot, ShownProgress)


def _show(name: str, line: str, done: int, total: int | None) -> None:
    """Show the line beside a bar of this name. When it is complete, or without a terminal, log the line."""
    is_terminal, is_over = sys.stderr.isatty(), done == total
    if is_over or not is_terminal:
        _LOGGER.info(line, extra={"fields": ({"table": name} if name else {}) | {"done": done, "total": total}})
    if is_terminal:
        with _SHOWING:
            for task in _BARS.tasks:
                if task.fields["name"] == name:
                    _BARS.remove_task(task.id)
            if not is_over:
                _BARS.add_task(line, total=total, completed=done, name=name)
            if _BARS.tasks:
                _BARS.start()
            else:
                _BARS.stop()


def close_bars() -> None:
    """Remove the bars from the terminal."""
    with _SHOWING:
        if _BARS.live.is_started:
            for task in _BARS.tasks:
                _BARS.remove_task(task.id)
            _BARS.stop()


def _close_with_command() -> None:
    # This runs before the error of the command is printed. A bar that stays open would leave the cursor hidden.
    if (context := click.get_current_context(silent=True)) is not None:
        context.call_on_close(close_bars)

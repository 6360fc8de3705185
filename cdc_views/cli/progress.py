"""How a long reading, and the initial snapshot before it, get on; on stderr."""

from __future__ import annotations

import time
from typing import Final

import click

from cdc_views.engine.capture.initial import Shown
from cdc_views.engine.input.bulk import Progress
from cdc_views.log.snapshot import SnapshotProgress

SHOWN_EVERY_S: Final = 1.0
SNAPSHOT_SHOWN_EVERY_S: Final = 5.0


class ShownProgress:
    """Progress, not more often than people can read; `command` begins each line."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._shown_s = 0.0
        self._last: dict[str, tuple[int, int]] = {}

    def __call__(self, progress: Progress) -> None:
        """Show a line if it is time for one."""
        now, at = time.monotonic(), (progress.done, progress.total)
        is_done = progress.done == progress.total
        if not progress.total or self._last.get(progress.table) == at:
            return
        if not is_done and now - self._shown_s < SHOWN_EVERY_S:
            return
        self._shown_s = now
        self._last[progress.table] = at
        left = "" if is_done or progress.seconds_left is None else f", {progress.seconds_left:.0f} s left"
        click.echo(
            f"{self._command}: {progress.table}: {progress.done} of {progress.total} offsets, "
            f"{progress.per_second:.0f} a second{left}",
            err=True,
        )


class ShownSnapshot:
    """A line for each table that Debezium has read, and in between as rows come.

    `expected` is how many rows there are as Postgres estimates them; None if it does not know.
    """

    def __init__(self, expected: int | None) -> None:
        self._expected = expected
        self._shown_s = 0.0
        self._tables_done = 0
        self._rows = 0

    def __call__(self, progress: SnapshotProgress) -> None:
        """Show a line if it is time for one."""
        now, rows = time.monotonic(), max(progress.rows, progress.rows_in_log)
        is_time = rows > self._rows and now - self._shown_s >= SNAPSHOT_SHOWN_EVERY_S
        if progress.completed or not (is_time or progress.tables_done > self._tables_done):
            return
        self._shown_s, self._tables_done, self._rows = now, progress.tables_done, rows
        of, left, rate = "", "", progress.rows_per_second
        if self._expected is not None and rows < self._expected:
            of = f" of about {self._expected}"
            left = f", {(self._expected - rows) / rate:.0f} s left" if rate else ""
        per_second = f", {rate:.0f} a second" if rate else ""
        click.echo(f"snapshot: {progress.tables_done} tables done, {rows}{of} rows{per_second}{left}", err=True)


def say(text: str) -> None:
    """Print a line on stderr."""
    click.echo(text, err=True)


SHOWN: Final = Shown(say, ShownSnapshot, ShownProgress)

"""How a long reading gets on, on stderr."""

from __future__ import annotations

import time
from typing import Final

import click

from cdc_views.engine.bulk import Progress

SHOWN_EVERY_S: Final = 1.0


class ShownProgress:
    """Progress, not more often than people can read; `command` begins each line."""

    def __init__(self, command: str) -> None:
        self._command = command
        self._shown_s = 0.0
        self._done: set[str] = set()

    def __call__(self, progress: Progress) -> None:
        """Show a line if it is time for one."""
        now = time.monotonic()
        is_done = progress.done == progress.total
        if not progress.total or progress.table in self._done or (not is_done and now - self._shown_s < SHOWN_EVERY_S):
            return
        self._shown_s = now
        if is_done:
            self._done.add(progress.table)
        left = "" if is_done or progress.seconds_left is None else f", {progress.seconds_left:.0f} s left"
        click.echo(
            f"{self._command}: {progress.table}: {progress.done} of {progress.total} offsets, "
            f"{progress.per_second:.0f} a second{left}",
            err=True,
        )

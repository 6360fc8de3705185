"""The initial snapshot of a capture: until it is in the log, with the tables read meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cdc_views.config import Settings
from cdc_views.engine.capture.captures import known_takeover
from cdc_views.engine.capture.start import begin_capture, resume_capture
from cdc_views.engine.input.bulk import OnProgress
from cdc_views.engine.input.read_ahead import ReadAhead
from cdc_views.errors import SnapshotInterrupted
from cdc_views.log.snapshot import SnapshotProgress
from cdc_views.store.control.control_log import read_control


@dataclass(frozen=True)
class Shown:
    """How long work is shown: `say` prints a line.

    `snapshot` makes what shows an initial snapshot, of the number of rows that are expected (None: unknown); `reading`
    what shows how tables are read, of the word that begins each line.
    """

    say: Callable[[str], None]
    snapshot: Callable[[int | None], Callable[[SnapshotProgress], None]]
    reading: Callable[[str], OnProgress]


def capture_or_resume(settings: Settings, ahead: ReadAhead, shown: Shown, expected_rows: int | None) -> None:
    """Take the initial snapshot, or resume the capture if an engine has read it before."""
    if known_takeover(read_control(settings.warehouse)) is not None:
        return resume_capture(settings)  # the snapshot was complete before the first takeover
    show = shown.snapshot(expected_rows)

    def on_progress(progress: SnapshotProgress) -> None:
        show(progress)
        ahead.begin()

    def on_interruption(error: SnapshotInterrupted) -> None:
        ahead.forget()
        shown.say(f"SnapshotInterrupted: {error.message}; taking it again from a new slot and new topics")

    with ahead:
        return begin_capture(settings, on_progress, on_interruption)

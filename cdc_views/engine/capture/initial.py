"""The initial snapshot of a capture: waits until it is in the log, and reads the tables meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cdc_views.config import Settings
from cdc_views.engine.capture.captures import known_takeover
from cdc_views.engine.capture.read_ahead import ReadAhead
from cdc_views.engine.capture.start import begin_capture, resume_capture
from cdc_views.engine.input.bulk import OnProgress
from cdc_views.errors import SnapshotInterrupted
from cdc_views.log.debezium.snapshot import SnapshotProgress
from cdc_views.store.control import read_control

_LOGGER: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shown:
    """How long work is shown.

    `snapshot` takes the expected number of rows (None: unknown) and returns the callback that shows the progress of an
    initial snapshot. `reading` takes the word that starts each line and returns the callback for tables being read.
    """

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
        text = "SnapshotInterrupted: %s; taking it again from a new slot and new topics"
        _LOGGER.warning(text, error.message, extra={"fields": {"error": "SnapshotInterrupted"}})

    with ahead:
        return begin_capture(settings, on_progress, on_interruption)

"""Events in quarantine tried again or discarded: by the running engine, or in its place where none runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views.config import Settings
from cdc_views.engine.capture.captures import require_no_reset
from cdc_views.engine.input.quarantine import NAME, Entry, entry_of
from cdc_views.engine.service.requests import QuarantineRequest
from cdc_views.engine.spark.session import session_for
from cdc_views.log.record import Place
from cdc_views.replay.exchange import exchange
from cdc_views.store.control.control_log import ControlRecord
from cdc_views.store.delta_log.entries import NO_TABLE, newest_version
from cdc_views.store.reading import read_table


def listed(warehouse: Path) -> list[Entry]:
    """What is in quarantine, by place; what an epoch under way is about to put there too."""
    version = newest_version(warehouse / NAME)
    if version == NO_TABLE:
        return []
    entries = map(entry_of, read_table(warehouse, NAME, version).to_pylist())
    return sorted(entries, key=lambda entry: entry.place)


def retry(settings: Settings, jars: Sequence[Path], place: Place | None) -> ControlRecord:
    """Apply parked events again, in their order: those of the key of the event at `place`, or all.

    What is still bad stays parked. Raises UnknownEvent, and what an epoch raises.
    """
    return _asked(settings, jars, QuarantineRequest(uuid4().hex[:8], "retry", place))


def discard(settings: Settings, jars: Sequence[Path], place: Place) -> ControlRecord:
    """Give one event up, and apply what waits for it. Raises UnknownEvent, and what an epoch raises."""
    return _asked(settings, jars, QuarantineRequest(uuid4().hex[:8], "discard", place))


def _asked(settings: Settings, jars: Sequence[Path], request: QuarantineRequest) -> ControlRecord:
    require_no_reset(settings.warehouse)
    with ExitStack() as resources:

        def session() -> SparkSession:
            return resources.enter_context(session_for(settings.engine, jars))

        return exchange(settings, cache(session), request)

"""Retries or discards events in quarantine: through the running engine, or in this process where none runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views.config import Settings
from cdc_views.engine.capture.captures import require_no_reset
from cdc_views.engine.input.quarantine_entries import NAME, Entry, entry_of
from cdc_views.engine.service.requests import QuarantineRequest
from cdc_views.engine.spark.session import session_for
from cdc_views.errors.log_offset import LogOffset
from cdc_views.replay.exchange import exchange
from cdc_views.store.control import ControlRecord
from cdc_views.store.delta_log import NO_TABLE, newest_version
from cdc_views.store.reading import read_table


def listed(warehouse: Path) -> list[Entry]:
    """The events in quarantine, by place, including those that an unpublished epoch has put there."""
    version = newest_version(warehouse / NAME)
    if version == NO_TABLE:
        return []
    entries = map(entry_of, read_table(warehouse, NAME, version).to_pylist())
    return sorted(entries, key=lambda entry: entry.place)


def retry(settings: Settings, jars: Sequence[Path], place: LogOffset | None) -> ControlRecord:
    """Apply parked events again, in their order: those of the key of the event at `place`, or all (None).

    Events that are still bad stay parked. Raises UnknownEvent, and as an epoch does.
    """
    return _asked(settings, jars, QuarantineRequest(uuid4().hex[:8], "retry", place))


def discard(settings: Settings, jars: Sequence[Path], place: LogOffset) -> ControlRecord:
    """Discard one event, and apply the events that wait for it. Raises UnknownEvent, and as an epoch does."""
    return _asked(settings, jars, QuarantineRequest(uuid4().hex[:8], "discard", place))


def _asked(settings: Settings, jars: Sequence[Path], request: QuarantineRequest) -> ControlRecord:
    require_no_reset(settings.warehouse)
    with ExitStack() as resources:

        def session() -> SparkSession:
            return resources.enter_context(session_for(settings.engine, jars))

        return exchange(settings, cache(session), request)

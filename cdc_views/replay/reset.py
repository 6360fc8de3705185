"""A reset: a new generation is built beside the old one and published in one epoch; then the old capture is removed.

1. A record of kind `reset` names the new capture, which is current from here on (engine/capture/captures.py).
2. Topics, connector and slot are created, and the initial snapshot is taken.
3. An engine of the new generation publishes its first epoch: new mirrors, and views computed over them. Until then
   readers see the last epoch of the old generation.
4. The old captures are removed, and a second record says so.
A crash leaves a record that is not done, and the next `reset` or `run` continues. If the source or the log has changed
meanwhile, so that the new capture cannot be used, the next `reset` removes it and starts again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.config import Settings
from cdc_views.engine.capture import broken
from cdc_views.engine.capture.capture_removal import CaptureRemoval, remove_capture
from cdc_views.engine.capture.captures import Capture, CurrentCapture, Reset, all_captures, current_capture
from cdc_views.engine.capture.declared import Declared, declare, require_views_folder
from cdc_views.engine.capture.generation import generation_facts, require_same_source, require_same_tables
from cdc_views.engine.capture.initial import Shown, capture_or_resume
from cdc_views.engine.capture.read_ahead import ReadAhead
from cdc_views.engine.capture.readiness import require_met
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.lock import WarehouseLock, only_reset, require_no_engine
from cdc_views.errors import (
    BadConfig,
    LogError,
    MarkerTimeout,
    PreflightFailed,
    SchemaChanged,
    TableTruncated,
    TableUnavailable,
)
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.kafka.topics import topics_below
from cdc_views.source.catalog import estimated_rows
from cdc_views.source.connection import Connection, connect
from cdc_views.source.slot import read_slot
from cdc_views.store.control import ControlLog, ControlRecord, last_published, last_takeover, read_control

# Errors that make a started capture useless. Other errors go away, or another capture would meet them too.
OUTDATED: Final = (LogError, PreflightFailed, BadConfig, SchemaChanged, TableTruncated, TableUnavailable)

_LOGGER: Final = logging.getLogger(__name__)

Session = Callable[[], SparkSession]


def reset(base: Settings, session: Session, shown: Shown) -> ControlRecord:
    """Reset the project, or continue a reset that was killed; returns the published record of the new generation.

    `base` are the settings as the user gave them. Raises WarehouseLocked while an engine or another reset runs,
    PreflightFailed, BadView, and as a start does.
    """
    with only_reset(base.warehouse):
        require_no_engine(base.warehouse)
        current = current_capture(base)
        if current.is_unfinished:
            _LOGGER.info("continuing the reset to capture %s", current.capture.number)
            try:
                return _finished(base, session, shown)
            except OUTDATED as error:
                if isinstance(error, MarkerTimeout):
                    raise
                name = type(error).__name__
                _LOGGER.warning("%s: %s; beginning again", name, error.message, extra={"fields": {"error": name}})
        _begin(base)
        return _finished(base, session, shown)


def continue_reset(base: Settings, session: Session, shown: Shown) -> ControlRecord:
    """Finish a reset that was started. Raises as `reset` does."""
    with only_reset(base.warehouse):
        return _finished(base, session, shown)


def remove_left(base: Settings) -> list[str]:
    """Remove what earlier resets could not remove; returns what still cannot be. Raises as `reset` does."""
    with only_reset(base.warehouse):
        require_no_engine(base.warehouse)
        current = current_capture(base)
        if current.reset is None or current.is_unfinished:
            return []
        removal = CaptureRemoval(_LOGGER.info)
        _write(base, replace(current.reset, left=_still_left(base, current.left, removal)))
        return removal.left


def _begin(base: Settings) -> None:
    """Step 1. Nothing is changed if the source or the services are not ready for it."""
    current = current_capture(base)
    capture = _next_capture(base, current)
    settings = capture.settings(base)
    require_met(settings)
    facts = _facts(settings)
    before = all_captures(current)
    if current.is_unfinished and not current.is_published:  # nobody reads it, and its slot keeps WAL
        removal = CaptureRemoval(_LOGGER.info)
        remove_capture(base, before[-1], removal)
        before = before if removal.left else before[:-1]
    names = (capture.number, capture.slot, capture.topic_prefix, capture.connector)
    _LOGGER.info('resetting to capture %s: slot "%s", topics "%s.*", connector "%s"', *names)
    _write(base, Reset(capture, tuple(before), facts))
    faults.point("reset.after_record")


def _finished(base: Settings, session: Session, shown: Shown) -> ControlRecord:
    """Steps 2 to 4, without what an earlier try has done of them."""
    current = current_capture(base)
    assert current.reset is not None
    if not current.is_published:
        _publish(base, current, session, shown)
    faults.point("reset.after_publish")
    published = last_published(base.warehouse)
    removal = CaptureRemoval(_LOGGER.info)
    left = _still_left(base, current.left, removal)
    _write(base, replace(current.reset, left=left, is_done=True))
    if removal.left:
        left_count = len(removal.left)
        _LOGGER.warning('left %s: "cdc-views reset --clean" removes them once the services are there', left_count)
    return published


def _publish(base: Settings, current: CurrentCapture, session: Session, shown: Shown) -> None:
    """Steps 2 and 3."""
    assert current.reset is not None
    settings, facts = current.capture.settings(base), current.reset.facts
    if current.known is None:
        broken.forget(base.warehouse)  # a remembered error belongs to the old generation
    require_met(settings)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        declared = _declared(settings, connection)
        expected_rows = estimated_rows(connection, settings.source.tables)
    require_same_source(facts, declared.identity, settings.source.slot)
    require_same_tables(facts, declared.sources)
    ahead = ReadAhead(settings, declared, session, shown.reading("reading ahead"))
    capture_or_resume(settings, ahead, shown, expected_rows)
    faults.point("reset.after_capture")
    progress, views = shown.reading("reading"), declared.definitions
    with Engine(settings, session(), on_progress=progress, take_ahead=ahead.take, definitions=views) as engine:
        engine.run(once=True)


def _still_left(base: Settings, captures: Iterable[Capture], removal: CaptureRemoval) -> tuple[Capture, ...]:
    """Remove captures; returns those of which something could not be removed."""
    left = []
    for capture in captures:
        before = len(removal.left)
        remove_capture(base, capture, removal)
        if len(removal.left) > before:
            left.append(capture)
    return tuple(left)


def _next_capture(base: Settings, current: CurrentCapture) -> Capture:
    """The capture with the next number for which nothing exists. Raises BadConfig if its names are too long."""
    number = current.capture.number
    while True:
        number += 1
        capture = Capture.numbered(base, number)
        with connect(base.source.dsn.get_secret_value()) as connection:
            has_slot = read_slot(connection, capture.slot) is not None
        has_connector = ConnectClient(base.log.connect_url).exists(capture.connector)
        if not (has_slot or has_connector or topics_below(capture.log(base))):
            return capture


def _facts(settings: Settings) -> dict[str, object]:
    with connect(settings.source.dsn.get_secret_value()) as connection:
        declared = _declared(settings, connection)
    return generation_facts(declared.identity, settings.source.slot, {}, declared.sources)


def _declared(settings: Settings, connection: Connection) -> Declared:
    """What the user declared, for a new generation."""
    declared = declare(settings, connection)
    require_views_folder(settings.views, read_control(settings.warehouse))
    return declared


def _write(base: Settings, reset: Reset) -> None:
    """Append a record of kind `reset`, as a writer of its own. Raises WarehouseLocked."""
    lock = WarehouseLock(base.warehouse, base.engine.lock_timeout_s)
    lock.acquire()
    try:
        control = ControlLog.open(base.warehouse, uuid4().hex)
        known, published = last_takeover(control.records), control.last_published
        generation = known.generation if known is not None else None
        # The last takeover must still say what the mirrors were created from.
        control.take_over(generation=generation, detail=known.detail if known is not None else {})
        control.append(
            kind="reset",
            epoch=published.epoch if published is not None else 0,
            attempt=control.new_attempt(),
            generation=generation,
            detail=reset.detail(),
        )
    finally:
        lock.release()

"""A reset: a new generation beside the old one, published in one epoch; then the old slot, topics and connector go.

1. A record of kind `reset` names the new capture: from here on it is the current one (engine/capture/captures.py).
2. Topics, connector and slot are made, and the initial snapshot is taken.
3. An engine of the new generation publishes its first epoch: new mirrors, and views computed over them. Until then
   readers have the last epoch of the old one.
4. The old captures are removed, and a second record says so.
A crash leaves a record that is not done: the next `reset` or `run` continues. If the source or the log has changed
meanwhile so that the begun capture cannot be used, the next `reset` removes it and begins again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final
from uuid import uuid4

from pyspark.sql import SparkSession

from cdc_views import faults
from cdc_views.config import Settings
from cdc_views.engine.capture import broken
from cdc_views.engine.capture.captures import Capture, CurrentCapture, Reset, all_captures, current_capture
from cdc_views.engine.capture.declared import declare
from cdc_views.engine.capture.generation import generation_facts, require_same_source, require_same_tables
from cdc_views.engine.capture.initial import Shown, capture_or_resume
from cdc_views.engine.capture.preflight import require_met
from cdc_views.engine.capture.removal import Removal, remove_capture
from cdc_views.engine.input.read_ahead import ReadAhead
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
from cdc_views.log.connect import Connect
from cdc_views.log.topics import topics_below
from cdc_views.source.catalog import estimated_rows
from cdc_views.source.connection import connect
from cdc_views.source.slot import read_slot
from cdc_views.store.control.control_log import ControlLog, ControlRecord, last_published, last_takeover

# What makes a begun capture useless; other errors pass, or are met again by another one.
OUTDATED: Final = (LogError, PreflightFailed, BadConfig, SchemaChanged, TableTruncated, TableUnavailable)

Session = Callable[[], SparkSession]


def reset(base: Settings, session: Session, shown: Shown) -> ControlRecord:
    """Reset the project, or continue a reset that was killed; returns the published record of the new generation.

    `base` are the settings as the user gave them. Raises WarehouseLocked while an engine or another reset runs,
    PreflightFailed, BadView, and what a start raises.
    """
    with only_reset(base.warehouse):
        require_no_engine(base.warehouse)
        current = current_capture(base)
        if current.is_unfinished:
            shown.say(f"continuing the reset to capture {current.capture.number}")
            try:
                return _finished(base, session, shown)
            except OUTDATED as error:
                if isinstance(error, MarkerTimeout):
                    raise
                shown.say(f"{type(error).__name__}: {error.message}; beginning again")
        _begin(base, shown)
        return _finished(base, session, shown)


def continue_reset(base: Settings, session: Session, shown: Shown) -> ControlRecord:
    """Finish a reset that was begun. Raises as `reset` does."""
    with only_reset(base.warehouse):
        return _finished(base, session, shown)


def remove_left(base: Settings, shown: Shown) -> list[str]:
    """Remove what earlier resets could not remove; returns what still cannot be. Raises as `reset` does."""
    with only_reset(base.warehouse):
        require_no_engine(base.warehouse)
        current = current_capture(base)
        if current.reset is None or current.is_unfinished:
            return []
        removal = Removal(shown.say)
        _write(base, replace(current.reset, left=_still_left(base, current.left, removal)))
        return removal.left


def _begin(base: Settings, shown: Shown) -> None:
    """Step 1. Nothing is changed if the source or the services are not ready for it."""
    current = current_capture(base)
    capture = _next_capture(base, current)
    settings = capture.settings(base)
    require_met(settings)
    facts = _facts(settings)
    before = all_captures(current)
    if current.is_unfinished and not current.is_published:  # nobody reads it, and its slot keeps WAL
        removal = Removal(shown.say)
        remove_capture(base, before[-1], removal)
        before = before if removal.left else before[:-1]
    shown.say(
        f'resetting to capture {capture.number}: slot "{capture.slot}", topics "{capture.topic_prefix}.*", '
        f'connector "{capture.connector}"'
    )
    _write(base, Reset(capture, tuple(before), facts))
    faults.point("reset.after_record")


def _finished(base: Settings, session: Session, shown: Shown) -> ControlRecord:
    """Steps 2 to 4, from wherever an earlier try has come to."""
    current = current_capture(base)
    assert current.reset is not None
    if not current.is_published:
        _publish(base, current, session, shown)
    faults.point("reset.after_publish")
    published = last_published(base.warehouse)
    removal = Removal(shown.say)
    left = _still_left(base, current.left, removal)
    _write(base, replace(current.reset, left=left, is_done=True))
    if removal.left:
        shown.say(f'left {len(removal.left)}: "cdc-views reset --clean" removes them once the services are there')
    return published


def _publish(base: Settings, current: CurrentCapture, session: Session, shown: Shown) -> None:
    """Steps 2 and 3."""
    assert current.reset is not None
    settings, facts = current.capture.settings(base), current.reset.facts
    if current.known is None:
        broken.forget(base.warehouse)  # what was remembered is of the old generation
    require_met(settings)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        declared = declare(settings, connection)
        expected_rows = estimated_rows(connection, settings.source.tables)
    require_same_source(facts, declared.identity, settings.source.slot)
    require_same_tables(facts, declared.sources)
    ahead = ReadAhead(settings, declared, session, shown.say, shown.reading("reading ahead"))
    capture_or_resume(settings, ahead, shown, expected_rows)
    faults.point("reset.after_capture")
    with Engine(settings, session(), on_progress=shown.reading("reading"), take_ahead=ahead.take) as engine:
        engine.run(once=True)


def _still_left(base: Settings, captures: Iterable[Capture], removal: Removal) -> tuple[Capture, ...]:
    """Remove captures; those of which something could not be removed."""
    left = []
    for capture in captures:
        before = len(removal.left)
        remove_capture(base, capture, removal)
        if len(removal.left) > before:
            left.append(capture)
    return tuple(left)


def _next_capture(base: Settings, current: CurrentCapture) -> Capture:
    """The next number of which nothing is there. Raises BadConfig where its names are too long."""
    number = current.capture.number
    while True:
        number += 1
        capture = Capture.numbered(base, number)
        with connect(base.source.dsn.get_secret_value()) as connection:
            has_slot = read_slot(connection, capture.slot) is not None
        has_connector = Connect(base.log.connect_url).exists(capture.connector)
        if not (has_slot or has_connector or topics_below(capture.log(base))):
            return capture


def _facts(settings: Settings) -> dict[str, object]:
    with connect(settings.source.dsn.get_secret_value()) as connection:
        declared = declare(settings, connection)
    return generation_facts(declared.identity, settings.source.slot, {}, declared.sources)


def _write(base: Settings, reset: Reset) -> None:
    """Put a record of kind `reset`, in place of an engine. Raises WarehouseLocked."""
    lock = WarehouseLock(base.warehouse, base.engine.lock_timeout_s)
    lock.acquire()
    try:
        control = ControlLog.open(base.warehouse, uuid4().hex)
        known, published = last_takeover(control.records), control.last_published
        generation = known.generation if known is not None else None
        # What the mirrors were made from stays in the last takeover.
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

"""Supervision: checks, the capture, and engines one after another, until there is nothing more to wait for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from cdc_views.base.lsn import Lsn
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import CurrentCapture, current_capture
from cdc_views.engine.capture.declared import declare, edited_files
from cdc_views.engine.capture.initial import Shown, capture_or_resume
from cdc_views.engine.capture.read_ahead import ReadAhead
from cdc_views.engine.capture.readiness import require_known_tables, require_ready
from cdc_views.engine.capture.start import resume_capture
from cdc_views.engine.input.bulk import warm_up
from cdc_views.engine.service.engine import Engine, OnEpoch
from cdc_views.engine.service.lock import only_run
from cdc_views.engine.service.patience import AWAY, Patience
from cdc_views.engine.service.target import current_target
from cdc_views.engine.spark.driver import Driver, background_driver
from cdc_views.errors import BadView, RequestFailed
from cdc_views.host.signals import interrupting
from cdc_views.source.catalog import estimated_rows
from cdc_views.source.connection import connect
from cdc_views.store.control import ControlRecord, read_control
from cdc_views.views.definition import ViewDefinition

_LOGGER: Final = logging.getLogger(__name__)

FinishReset = Callable[[Settings, Callable[[], SparkSession], Shown], object]
"""Continues a reset that was interrupted (replay/reset.py)."""


@dataclass(frozen=True)
class Supervisor:
    """Runs a project: `base` are its settings as the user gave them, `shown` shows the progress of long work.

    `jars` returns Delta's jars, and may download them.
    """

    base: Settings
    jars: Callable[[], Sequence[Path]]
    shown: Shown
    finish_reset: FinishReset

    def run(self, *, once: bool, until_caught_up: bool, on_epoch: OnEpoch) -> None:
        """Publish epochs for ever, or one (`once`), or everything that was committed before the start.

        The view files are read once, so that an edit takes effect only in another run. Raises the findings of the
        preflight before anything is created, and the error that ends the last engine.
        """
        current = current_capture(self.base)
        settings = current.capture.settings(self.base)
        # Checks that leave no trace come first; topics, slot and connector are created after them.
        if not current.is_unfinished:  # a reset has its own checks
            require_ready(settings)
        with connect(settings.source.dsn.get_secret_value()) as connection:
            declared = declare(settings, connection, read_control(settings.warehouse))
            require_known_tables(settings, declared)
            if declared.removed:
                names = ", ".join(f'"{name}"' for name in declared.removed)
                _LOGGER.warning('no file in "%s" for %s: the next epoch is without', settings.views, names)
            expected_rows = estimated_rows(connection, settings.source.tables)
        jars = self.jars()
        # Start the JVM and Debezium at the same time: each takes seconds.
        with (
            only_run(settings.warehouse, settings.engine.lock_timeout_s),
            background_driver(settings.engine, jars, _prepare(current)) as driver,
        ):
            if current.is_unfinished:
                _LOGGER.info("continuing the reset to capture %s", current.capture.number)
                self.finish_reset(self.base, driver.session, self.shown)
            ahead = ReadAhead(settings, declared, driver.session, self.shown.reading("reading ahead"))
            capture_or_resume(settings, ahead, self.shown, expected_rows)
            until = current_target(settings) if until_caught_up else None
            self._publish(settings, driver, ahead, declared.definitions, once, until, on_epoch)

    def _publish(
        self,
        settings: Settings,
        driver: Driver,
        ahead: ReadAhead,
        definitions: Sequence[ViewDefinition],
        once: bool,
        until: Lsn | None,
        on_epoch: OnEpoch,
    ) -> None:
        """Run one engine after another. An engine ends when a service or its JVM is gone; the next one starts from the
        last published epoch.
        """
        patience = Patience(settings.engine.retry_s)

        def published(record: ControlRecord) -> None:
            patience.renew()
            on_epoch(record)

        is_captured = True
        while True:
            try:
                if not is_captured:
                    resume_capture(settings)
                progress = self.shown.reading("reading")
                with (
                    interrupting(),  # an error of the cleanup after a signal must not start another engine
                    driver.naming_lost(),
                    Engine(
                        settings,
                        driver.session(),
                        on_progress=progress,
                        take_ahead=ahead.take,
                        definitions=definitions,
                    ) as engine,
                ):
                    _LOGGER.info("engine: running")
                    _warn_of_edits(settings.views, definitions)
                    engine.run(once=once, until=until, on_epoch=published)
                    return engine.require_none_stopped()
            except RequestFailed as error:
                fields = {"error": "RequestFailed"}
                _LOGGER.warning("RequestFailed: %s; the engine restarts", error.message, extra={"fields": fields})
            except AWAY as error:
                patience.wait(error)
                is_captured = False


def _warn_of_edits(folder: Path, definitions: Sequence[ViewDefinition]) -> None:
    """Log which view files no longer declare what this run has."""
    try:
        if not (edited := edited_files(folder, definitions)):
            return
        problem = f'changed in "{folder}": {", ".join(edited)}'
    except BadView as error:
        problem = error.message
    _LOGGER.warning("%s; the views of this run go on as they were at its start", problem)


def _prepare(current: CurrentCapture) -> Callable[[SparkSession], None]:
    """Return what a new session does first: it warms up if nothing is published, since all tables are read soon."""
    return (lambda session: None) if current.is_published else warm_up

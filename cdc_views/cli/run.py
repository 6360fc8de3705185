"""`cdc-views run`."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

import click
from pyspark.sql import SparkSession

from cdc_views.cli.log_lines import show_dated_lines
from cdc_views.cli.main import Project
from cdc_views.cli.progress import SHOWN, ShownProgress, close_bars
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import CurrentCapture, current_capture
from cdc_views.engine.capture.declared import declare
from cdc_views.engine.capture.initial import capture_or_resume
from cdc_views.engine.capture.preflight import require_known_tables, require_ready
from cdc_views.engine.capture.start import resume_capture
from cdc_views.engine.input.bulk import warm_up
from cdc_views.engine.input.read_ahead import ReadAhead
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.patience import AWAY, Patience
from cdc_views.engine.service.target import current_target
from cdc_views.engine.spark.session import Driver, driver_beside
from cdc_views.errors import RequestFailed
from cdc_views.lsn import Lsn
from cdc_views.replay.reset import continue_reset
from cdc_views.serve.prometheus import observe, serve_metrics
from cdc_views.source.catalog import estimated_rows
from cdc_views.source.connection import connect
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command
from cdc_views.stopped import stopped_in
from cdc_views.store.control.control_log import ControlRecord, read_control

_LOGGER: Final = logging.getLogger(__name__)


@click.command()
@click.option("--once", is_flag=True, help="Publish one epoch and stop.")
@click.option("--until-caught-up", is_flag=True, help="Stop when everything committed before the start is published.")
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve metrics for Prometheus at this port.")
@click.pass_obj
def run(project: Project, once: bool, until_caught_up: bool, metrics_port: int | None) -> None:
    """Run the engine: register the connector if need be, then publish epoch after epoch.

    Example: cdc-views run --until-caught-up
    """
    # The engine can be killed anywhere, so a polite stop needs no more than leaving the loop where it is.
    signal.signal(signal.SIGTERM, _interrupt)
    show_dated_lines()
    base = project.settings()
    if metrics_port is not None:
        serve_metrics(metrics_port)
    # What can be found wrong without a trace left behind is found first: no topic, slot or connector is made before.
    java_command()
    current = current_capture(base)
    settings = current.capture.settings(base)
    if not current.is_unfinished:  # a reset looks for itself
        require_ready(settings)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        declared = declare(settings, connection, read_control(settings.warehouse))
        require_known_tables(settings, declared)
        expected_rows = estimated_rows(connection, settings.source.tables)
    jars = delta_jars()
    # The JVM takes seconds, and so does Debezium.
    with driver_beside(settings.engine, jars, _prepare(current)) as driver:
        if current.is_unfinished:
            _LOGGER.info("continuing the reset to capture %s", current.capture.number)
            continue_reset(base, driver.session, SHOWN)
        ahead = ReadAhead(settings, declared, driver.session, ShownProgress("reading ahead"))
        capture_or_resume(settings, ahead, SHOWN, expected_rows)
        until = current_target(settings) if until_caught_up else None
        _publish(settings, driver, ahead, once, until)


def _publish(settings: Settings, driver: Driver, ahead: ReadAhead, once: bool, until: Lsn | None) -> None:
    """Run engines, one after the other: each ends when a service or its JVM is gone, and the next starts from what is
    published.
    """
    patience = Patience(settings.engine.retry_s)

    def on_epoch(record: ControlRecord) -> None:
        patience.renew()
        observe(record)
        report(record)

    is_captured = True
    while True:
        try:
            if not is_captured:
                resume_capture(settings)
            shown = ShownProgress("reading")
            with (
                driver.naming_lost(),
                Engine(settings, driver.session(), on_progress=shown, take_ahead=ahead.take) as engine,
            ):
                _LOGGER.info("engine: running")
                engine.run(once=once, until=until, on_epoch=on_epoch)
                return engine.require_none_stopped()
        except RequestFailed as error:
            _LOGGER.warning("RequestFailed: %s; the engine starts again", error.message)
        except AWAY as error:
            patience.wait(error)
            is_captured = False


def _prepare(current: CurrentCapture) -> Callable[[SparkSession], None]:
    """What a new session is to do at once: where nothing is published all tables are read soon."""
    return (lambda session: None) if current.is_published else warm_up


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def report(record: ControlRecord) -> None:
    """Log a published epoch."""
    close_bars()
    changes, stage_ms = sum(record.detail.get("changes", {}).values()), record.detail.get("stage_ms", {})
    spent = ", ".join(f"{stage} {ms} ms" for stage, ms in stage_ms.items())
    fields = {"epoch": record.epoch, "position": str(record.position), "changes": changes, "stage_ms": stage_ms}
    line = f"epoch {record.epoch} at {record.position}: {changes} changes ({spent})"
    _LOGGER.info(line, extra={"fields": fields})
    for table, stopped in stopped_in(record.detail).items():
        _LOGGER.warning('table "%s" is stopped: %s: %s', table, stopped.error, stopped.message)
    for table, keys in record.detail.get("parked", {}).items():
        _LOGGER.warning('table "%s" has %s parked keys: see "cdc-views quarantine list"', table, keys)
    for view, failure in record.detail.get("failures", {}).items():
        _LOGGER.warning('view "%s" has failed: %s', view, failure)

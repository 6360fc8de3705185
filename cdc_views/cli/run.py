"""`cdc-views run`."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import click
from pyspark.sql import SparkSession

from cdc_views.cli.main import Project
from cdc_views.cli.progress import ShownProgress, ShownSnapshot
from cdc_views.config import Settings
from cdc_views.engine.bulk import warm_up
from cdc_views.engine.capture import begin_capture, resume_capture
from cdc_views.engine.declared import declare
from cdc_views.engine.engine import Engine
from cdc_views.engine.patience import AWAY, Patience
from cdc_views.engine.preflight import require_ready
from cdc_views.engine.read_ahead import ReadAhead
from cdc_views.engine.target import current_target
from cdc_views.errors import NothingPublished, RequestFailed, SnapshotInterrupted
from cdc_views.log.snapshot import SnapshotProgress
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import estimated_rows
from cdc_views.source.connection import connect
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command
from cdc_views.store.control import ControlRecord, last_published, read_control
from cdc_views.store.spark import Driver, driver_beside


@click.command()
@click.option("--once", is_flag=True, help="Publish one epoch and stop.")
@click.option("--until-caught-up", is_flag=True, help="Stop when everything committed before the start is published.")
@click.pass_obj
def run(project: Project, once: bool, until_caught_up: bool) -> None:
    """Run the engine: register the connector if need be, then publish epoch after epoch.

    Example: cdc-views run --until-caught-up
    """
    # The engine can be killed anywhere, so a polite stop needs no more than leaving the loop where it is.
    signal.signal(signal.SIGTERM, _interrupt)
    settings = project.settings()
    # What can be found wrong without a trace left behind is found first: no topic, slot or connector is made before.
    java_command()
    require_ready(settings)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        declared = declare(settings, connection)
        expected_rows = estimated_rows(connection, settings.source.tables)
    jars = delta_jars()
    # The JVM takes seconds, and so does Debezium.
    with driver_beside(settings.engine, jars, _prepare(settings)) as driver:
        ahead = ReadAhead(settings, declared, driver.session, _say, ShownProgress("reading ahead"))
        _capture(settings, ahead, expected_rows)
        until = current_target(settings) if until_caught_up else None
        _publish(settings, driver, ahead, once, until)


def _capture(settings: Settings, ahead: ReadAhead, expected_rows: int | None) -> None:
    if read_control(settings.warehouse):
        return resume_capture(settings)  # the snapshot was complete before the first record
    show = ShownSnapshot(expected_rows)

    def on_progress(progress: SnapshotProgress) -> None:
        show(progress)
        ahead.begin()

    def on_interruption(error: SnapshotInterrupted) -> None:
        ahead.forget()
        _say(f"SnapshotInterrupted: {error.message}; taking it again from a new slot and new topics")

    with ahead:
        return begin_capture(settings, on_progress, on_interruption)


def _publish(settings: Settings, driver: Driver, ahead: ReadAhead, once: bool, until: Lsn | None) -> None:
    """Run engines, one after the other: each ends when a service or its JVM is gone, and the next starts from what is
    published.
    """
    patience = Patience(settings.engine.retry_s, say=_say)

    def on_epoch(record: ControlRecord) -> None:
        patience.renew()
        _report(record)

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
                _say("engine: running")
                return engine.run(once=once, until=until, on_epoch=on_epoch)
        except RequestFailed as error:
            _say(f"RequestFailed: {error.message}; the engine starts again")
        except AWAY as error:
            patience.wait(error)
            is_captured = False


def _say(text: str) -> None:
    click.echo(text, err=True)


def _prepare(settings: Settings) -> Callable[[SparkSession], None]:
    """What a new session is to do at once: for an empty warehouse all tables are read soon."""
    with suppress(NothingPublished):
        last_published(settings.warehouse)
        return lambda session: None
    return warm_up


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _report(record: ControlRecord) -> None:
    changes = sum(record.detail.get("changes", {}).values())
    spent = ", ".join(f"{stage} {ms} ms" for stage, ms in record.detail.get("stage_ms", {}).items())
    _say(f"epoch {record.epoch} at {record.position}: {changes} changes ({spent})")
    for table, keys in record.detail.get("parked", {}).items():
        _say(f'table "{table}" has {keys} parked keys: see "cdc-views quarantine list"')
    for view, failure in record.detail.get("failures", {}).items():
        _say(f'view "{view}" has failed: {failure}')

"""`cdc-views run`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from pyspark.sql import SparkSession

from cdc_views.cli.main import Project
from cdc_views.cli.progress import SHOWN, ShownProgress, say
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
from cdc_views.errors import CdcViewsError, RequestFailed
from cdc_views.lsn import Lsn
from cdc_views.replay.reset import continue_reset
from cdc_views.source.catalog import estimated_rows
from cdc_views.source.connection import connect
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command
from cdc_views.stopped import stopped_in
from cdc_views.store.control.control_log import ControlRecord, open_intent, read_control


@click.command()
@click.option("--once", is_flag=True, help="Publish one epoch and stop.")
@click.option(
    "--until-caught-up", is_flag=True, help="Stop when everything that was committed before the start is published."
)
@click.pass_obj
def run(project: Project, once: bool, until_caught_up: bool) -> None:
    """Run the engine: register the connector if needed, then publish epoch after epoch.

    Ctrl-C and SIGTERM stop it at once. It can be started again at any time, and continues where it was.

    Example: cdc-views run --until-caught-up
    """
    base = project.settings()
    with _reporting_interrupt(base.warehouse):
        _run(base, once, until_caught_up)


def _run(base: Settings, once: bool, until_caught_up: bool) -> None:
    # Checks that leave no trace come first; topics, slot and connector are created after them.
    java_command()
    current = current_capture(base)
    settings = current.capture.settings(base)
    if not current.is_unfinished:  # a reset has its own checks
        require_ready(settings)
    with connect(settings.source.dsn.get_secret_value()) as connection:
        declared = declare(settings, connection, read_control(settings.warehouse))
        require_known_tables(settings, declared)
        expected_rows = estimated_rows(connection, settings.source.tables)
    jars = delta_jars()
    # Start the JVM and Debezium at the same time: each takes seconds.
    with driver_beside(settings.engine, jars, _prepare(current)) as driver:
        if current.is_unfinished:
            say(f"continuing the reset to capture {current.capture.number}")
            continue_reset(base, driver.session, SHOWN)
        ahead = ReadAhead(settings, declared, driver.session, say, ShownProgress("reading ahead"))
        capture_or_resume(settings, ahead, SHOWN, expected_rows)
        until = current_target(settings) if until_caught_up else None
        _publish(settings, driver, ahead, once, until)


def _publish(settings: Settings, driver: Driver, ahead: ReadAhead, once: bool, until: Lsn | None) -> None:
    """Run one engine after another. An engine ends when a service or its JVM is gone; the next one starts from the last
    published epoch.
    """
    patience = Patience(settings.engine.retry_s, say=say)

    def on_epoch(record: ControlRecord) -> None:
        patience.renew()
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
                say("engine: running")
                engine.run(once=once, until=until, on_epoch=on_epoch)
                return engine.require_none_stopped()
        except RequestFailed as error:
            say(f"RequestFailed: {error.message}; the engine restarts")
        except AWAY as error:
            patience.wait(error)
            is_captured = False


def _prepare(current: CurrentCapture) -> Callable[[SparkSession], None]:
    """Return what a new session does first: it warms up if nothing is published, since all tables are read soon."""
    return (lambda session: None) if current.is_published else warm_up


@contextmanager
def _reporting_interrupt(warehouse: Path) -> Iterator[None]:
    """Say, after Ctrl-C or SIGTERM, what was published and what is left to the next run.

    The engine can be killed anywhere, so that a stop leaves its loop wherever it is.
    """
    try:
        yield
    except KeyboardInterrupt:
        with suppress(CdcViewsError):
            for line in _left_behind(read_control(warehouse) if warehouse.is_dir() else []):
                say(line)
        raise


def _left_behind(records: list[ControlRecord]) -> Iterator[str]:
    last = next((record for record in reversed(records) if record.published_at is not None), None)
    if (intent := open_intent(records)) is not None:
        yield f'stopped in epoch {intent.epoch}, not yet published: the next "cdc-views run" finishes or abandons it'
    else:
        yield "stopped between two epochs"
    yield "nothing is published yet" if last is None else f"last published: epoch {last.epoch} at {last.position}"


def report(record: ControlRecord) -> None:
    """Print a line about a published epoch, and one for each table or view that is not well."""
    changes = sum(record.detail.get("changes", {}).values())
    spent = ", ".join(f"{stage} {ms} ms" for stage, ms in record.detail.get("stage_ms", {}).items())
    say(f"epoch {record.epoch} at {record.position}: {changes} changes ({spent})")
    for table, stopped in stopped_in(record.detail).items():
        say(f'table "{table}" is stopped: {stopped.error}: {stopped.message}')
    for table, keys in record.detail.get("parked", {}).items():
        say(f'table "{table}" has {keys} parked keys: see "cdc-views quarantine list"')
    for view, failure in record.detail.get("failures", {}).items():
        say(f'view "{view}" has failed: {failure}')

"""`cdc-views run`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

import click

from cdc_views.cli.epoch_report import EpochReport
from cdc_views.cli.log_lines import show_dated_lines
from cdc_views.cli.main import Project
from cdc_views.cli.progress import SHOWN
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import capture_of
from cdc_views.engine.service.engine import OnEpoch
from cdc_views.engine.service.supervisor import Supervisor
from cdc_views.errors import CdcViewsError
from cdc_views.errors.unexpected import described
from cdc_views.host.priority import let_others_go_first
from cdc_views.host.signals import interrupting
from cdc_views.replay.reset import continue_reset
from cdc_views.serve.prometheus.engine import Metrics
from cdc_views.serve.watch.connector_alarm import ConnectorAlarm
from cdc_views.serve.watch.watch import Watch
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command
from cdc_views.store.control import ControlRecord, open_intent, read_control

_LOGGER: Final = logging.getLogger(__name__)


@click.command()
@click.option("--once", is_flag=True, help="Publish one epoch and stop.")
@click.option(
    "--until-caught-up", is_flag=True, help="Stop when everything that was committed before the start is published."
)
@click.option("--metrics-port", type=click.IntRange(1, 65535), help="Serve metrics for Prometheus at this port.")
@click.pass_obj
def run(project: Project, once: bool, until_caught_up: bool, metrics_port: int | None) -> None:
    """Run the engine: register the connector if needed, then publish epoch after epoch.

    Ctrl-C and SIGTERM stop it at once. It can be started again at any time, and continues where it was.

    Example: cdc-views run --until-caught-up
    """
    show_dated_lines()
    with _logging_the_end():
        settings = project.settings()
        let_others_go_first(settings.engine.niceness)
        java_command()
        with (
            _reporting_interrupt(settings.warehouse),
            interrupting(),
            _watching(settings, metrics_port) as on_epoch,
        ):
            supervisor = Supervisor(settings, delta_jars, SHOWN, continue_reset)
            supervisor.run(once=once, until_caught_up=until_caught_up, on_epoch=on_epoch)


@contextmanager
def _watching(settings: Settings, metrics_port: int | None) -> Iterator[OnEpoch]:
    """Watch the services, count and log what is published, and serve the metrics if there is a port for them."""
    records = read_control(settings.warehouse)
    watched = capture_of(settings, records).capture.settings(settings)
    with Watch(watched, records, on_task=ConnectorAlarm()) as watch:
        del records  # they take 22 KB for each epoch
        metrics, report = Metrics(watch), EpochReport()

        def on_epoch(record: ControlRecord) -> None:
            try:
                watch.observe(record)
                metrics.observe(record)
                report(record)
            except Exception:  # it is published, and nothing that only watches ends the engine
                _LOGGER.exception("epoch %d is published, but its metrics or log lines failed", record.epoch)

        with metrics.counting_errors(), nullcontext() if metrics_port is None else metrics.served(metrics_port):
            yield on_epoch


@contextmanager
def _logging_the_end() -> Iterator[None]:
    """Log the error that ends the engine where each line is JSON. For people it is printed, as by every command."""
    try:
        yield
    except Exception as error:
        if not sys.stderr.isatty():
            fields, text = {"error": type(error).__name__}, described(error)
            if isinstance(error, CdcViewsError):
                text = f"{type(error).__name__}: {error.message}"
                fields |= {"hint": error.hint} if error.hint else {}
            _LOGGER.error(text, extra={"fields": fields})
        raise


@contextmanager
def _reporting_interrupt(warehouse: Path) -> Iterator[None]:
    """Log, after Ctrl-C or SIGTERM, what was published and what is left to the next run.

    The engine can be killed anywhere, so a stop leaves its loop wherever it is.
    """
    try:
        yield
    except KeyboardInterrupt:
        with suppress(Exception):  # nothing may replace the interrupt
            for line in _left_behind(read_control(warehouse) if warehouse.is_dir() else []):
                _LOGGER.info(line)
        raise


def _left_behind(records: list[ControlRecord]) -> Iterator[str]:
    last = next((record for record in reversed(records) if record.published_at is not None), None)
    if (intent := open_intent(records)) is not None:
        yield f'stopped in epoch {intent.epoch}, not yet published: the next "cdc-views run" finishes or abandons it'
    else:
        yield "stopped between two epochs"
    yield "nothing is published yet" if last is None else f"last published: epoch {last.epoch} at {last.position}"

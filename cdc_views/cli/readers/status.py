"""`cdc-views status`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows, table_of
from cdc_views.cli.readers.moments import Seconds
from cdc_views.engine.capture.captures import capture_of
from cdc_views.errors import CdcViewsError, NothingPublished
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.watch.status import COLUMNS, SHOWN, Status, lines_before_the_first_epoch, read_status
from cdc_views.serve.watch.watch import Watch
from cdc_views.store.control import read_control

_LIMIT_S: Final = 3.0
_REDRAWN_EVERY_S: Final = 2.0


@click.command()
@click.option(
    "--published-within",
    type=Seconds(),
    metavar="SECONDS",
    help="Exit with status 3 unless an epoch was published within the last SECONDS. Asks no service.",
)
@click.option("--watch", "redraws", is_flag=True, help="Show it again every two seconds, until Ctrl-C.")
@output_options
@click.pass_obj
def status(project: Project, published_within: float | None, redraws: bool, form: str | None) -> None:
    """Show what the engine does, what is wrong, and how far every table is behind.

    A mirror with parked keys or discarded events does not equal its Postgres table. A stopped mirror equals its table
    as of an earlier position. Postgres, Kafka and Connect are asked for three seconds at most; without them, the
    published epoch is shown.

    Example: cdc-views status --json
    """
    if redraws and (form is not None or published_within is not None):
        raise click.UsageError("--watch is for people: it goes with no other option")
    warehouse = project.warehouse()
    try:
        if published_within is not None:
            _print(read_status(warehouse, None), form)
            PublishedEpoch.latest(warehouse).require_published_within(published_within)
            return
        with _watching(project) as (watch, problem):
            if redraws:
                _redraw(lambda: read_status(warehouse, watch, problem))
            _print(read_status(warehouse, watch, problem), form)
    except NothingPublished:
        _print_lines(lines_before_the_first_epoch(warehouse))
        raise


@contextmanager
def _watching(project: Project) -> Iterator[tuple[Watch | None, CdcViewsError | None]]:
    """Watch the services, or say why they cannot be asked: a reader may have the warehouse and nothing else."""
    try:
        base = project.settings()
        records = read_control(base.warehouse)
        watch = Watch(capture_of(base, records).capture.settings(base), records)
    except CdcViewsError as error:
        yield None, error
        return
    with watch:
        watch.wait(_LIMIT_S)
        yield watch, None


def _print(status: Status, form: str | None) -> None:
    _print_lines(status.lines)
    print_rows(status.rows, COLUMNS if form else SHOWN, form)


def _print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(line, err=True)


def _redraw(read: Callable[[], Status]) -> NoReturn:
    with Live(console=Console(markup=False, emoji=False), auto_refresh=False, screen=False) as live:
        while True:
            status = read()
            live.update(Group(*map(Text, status.lines), table_of(status.rows, SHOWN)), refresh=True)
            time.sleep(_REDRAWN_EVERY_S)

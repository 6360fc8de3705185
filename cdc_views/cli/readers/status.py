"""`cdc-views status`."""

from __future__ import annotations

from collections.abc import Sequence

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.engine.capture.captures import reset_of
from cdc_views.engine.service.lock import holder
from cdc_views.serve.published import PublishedEpoch
from cdc_views.store.control import ControlRecord, read_control

COLUMNS = ("table", "status", "version", "path", "failure", "parked", "discarded")


@click.command()
@click.option(
    "--published-within",
    type=float,
    metavar="SECONDS",
    help="Exit with status 3 unless an epoch was published within the last SECONDS.",
)
@output_options
@click.pass_obj
def status(project: Project, published_within: float | None, form: str | None) -> None:
    """Show the engine, the published epoch and every table in it.

    A mirror with parked keys or discarded events does not equal its Postgres table. A stopped mirror equals its table
    as of an earlier position.

    Example: cdc-views status --json
    """
    warehouse = project.warehouse()
    pid = holder(warehouse)
    click.echo("engine: " + (f"running, pid {pid}" if pid else "not running"), err=True)
    _show_reset(read_control(warehouse))
    epoch = PublishedEpoch.latest(warehouse)
    click.echo(f"epoch {epoch.record.epoch} at {epoch.position}, {epoch.age_s:.1f} s old", err=True)
    detail = epoch.detail
    failures = {**detail.failures, **{name: why.message for name, why in detail.stopped.items()}}
    rows = [
        {"table": name, "status": t.status, "version": t.version, "path": t.path, "failure": failures.get(name),
         "parked": detail.parked.get(name, 0), "discarded": detail.discarded.get(name, 0)}
        for name, t in sorted(epoch.tables.items())
    ]  # fmt: skip
    print_rows(rows, COLUMNS, form)
    if published_within is not None:
        epoch.require_published_within(published_within)


def _show_reset(records: Sequence[ControlRecord]) -> None:
    reset = reset_of(records)
    if reset is None:
        return
    state = "" if reset.is_done else ', whose reset is unfinished: "cdc-views reset" continues it'
    click.echo(f'capture {reset.capture.number}: slot "{reset.capture.slot}"{state}', err=True)
    if reset.is_done and reset.left:
        text = f'objects of {len(reset.left)} earlier captures are left: "cdc-views reset --clean" removes them'
        click.echo(text, err=True)

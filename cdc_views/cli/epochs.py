"""`cdc-views epochs`."""

from __future__ import annotations

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.store.control import read_control

COLUMNS = ("epoch", "kind", "attempt", "position", "committed_at", "published_at", "changes", "parked")


@click.command()
@click.option("--last", default=20, show_default=True, help="How many records.")
@click.option("--all-kinds", is_flag=True, help="Also takeovers, intents and abandoned attempts.")
@output_options
@click.pass_obj
def epochs(project: Project, last: int, all_kinds: bool, form: str | None) -> None:
    """List the published epochs, newest last.

    Example: cdc-views epochs --last 5
    """
    records = [r for r in read_control(project.warehouse()) if all_kinds or r.published_at is not None]
    rows = [
        {
            "epoch": record.epoch,
            "kind": record.kind,
            "attempt": record.attempt,
            "position": str(record.position) if record.position is not None else None,
            "committed_at": record.committed_at,
            "published_at": record.published_at,
            "changes": sum(record.detail.get("changes", {}).values()),
            "parked": sum(record.detail.get("parked", {}).values()),
        }
        for record in records[-last:]
    ]
    print_rows(rows, COLUMNS, form)

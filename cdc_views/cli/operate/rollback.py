"""`cdc-views rollback`."""

from __future__ import annotations

import click

from cdc_views.cli.main import Project
from cdc_views.engine.capture.captures import current_settings
from cdc_views.replay.rollback import rollback as roll_back
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command
from cdc_views.store.control import PublishedDetail


@click.command()
@click.argument("name", metavar="VIEW|TABLE")
@click.pass_obj
def rollback(project: Project, name: str) -> None:
    """Undo the last swap of a view or table.

    All tables that the swap replaced are brought up to date and published again.

    Example: cdc-views rollback order_totals
    """
    settings = current_settings(project.settings())
    java_command()
    record = roll_back(settings, delta_jars(), name)
    tables = ", ".join(sorted(PublishedDetail.read(record).replaced))
    click.echo(f"rolled back in epoch {record.epoch} at {record.position}: {tables}", err=True)

"""`cdc-views reset`."""

from __future__ import annotations

import click

from cdc_views.cli.consent import require_consent
from cdc_views.cli.epoch_report import EpochReport
from cdc_views.cli.main import Project
from cdc_views.cli.progress import SHOWN
from cdc_views.engine.input.bulk import warm_up
from cdc_views.engine.spark.driver import background_driver
from cdc_views.host.signals import interrupting
from cdc_views.replay.reset import remove_left
from cdc_views.replay.reset import reset as reset_project
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.java import java_command


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--clean", is_flag=True, help="Only remove what an earlier reset could not remove.")
@click.pass_obj
@click.pass_context
def reset(ctx: click.Context, project: Project, yes: bool, clean: bool) -> None:
    """Start over with a new slot, topics and snapshot; readers keep the last epoch.

    The command ends when the new tables are published, in one epoch, and the old slot, topics and connector are
    removed. If a reset is killed, the next reset, or "cdc-views run", continues it.

    Example: cdc-views reset --yes
    """
    settings = project.settings()
    if clean:
        ctx.exit(1 if remove_left(settings) else 0)
    java_command()
    tables = len(settings.source.tables)
    require_consent(f"Take a new snapshot of {tables} tables and replace all mirrors and views?", yes=yes)
    try:
        with interrupting(), background_driver(settings.engine, delta_jars(), warm_up) as driver:
            published = reset_project(settings, driver.session, SHOWN)
    except KeyboardInterrupt:
        click.echo('reset: not finished; "cdc-views reset" or "cdc-views run" continues it', err=True)
        raise
    EpochReport()(published)
    click.echo("reset: done", err=True)

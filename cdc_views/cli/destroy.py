"""`cdc-views destroy`."""

from __future__ import annotations

import click

from cdc_views.cli.main import Project
from cdc_views.engine.capture.destroy import destroy as destroy_project


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
@click.pass_context
def destroy(ctx: click.Context, project: Project, yes: bool) -> None:
    """Remove everything that the project made in Postgres, Kafka and Connect; the warehouse stays.

    Ends with 1 if something could not be removed.

    Example: cdc-views destroy --yes
    """
    settings = project.settings()
    if not yes:
        click.confirm(
            "Remove the connector, the slot, the topics, the publication and the service schema of this project?",
            abort=True,
            err=True,
        )
    left = destroy_project(settings, click.echo)
    ctx.exit(1 if left else 0)

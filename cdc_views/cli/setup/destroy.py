"""`cdc-views destroy`."""

from __future__ import annotations

import click

from cdc_views.cli.consent import require_consent
from cdc_views.cli.main import Project
from cdc_views.engine.service.destroy import destroy as destroy_project


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
@click.pass_context
def destroy(ctx: click.Context, project: Project, yes: bool) -> None:
    """Remove what the project created in Postgres, Kafka and Connect, not the warehouse.

    The exit status is 1 if something could not be removed.

    Example: cdc-views destroy --yes
    """
    settings = project.settings()
    require_consent(
        "Remove the connector, the slot, the topics, the publication and the service schema of this project?", yes=yes
    )
    left = destroy_project(settings, click.echo)
    ctx.exit(1 if left else 0)

"""`cdc-views destroy`."""

from __future__ import annotations

import click

from cdc_views.base.service_schema import SCHEMA
from cdc_views.cli.consent import require_consent
from cdc_views.cli.main import Project
from cdc_views.cli.output import tell
from cdc_views.engine.capture.captures import current_capture
from cdc_views.engine.service.destroy import destroy as destroy_project
from cdc_views.source.connection import describe_dsn


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
    capture, source = current_capture(settings).capture, describe_dsn(settings.source.dsn.get_secret_value())
    of_log = f'connector "{capture.connector}", slot "{capture.slot}" and topics "{capture.topic_prefix}.*"'
    of_source = f'publication "{settings.source.publication}" and schema "{SCHEMA}"'
    require_consent(f"Remove {of_log}, and {of_source} from {source}?", yes=yes)
    left = destroy_project(settings, tell)
    ctx.exit(1 if left else 0)

"""`cdc-views check`."""

from __future__ import annotations

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.engine.captures import current_settings
from cdc_views.engine.preflight import findings, fix

COLUMNS = ("severity", "subject", "problem", "remedy")


@click.command()
@click.option("--fix", "fixing", is_flag=True, help="Run the SQL of the remedies that have one.")
@output_options
@click.pass_obj
@click.pass_context
def check(ctx: click.Context, project: Project, fixing: bool, form: str | None) -> None:
    """Look at everything that a run needs, and say what is missing and how to get it.

    Example: cdc-views check --fix
    """
    settings = current_settings(project.settings())
    if fixing:
        for finding in fix(settings):
            click.echo(f"fixed: {finding.subject}: {finding.problem}", err=True)
    found = findings(settings)
    rows = [{column: getattr(finding, column) for column in COLUMNS} for finding in found]
    print_rows(rows, COLUMNS, form)
    errors = sum(finding.severity == "error" for finding in found)
    click.echo(f"{errors} errors, {len(found) - errors} others", err=True)
    ctx.exit(2 if errors else 0)

"""`cdc-views check`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import click

from cdc_views.cli.analysis import view_findings
from cdc_views.cli.consent import require_consent
from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.config import Settings
from cdc_views.engine.capture.captures import current_settings
from cdc_views.engine.capture.declared import declare
from cdc_views.engine.capture.readiness import findings, fix
from cdc_views.errors import BadView
from cdc_views.findings import Finding
from cdc_views.source.checks.dba_script import dba_script, script_part
from cdc_views.source.checks.fixes import LIMITS
from cdc_views.source.connection import connect, describe_server
from cdc_views.store.control import read_control

COLUMNS = ("severity", "subject", "problem", "remedy")
SEVERITIES = ("error", "warning", "info")


def _of_views(settings: Settings) -> list[Finding]:
    try:
        with connect(settings.source.dsn.get_secret_value()) as connection:
            declared = declare(settings, connection, read_control(settings.warehouse))
    except BadView as error:
        return [Finding("error", f'folder "{settings.views}"', error.message, error.hint or "see docs/views.md")]
    return view_findings(settings.engine, declared)


@click.command()
@click.option("--fix", "fixing", is_flag=True, help="Show the SQL that fixes the findings, ask, and run it.")
@click.option("--yes", is_flag=True, help="With --fix: do not ask.")
@click.option("--print-sql", "printing", is_flag=True, help="Print all SQL that a DBA has to run; run nothing.")
@click.option("--role", help="With --print-sql: the role to grant rights to. Default: the role of source.dsn.")
@output_options
@click.pass_obj
@click.pass_context
def check(
    ctx: click.Context, project: Project, fixing: bool, yes: bool, printing: bool, role: str | None, form: str | None
) -> None:
    """Check everything that a run needs, and the views.

    Each finding has a problem and a remedy. The exit status is 2 if one of them is an error.

    --fix runs SQL in your database. It shows the SQL and asks first. It runs nothing while a finding remains that SQL
    cannot fix.

    Example: cdc-views check --fix
    """
    if printing and fixing:
        raise click.UsageError("give either --print-sql or --fix")
    if role is not None and not printing:
        raise click.UsageError("--role is for --print-sql")
    if yes and not fixing:
        raise click.UsageError("--yes is for --fix")
    settings = current_settings(project.settings())
    if printing:
        click.echo(dba_script(settings, role), nl=False)
        return
    of_views = cache(lambda: _of_views(settings))
    if fixing:
        fix(settings, _report, of_views, lambda fixable: _confirm(settings, fixable, yes))
    found = findings(settings)
    if not any(finding.severity == "error" for finding in found):
        found = sorted([*found, *of_views()], key=lambda finding: SEVERITIES.index(finding.severity))
    columns = (*COLUMNS, "fix") if form == "json" else COLUMNS
    rows = [{column: getattr(finding, column) for column in columns} for finding in found]
    print_rows(rows, columns, form)
    errors = sum(finding.severity == "error" for finding in found)
    click.echo(f"{errors} errors, {len(found) - errors} others", err=True)
    ctx.exit(2 if errors else 0)


def _confirm(settings: Settings, fixable: Sequence[Finding], yes: bool) -> None:
    """Show the SQL that is about to run, and ask. Raises NotConfirmed, SourceUnreachable, click.Abort."""
    with connect(settings.source.dsn.get_secret_value()) as connection:
        where = describe_server(connection)
    click.echo(f"-- SQL to run in {where}\n{LIMITS}", err=True)
    for finding in fixable:
        click.echo(f"{script_part(finding)}\n", err=True)
    require_consent(f"Run this SQL in {where}?", yes=yes)


def _report(finding: Finding, failure: str | None) -> None:
    outcome = "fixed" if failure is None else f"not fixed ({failure})"
    click.echo(f"{outcome}: {finding.subject}: {finding.problem}", err=True)

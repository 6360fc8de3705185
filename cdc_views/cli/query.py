"""`cdc-views query`."""

from __future__ import annotations

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.serve.published import PublishedEpoch
from cdc_views.serve.query import query as answer


@click.command()
@click.argument("sql")
@output_options
@click.pass_obj
def query(project: Project, sql: str, form: str | None) -> None:
    """Answer SQL (DuckDB's) over the published epoch; works while the engine is down.

    Example: cdc-views query "SELECT count(*) FROM public.orders"
    """
    epoch = PublishedEpoch.latest(project.warehouse())
    result = answer(epoch, sql)
    print_rows(result.to_pylist(), result.column_names, form)
    click.echo(f"epoch {epoch.record.epoch} at {epoch.position}, {epoch.age_s:.1f} s old", err=True)
    for name, status in epoch.unequal.items():
        click.echo(f'table "{name}" does not equal Postgres: it has {status} events', err=True)

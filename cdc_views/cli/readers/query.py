"""`cdc-views query`."""

from __future__ import annotations

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.cli.readers.moments import ReadCommand, moment_options, show_epoch
from cdc_views.serve.epochs.moment import Moment, choose
from cdc_views.serve.sql import query as answer
from cdc_views.serve.values.json_value import json_rows


@click.command(cls=ReadCommand)
@click.argument("sql")
@moment_options
@output_options
@click.pass_obj
def query(
    project: Project,
    sql: str,
    moment: Moment,
    form: str | None,
) -> None:
    """Run a query (DuckDB SQL) on the published epoch; works while the engine is down.

    Example: cdc-views query "SELECT count(*) FROM public.orders"
    """
    epoch = choose(project.warehouse(), moment)
    result = answer(epoch, sql)
    print_rows(json_rows(result), result.column_names, form)
    show_epoch(epoch)

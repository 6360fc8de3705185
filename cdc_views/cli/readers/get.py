"""`cdc-views get`."""

from __future__ import annotations

import sys

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.cli.readers.moments import ReadCommand, moment_options, show_epoch
from cdc_views.serve.epochs.moment import Moment, choose
from cdc_views.serve.table_reader import TableReader
from cdc_views.store.reading import StoredTables

NOT_FOUND = 1


@click.command(cls=ReadCommand)
@click.argument("view")
@click.argument("key", nargs=-1)
@moment_options
@output_options
@click.pass_obj
def get(
    project: Project,
    view: str,
    key: tuple[str, ...],
    moment: Moment,
    form: str | None,
) -> None:
    """Print the row of a view or mirror with this key; works while the engine is down.

    Give the values of the key in their order, after "--" if one begins with "-", as in: get balances -- -5. Exits with
    status 1 if there is no such row.

    Example: cdc-views get order_totals 42
    """
    warehouse = project.warehouse()
    epoch = choose(warehouse, moment)
    table = TableReader(epoch, view, StoredTables(warehouse))
    row = table.get(*table.key_of_text(key))
    if row is not None:
        print_rows([row], list(row), form)
    show_epoch(epoch)
    if row is None:
        click.echo(f'"{view}" has no row with this key', err=True)
        sys.exit(NOT_FOUND)

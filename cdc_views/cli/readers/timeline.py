"""`cdc-views timeline`."""

from __future__ import annotations

import click

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.cli.readers.moments import ReadCommand, moment_options, show_epoch
from cdc_views.serve.epochs.moment import Moment, choose
from cdc_views.serve.kinds.timeline import PAGE_ENTRIES, owner_of_text, read_page
from cdc_views.serve.table_reader import TableReader
from cdc_views.store.reading import StoredTables


@click.command(cls=ReadCommand)
@click.argument("view")
@click.argument("owner")
@click.option("--limit", type=click.IntRange(min=1), default=PAGE_ENTRIES, help="The entries of a page.")
@click.option("--before", metavar="CURSOR", help="The page after the one that printed this cursor.")
@moment_options
@output_options
@click.pass_obj
def timeline(
    project: Project, view: str, owner: str, limit: int, before: str | None, moment: Moment, form: str | None
) -> None:
    """Print a page of a timeline, newest first; works while the engine is down.

    VIEW is of kind "timeline". Write "--" before an OWNER that begins with "-", as in: timeline home_timeline -- -5. A
    cursor for the next page goes to stderr, if there is one.

    Example: cdc-views timeline home_timeline 42 --limit 20
    """
    warehouse = project.warehouse()
    epoch, stored = choose(warehouse, moment), StoredTables(warehouse)
    page = read_page(epoch, stored, view, owner_of_text(epoch, stored, view, owner), limit, before)
    if page.entries or form is not None:
        print_rows(page.entries, TableReader(epoch, view, stored).schema.names, form)
    show_epoch(epoch)
    if page.cursor is not None:
        click.echo(f"next page: --before {page.cursor}", err=True)

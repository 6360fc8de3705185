"""`cdc-views changes`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import click

from cdc_views.base.python_values import python_rows
from cdc_views.cli.main import Project
from cdc_views.cli.output import print_rows
from cdc_views.serve.changes.feed import NOW, ChangeItem, EpochChanges, TableSnapshot
from cdc_views.serve.changes.feed import changes as changes_of
from cdc_views.serve.changes.lines import change_lines
from cdc_views.store.reading import StoredTables


@click.command()
@click.argument("view")
@click.option("--since", metavar="TOKEN", help=f'Resume after the item with this token; "{NOW}" for new changes only.')
@click.option("--follow", is_flag=True, help="Go on with later epochs until interrupted.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON: a line per epoch, or several, with its token.")
@click.pass_obj
def changes(project: Project, view: str, since: str | None, follow: bool, is_json: bool) -> None:
    """Print what changes in a view or mirror, epoch by epoch, each change exactly once.

    Begins with all rows, or with what came after TOKEN. Each epoch has a token to resume after it.

    Example: cdc-views changes order_totals --since now --follow
    """
    warehouse = project.warehouse()
    for item in changes_of(warehouse, StoredTables(warehouse), view, since, follow=follow):
        if is_json:
            for line in change_lines(item):
                click.echo(json.dumps(line, ensure_ascii=False))  # flushed, so that a reader has it at once
        else:
            _show(item)


def _show(item: ChangeItem) -> None:
    if isinstance(item, TableSnapshot):
        if item.reason is not None:
            click.echo(f"begin again with all rows: {item.reason}", err=True)
        rows = item.table.arrow()
        print_rows(python_rows(rows), rows.column_names, None)
        click.echo(f"epoch {item.epoch} at {item.position}: all {rows.num_rows} rows; token {item.token}", err=True)
        return
    if len(item):
        columns = item.inserted.column_names
        print_rows(list(_marked(item)), ["change", *columns], None)
    counts = f"{item.inserted.num_rows} inserted, {item.updated.num_rows} updated, {item.deleted.num_rows} deleted"
    click.echo(f"epoch {item.epoch} at {item.position}: {counts}; token {item.token}", err=True)


def _marked(item: EpochChanges) -> Iterator[dict[str, Any]]:
    """The rows with what became of them; an updated row as it was and as it is."""
    for change in item.rows():
        if change.kind == "update":
            yield {"change": "old", **(change.old or {})}
            yield {"change": "new", **(change.new or {})}
        else:
            yield {"change": change.kind, **(change.new or change.old or {})}

"""`cdc-views sql`."""

from __future__ import annotations

import click
import psycopg

from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.errors import BadQuery
from cdc_views.source.connection import connect


@click.command()
@click.argument("statements", metavar="SQL")
@output_options
@click.pass_obj
def sql(project: Project, statements: str, form: str | None) -> None:
    """Run SQL in the source database and commit; shows the rows of the last statement.

    Several statements, separated by semicolons, are one transaction. It replaces psql, which the native stack lacks.

    Example: cdc-views sql "SELECT count(*) FROM orders"
    """
    with connect(project.settings().source.dsn.get_secret_value()) as connection:
        try:
            cursor = connection.execute(statements.encode())
        except psycopg.Error as error:
            raise BadQuery(error.diag.message_primary or type(error).__name__, hint=error.diag.message_hint) from None
        while cursor.nextset():
            pass
        if cursor.description is None:
            click.echo(cursor.statusmessage or "", err=True)
            return
        columns = _distinct([column.name for column in cursor.description])
        print_rows([dict(zip(columns, row, strict=True)) for row in cursor], columns, form)


def _distinct(names: list[str]) -> list[str]:
    """Number the columns whose name occurs more than once."""
    return [f"{name}_{place}" if names.count(name) > 1 else name for place, name in enumerate(names, 1)]

"""`cdc-views sql`."""

from __future__ import annotations

import sys
from typing import Final

import click
import psycopg
from psycopg.pq import TransactionStatus

from cdc_views.base.names import distinct_names
from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.cli.main import Project
from cdc_views.cli.output import output_options, print_rows
from cdc_views.cli.sql_shell import shell
from cdc_views.errors import BadQuery, SourceUnreachable
from cdc_views.source.connection import Connection, connect

# As in psql: in a transaction, and in one that has failed.
_MARKS: Final = {TransactionStatus.INTRANS: "*", TransactionStatus.INERROR: "!"}


@click.command()
@click.argument("statements", metavar="[SQL]", required=False)
@output_options
@click.pass_obj
@click.pass_context
def sql(ctx: click.Context, project: Project, statements: str | None, form: str | None) -> None:
    """Run SQL in the source database and commit; shows the rows of the last statement.

    Several statements, separated by semicolons, are one transaction. After a BEGIN without a COMMIT it rolls back, and
    the exit status is 1. Without SQL it is a shell at a terminal, until Ctrl-D, and reads the statements from stdin
    elsewhere. It replaces psql, which the native stack lacks.

    Example: cdc-views sql "SELECT count(*) FROM orders"
    """
    dsn = project.settings().source.dsn.get_secret_value()
    with connect(dsn, pinned=FOR_SQL_OF_USERS) as connection:
        if statements is None and sys.stdin.isatty() and sys.stdout.isatty():
            _converse(connection, form)
            _roll_back_open(connection)
        else:
            _execute(connection, sys.stdin.read() if statements is None else statements, form)
            if _roll_back_open(connection):
                ctx.exit(1)


def _converse(connection: Connection, form: str | None) -> None:
    import readline  # noqa: F401 (lets `input` edit lines, and keeps those of this session)

    def prompt(is_begun: bool) -> str:
        mark = _MARKS.get(connection.info.transaction_status, "")
        return f"{connection.info.dbname}{'-' if is_begun else '='}{mark}> "

    shell(prompt, lambda statements: _execute(connection, statements, form), input)


def _roll_back_open(connection: Connection) -> bool:
    """Roll back what a BEGIN left open; returns whether there was such a transaction."""
    is_open = connection.info.transaction_status in _MARKS
    if is_open:
        connection.rollback()  # else it would be committed when the connection is closed
        click.echo("rolled back: the transaction was left open", err=True)
    return is_open


def _execute(connection: Connection, statements: str, form: str | None) -> None:
    """Run statements, and print the rows of the last one. Raises BadQuery."""
    try:
        cursor = connection.execute(statements.encode())
    except psycopg.Error as error:
        if connection.info.transaction_status == TransactionStatus.ACTIVE:  # of libpq, in the middle of a COPY
            connection.close()
            raise SourceUnreachable(
                "the connection was closed: COPY FROM STDIN and COPY TO STDOUT are not supported", hint="use psql"
            ) from None
        raise BadQuery(
            error.diag.message_primary or " ".join(str(error).split()), hint=error.diag.message_hint
        ) from None
    while cursor.nextset():
        pass
    if cursor.description is None:
        click.echo(cursor.statusmessage or "", err=True)
        return
    columns = distinct_names([column.name for column in cursor.description])
    try:
        rows = [dict(zip(columns, row, strict=True)) for row in cursor]
    except (psycopg.DataError, ValueError, OverflowError):  # its message quotes the value
        raise BadQuery(
            "a value of the answer cannot be shown", hint="cast dates and times outside of the years 1 to 9999 to text"
        ) from None
    print_rows(rows, columns, form)

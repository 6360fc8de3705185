"""`python -m cdc_views.stack.sql "SELECT ..."`: SQL on the native stack's Postgres, whose binaries have no psql."""

from __future__ import annotations

import sys

import click
import psycopg

from cdc_views.config import native_addresses
from cdc_views.errors import CdcViewsError


def run_sql(statement: str) -> list[tuple[object, ...]]:
    """Run one statement, or several without results, and commit. Raises NotRunning."""
    with psycopg.connect(native_addresses()["dsn"], autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


if __name__ == "__main__":
    try:
        for row in run_sql(" ".join(sys.argv[1:])):
            click.echo("\t".join(str(value) for value in row))
    except (CdcViewsError, psycopg.Error) as error:
        click.echo(str(error), err=True)
        sys.exit(getattr(error, "exit_status", 1))

"""`python -m cdc_views.stack.sql "SELECT ..."`: SQL on the native stack's Postgres, whose binaries have no psql."""

from __future__ import annotations

import json
import sys

import click
import psycopg

from cdc_views.config import STACK_FILE
from cdc_views.errors import CdcViewsError, NotRunning
from cdc_views.locations import state_folder


def run_sql(statement: str) -> list[tuple[object, ...]]:
    """Run one statement, or several without results, and commit. Raises NotRunning."""
    try:
        dsn = json.loads((state_folder() / STACK_FILE).read_text())["dsn"]
    except FileNotFoundError:
        raise NotRunning("the native stack is not running", hint='start it with "cdc-views up"') from None
    with psycopg.connect(dsn, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


if __name__ == "__main__":
    try:
        for row in run_sql(" ".join(sys.argv[1:])):
            click.echo("\t".join(str(value) for value in row))
    except (CdcViewsError, psycopg.Error) as error:
        click.echo(str(error), err=True)
        sys.exit(getattr(error, "exit_status", 1))

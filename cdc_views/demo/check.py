"""Do the published tables and views equal what Postgres says now?

Postgres is asked by hand-written SQL, one file a table or view (`postgres/<name>.sql`, whose first line names the
key), all in one snapshot. Nobody may write to Postgres meanwhile. For epochs of the past see testing/epochs.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psycopg

from cdc_views.errors import CheckFailed
from cdc_views.testing.compare import Difference, Published, describe, differences, read_published
from cdc_views.testing.question import read_questions
from cdc_views.testing.shadow import connect

POSTGRES_SQL: Final = Path(__file__).with_name("postgres")


def check(dsn: str, root: Path, tables: Mapping[str, Published], sql_folder: Path = POSTGRES_SQL) -> list[Difference]:
    """Compare every table and view that `sql_folder` has a file for, and no others, with Postgres."""
    questions = read_questions(sql_folder)
    with connect(dsn) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        with connection.transaction():
            return differences(
                tables,
                questions,
                lambda names: {
                    name: questions[name].differences(connection, name, read_published(root, tables[name]))
                    for name in names
                },
            )


def require_equal(dsn: str, root: Path, tables: Mapping[str, Published], sql_folder: Path = POSTGRES_SQL) -> None:
    """Raise CheckFailed, naming each table and the first keys that differ, unless all is equal."""
    found = check(dsn, root, tables, sql_folder)
    if found:
        raise CheckFailed(describe(found), hint="Postgres must be idle and the engine caught up when this is asked")

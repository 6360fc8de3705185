"""Compares the published tables and views with what Postgres answers now.

Postgres runs hand-written SQL in one snapshot, with one file per table or view (below `postgres/`; its first line names
the key). Nobody may write to Postgres meanwhile. testing/epochs.py compares earlier epochs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import psycopg

from cdc_views.errors import CheckFailed
from cdc_views.testing.postgres.compare import Difference, Published, describe, differences, read_published
from cdc_views.testing.postgres.question import read_questions
from cdc_views.testing.postgres.shadow import connect_for_queries

POSTGRES_SQL: Final = Path(__file__).with_name("postgres")


def check(
    dsn: str,
    root: Path,
    tables: Mapping[str, Published],
    sql_folder: Path = POSTGRES_SQL,
    *,
    without: Collection[str] = (),
) -> list[Difference]:
    """Compare with Postgres the tables and views that have a file below `sql_folder`, but for `without`."""
    questions = {name: question for name, question in read_questions(sql_folder).items() if name not in without}
    with connect_for_queries(dsn) as connection:
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
    """Raise CheckFailed with each table and the first keys that differ, unless everything is equal."""
    found = check(dsn, root, tables, sql_folder)
    if found:
        raise CheckFailed(describe(found), hint="Postgres must be idle and the engine caught up when this is asked")

"""The rows of the source as of one exact position of its WAL.

A SELECT beside pg_current_wal_lsn() is not the state at that LSN: transactions become visible in another
order than that of their commit records. What a new logical slot exports is: it has every transaction
whose commit record lies before the slot's consistent point, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg import sql

from cdc_views.lsn import Lsn
from cdc_views.names import TableName
from cdc_views.source.connection import Connection, connect

# Texts as every version of Postgres prints them, whatever the role's own settings.
_FORMS: Final = (
    "SET LOCAL TimeZone = 'UTC'",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL IntervalStyle = 'iso_8601'",
    "SET LOCAL extra_float_digits = 1",
    "SET LOCAL bytea_output = 'hex'",
)

TextRow = tuple[str | None, ...]


@dataclass(frozen=True)
class ExportedSnapshot:
    """Rows as of `position`; `connection` is in a transaction that sees them."""

    position: Lsn
    connection: Connection

    def rows(self, table: TableName, columns: list[str]) -> Iterator[TextRow]:
        """Yield a table's rows, its values as Postgres prints them, in no particular order."""
        names = sql.SQL(", ").join(map(sql.Identifier, columns))
        query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(names, sql.Identifier(table.schema, table.table))
        with self.connection.cursor().copy(query) as copy:
            yield from copy.rows()


@contextmanager
def exported_snapshot(dsn: str) -> Iterator[ExportedSnapshot]:
    """Make a temporary slot and read what it exports; it is gone afterwards. Raises SourceUnreachable."""
    name = sql.Identifier(f"cdc_views_{uuid4().hex[:12]}")
    with psycopg.connect(dsn, autocommit=True, replication="database") as slot:
        row: Any = slot.execute(
            sql.SQL("CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')").format(name)
        ).fetchone()
        _, position, snapshot, _ = row
        # The snapshot ends with the next command on the slot's connection, so there is none.
        with connect(dsn) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            for form in _FORMS:
                connection.execute(form)
            yield ExportedSnapshot(Lsn.parse(position), connection)

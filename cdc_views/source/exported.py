"""The rows of the source as of one exact position of its WAL.

A SELECT beside pg_current_wal_lsn() is not the state at that LSN: transactions become visible in another
order than that of their commit records. What a new logical slot exports is: it has every transaction
whose commit record lies before the slot's consistent point, and no other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from cdc_views.errors import SourceUnreachable
from cdc_views.lsn import Lsn
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection, connect, describe_dsn
from cdc_views.source.printing import TextRow, printed
from cdc_views.source.service_tables import identifier


@dataclass(frozen=True)
class ExportedSnapshot:
    """Rows as of `position`; `connection` is in a transaction that sees them."""

    position: Lsn
    connection: Connection

    def rows(self, table: SourceTable) -> Iterator[TextRow]:
        """Yield a table's rows in no particular order: its columns, as Postgres prints what the mirror holds."""
        columns = sql.SQL(", ").join(map(printed, table.columns))
        query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(columns, identifier(table.name))
        with self.connection.cursor().copy(query) as copy:
            yield from copy.rows()


@contextmanager
def exported_snapshot(dsn: str) -> Iterator[ExportedSnapshot]:
    """Make a temporary slot and read what it exports; it is gone afterwards. Raises SourceUnreachable.

    Waits for all transactions that are open on the server, as making any logical slot does.
    """
    with closing(connect(make_conninfo(dsn, replication="database"))) as slot:
        position, snapshot = _export(slot, dsn)
        # The snapshot ends with the next command on the slot's connection, so there is none.
        with connect(dsn) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
            connection.execute("SET LOCAL search_path = pg_catalog")  # as the connector's
            yield ExportedSnapshot(position, connection)


def _export(slot: Connection, dsn: str) -> tuple[Lsn, str]:
    name = sql.Identifier(f"cdc_views_{uuid4().hex[:12]}")
    create = sql.SQL("CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')").format(name)
    try:
        row: Any = slot.execute(create).fetchone()
    except psycopg.Error as error:
        raise SourceUnreachable(
            f"cannot export a snapshot of {describe_dsn(dsn)}: {error.diag.message_primary or type(error).__name__}",
            hint="the role needs REPLICATION, and the server a free replication slot and a free wal sender",
        ) from None
    return Lsn.parse(row[1]), row[2]

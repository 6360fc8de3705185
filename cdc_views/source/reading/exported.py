"""Reads the rows of the source as of one exact position of its WAL.

A SELECT beside pg_current_wal_lsn() does not return the state at that LSN, since transactions become visible in a
different order than their commit records. The snapshot that a new logical slot exports is exact: it has every
transaction whose commit record lies before the slot's consistent point, and no other.
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

from cdc_views.base.lsn import Lsn
from cdc_views.errors import SourceUnreachable
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection, connect, describe_dsn
from cdc_views.source.reading.printing import TextRow, printed
from cdc_views.source.service.service_tables import identifier


@dataclass(frozen=True)
class ExportedSnapshot:
    """The rows as of `position`. `connection` is in a transaction that sees them."""

    position: Lsn
    connection: Connection

    def rows(self, table: SourceTable) -> Iterator[TextRow]:
        """Yield the rows of a table, in no particular order, as Postgres prints the values of the mirror."""
        columns = sql.SQL(", ").join(map(printed, table.columns))
        query = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(columns, identifier(table.name))
        with self.connection.cursor().copy(query) as copy:
            yield from copy.rows()


@contextmanager
def exported_snapshot(dsn: str) -> Iterator[ExportedSnapshot]:
    """Create a temporary slot and read what it exports. The slot is dropped afterwards. Raises SourceUnreachable.

    Creating a logical slot waits for all transactions that are open on the server.
    """
    with closing(connect(make_conninfo(dsn, replication="database"))) as slot:
        position, snapshot = _export(slot, dsn)
        # The next command on the slot's connection would end the snapshot.
        with connect(dsn) as connection:
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(sql.Literal(snapshot)))
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

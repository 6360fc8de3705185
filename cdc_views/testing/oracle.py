"""The WAL-order oracle: the content of every table at every position, as a database that answers SQL.

It copies the tables in the snapshot of its own logical slot. Then it applies what that slot decodes, transaction by
transaction in commit order. The state at a position is the snapshot plus every transaction that ends at or before it.
That is the rule by which an epoch is cut, but none of its code.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

import psycopg
from psycopg import sql

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.errors import PositionUnknown
from cdc_views.testing.postgres.shadow import (
    Connection,
    Shadow,
    connect,
    connect_for_queries,
    create_database,
    database_dsn,
    read_tables,
)
from cdc_views.testing.postgres.wal import WalSlot

PREFIX: Final = "cdc_views_oracle_"

# The position of the shadow, written in the transaction of its rows: after a crash nothing is applied twice.
_APPLIED: Final = "cdc_views_oracle_applied"


class WalOracle:
    """A shadow database that advances from one position to the next.

    `dsn` is the DSN of the source, with the right to create slots. `tables` are "schema.table", or TableName for names
    with a dot. `shadow` is the DSN of the server for the shadow database (default: the source's), with the right to
    create databases.
    To judge the epochs of an engine, start the oracle before the connector's slot is created. Then all positions are
    after `start_position`.

    Between `start()` and `drop()` (or as a context manager) the slot keeps the server's WAL. After a crash,
    `drop_leftovers` removes what is left.
    """

    def __init__(self, dsn: str, tables: Iterable[str | TableName], shadow: str | None = None) -> None:
        self.name = f"{PREFIX}{uuid4().hex[:12]}"
        self.tables = [table if isinstance(table, TableName) else TableName.parse(table) for table in tables]
        self._dsn = dsn
        self._server = shadow or dsn
        self._made = ExitStack()

    def start(self) -> Self:
        """Create slot and shadow, and copy the tables. Waits for all open transactions of the server.

        Raises UnknownTable, UnsupportedTable.
        """
        with ExitStack() as undo, connect(self._dsn) as source, connect(self._server) as server:
            tables = read_tables(source, self.tables)
            create_database(source, server, self.name)
            undo.callback(self._drop_database)
            self._connection = undo.enter_context(connect_for_queries(self.shadow_dsn))
            self._shadow = Shadow(self._connection, tables)
            # Only the replication protocol creates a slot with an exported snapshot of its start.
            with connect(self._dsn, replication="database") as replication:
                slot = sql.SQL("CREATE_REPLICATION_SLOT {} LOGICAL test_decoding EXPORT_SNAPSHOT")
                row: Any = replication.execute(slot.format(sql.Identifier(self.name))).fetchone()
                undo.callback(self._drop_slot)
                self.start_position = self._position = Lsn.parse(row[1])
                source.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                with source.transaction():
                    source.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(row[2]))
                    self._shadow.create(source)
                    self._shadow.copy(source)
            self._connection.execute(f"CREATE TABLE {_APPLIED} AS SELECT %s::pg_lsn AS commit_end", (row[1],))
            self._made = undo.pop_all()
        return self

    @property
    def position(self) -> Lsn:
        """The position of the shadow; initially the start of the slot."""
        return self._position

    @property
    def shadow_dsn(self) -> str:
        """The DSN of the shadow database. Writing to it makes the oracle wrong."""
        return database_dsn(self._server, self.name)

    def advance_to(self, position: Lsn) -> set[TableName]:
        """Advance the shadow to a position at or after its current one. Returns the tables that changed.

        Raises PositionUnknown, SchemaChanged, ReplayFailed.
        """
        changed: set[TableName] = set()
        with connect(self._dsn) as source:
            self._require_known(source, position)
            self._shadow.require_same(read_tables(source, self.tables))
            applied = self._applied()
            for batch in WalSlot(source, self.name).batches(position):
                new = [transaction for transaction in batch if transaction.commit_end > applied]
                with self._connection.transaction():
                    changed |= self._shadow.apply(new)
                    self._connection.execute(
                        f"UPDATE {_APPLIED} SET commit_end = %s::pg_lsn", (str(batch[-1].commit_end),)
                    )
        self._position = position
        return changed

    @property
    def connection(self) -> Connection:
        """A connection to the shadow in autocommit, for more than `query` offers."""
        return self._connection

    def mirror_query(self, table: TableName) -> tuple[str, tuple[str, ...]]:
        """The query for all rows of a table, and its key."""
        return self._shadow.mirror_query(table)

    def query(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query in Postgres's SQL at the position. The time zone is UTC."""
        return self._connection.execute(query.encode()).fetchall()

    def execute(self, statement: str) -> None:
        """Prepare the shadow for queries, for example with a function, an index or a search path."""
        self._connection.execute(statement.encode())

    def drop(self) -> None:
        """Drop slot and shadow. A second call does nothing."""
        self._made.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.drop()
        except psycopg.OperationalError:
            if error is None:  # otherwise the error of the block is the one to raise
                raise

    def _require_known(self, source: Connection, position: Lsn) -> None:
        row: Any = source.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone()
        flushed = Lsn.parse(row[0])
        if position < self._position:
            raise PositionUnknown(
                f"position {position} is behind the oracle, which is at {self._position}",
                hint="ask for positions in their order, and start the oracle before the first of them",
            )
        if position > flushed:
            raise PositionUnknown(
                f"position {position} is not in the WAL yet, which ends at {flushed}",
                hint="is it a position of this server?",
            )

    def _applied(self) -> Lsn:
        """The last commit in the shadow. Connects again if the connection was lost."""
        query = f"SELECT commit_end::text FROM {_APPLIED}"
        try:
            row: Any = self._connection.execute(query).fetchone()
        except psycopg.OperationalError:
            self._connection.close()
            self._connection = self._made.enter_context(connect_for_queries(self.shadow_dsn))
            self._shadow.use(self._connection)
            row = self._connection.execute(query).fetchone()
        return Lsn.parse(row[0])

    def _drop_database(self) -> None:
        with connect(self._server) as server:
            _drop_database(server, self.name)

    def _drop_slot(self) -> None:
        with connect(self._dsn) as source:
            WalSlot(source, self.name).drop()


def drop_leftovers(dsn: str, shadow: str | None = None) -> list[str]:
    """Drop the slots and shadow databases of oracles that ended without `drop`. Returns their names.

    A running oracle holds a connection to its shadow and is not touched. An oracle that is just starting may not have a
    connection yet, so start none meanwhile. `dsn` and `shadow` as for WalOracle, with any database of the servers.
    """
    with connect(dsn) as source, connect(shadow or dsn) as server:
        alive = _names(server, "SELECT datname FROM pg_stat_activity WHERE starts_with(datname, %s)")
        slots = _names(source, "SELECT slot_name FROM pg_replication_slots WHERE starts_with(slot_name, %s)") - alive
        shadows = _names(server, "SELECT datname FROM pg_database WHERE starts_with(datname, %s)") - alive
        for name in slots:
            WalSlot(source, name).drop()
        for name in shadows:
            _drop_database(server, name)
    return sorted(slots | shadows)


def _names(connection: Connection, query: str) -> set[str]:
    return {name for (name,) in connection.execute(query.encode(), (PREFIX,))}


def _drop_database(server: Connection, name: str) -> None:
    server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

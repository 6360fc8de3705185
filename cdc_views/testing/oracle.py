"""The WAL-order oracle: what every table held at every position, as a database that can be asked in SQL.

It copies the tables in the snapshot of a logical slot of its own, and then applies what that slot decodes,
transaction by transaction in the order of their commits. The state at a position is the snapshot and every
transaction that ends at or before it: the same rule by which an epoch is cut, but none of its code.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Final, Self
from uuid import uuid4

import psycopg
from psycopg import sql

from cdc_views.errors import PositionUnknown
from cdc_views.lsn import Lsn
from cdc_views.names import TableName
from cdc_views.testing.shadow import Connection, Shadow, connect, create_database, database_dsn, read_tables
from cdc_views.testing.wal import WalSlot

PREFIX: Final = "cdc_views_oracle_"

# How far the shadow is, in the same transaction as its rows: after a crash nothing is applied twice.
_APPLIED: Final = "cdc_views_oracle_applied"


class WalOracle:
    """A shadow database that is brought forward to one position after another.

    `dsn` is of the source, with the right to make slots; `tables` are "schema.table", or TableName where a name has
    a dot; `shadow` is the DSN of the server that gets the shadow database, the source's own by default, with the
    right to make databases.
    To judge an engine's epochs, start the oracle before the connector's slot is made: then all their positions are
    beyond `start_position`.

    Between `start()` and `drop()` (or as a context manager) the slot holds back the server's WAL. After a crash,
    `drop_leftovers` removes what has stayed behind.
    """

    def __init__(self, dsn: str, tables: Iterable[str | TableName], shadow: str | None = None) -> None:
        self.name = f"{PREFIX}{uuid4().hex[:12]}"
        self.tables = [table if isinstance(table, TableName) else TableName.parse(table) for table in tables]
        self._dsn = dsn
        self._server = shadow or dsn
        self._made = ExitStack()

    def start(self) -> Self:
        """Make slot and shadow, and copy the tables. Waits for transactions that are open anywhere on the server.

        Raises UnknownTable, UnsupportedTable.
        """
        with ExitStack() as undo, connect(self._dsn) as source, connect(self._server) as server:
            tables = read_tables(source, self.tables)
            create_database(source, server, self.name)
            undo.callback(self._drop_database)
            self._connection = undo.enter_context(connect(self.shadow_dsn))
            self._shadow = Shadow(self._connection, tables)
            # Only the replication protocol makes a slot whose beginning can be read as a snapshot.
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
        """Where the shadow is: at first the start of the slot."""
        return self._position

    @property
    def shadow_dsn(self) -> str:
        """Of the shadow database; who writes to it makes the oracle wrong."""
        return database_dsn(self._server, self.name)

    def advance_to(self, position: Lsn) -> set[TableName]:
        """Bring the shadow to a position at or after where it is; returns the tables that changed on the way.

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
        """To the shadow, in autocommit, for whoever wants more than `query` gives."""
        return self._connection

    def mirror_query(self, table: TableName) -> tuple[str, tuple[str, ...]]:
        """The query for all rows of a table, and its key."""
        return self._shadow.mirror_query(table)

    def query(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query in Postgres' SQL at the position; the time zone is UTC."""
        return self._connection.execute(query.encode()).fetchall()

    def execute(self, statement: str) -> None:
        """Prepare the shadow for queries: a function that they call, an index, a search path."""
        self._connection.execute(statement.encode())

    def drop(self) -> None:
        """Drop slot and shadow; nothing happens the second time."""
        self._made.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.drop()
        except psycopg.OperationalError:
            if error is None:  # else that is to be told, and not that the server has gone with it
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
        """The last commit that the shadow has; connects again if the connection was lost."""
        query = f"SELECT commit_end::text FROM {_APPLIED}"
        try:
            row: Any = self._connection.execute(query).fetchone()
        except psycopg.OperationalError:
            self._connection.close()
            self._connection = self._made.enter_context(connect(self.shadow_dsn))
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
    """Drop slots and shadow databases of oracles that have ended without `drop`; returns their names.

    An oracle that is alive holds a connection to its shadow, and is left alone; one that is just starting may not
    have it yet, so let none start meanwhile. `dsn` and `shadow` as for WalOracle; any database of the servers will do.
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

"""A fresh database for each test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from cdc_views.base.rendering import FOR_SQL_OF_USERS
from cdc_views.source.connection import Connection, connect
from cdc_views.source.slot import drop_slot
from cdc_views.stack.services.postgres import Postgres
from tests.fix_ports import free_port
from tests.waiting import wait_for

# What an administrator may set without a thought for us: sessions that do not pin it print or fail otherwise.
HOSTILE = {
    "DateStyle": "'SQL, DMY'",
    "IntervalStyle": "sql_standard",
    "TimeZone": "'Asia/Kathmandu'",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "lc_monetary": "'POSIX'",  # no other locale is on every machine
    "quote_all_identifiers": "on",
    "client_encoding": "LATIN1",
    "standard_conforming_strings": "off",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "xmloption": "document",
    "xmlbinary": "hex",
    "row_security": "on",
    "default_transaction_read_only": "on",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "statement_timeout": "1",
    "lock_timeout": "1",
    "idle_in_transaction_session_timeout": "1",
    "idle_session_timeout": "1",
}


@dataclass(frozen=True)
class Database:
    """A database of its own; its name is also good for slots, publications and topics."""

    name: str
    dsn: str = field(repr=False)

    def connect(self) -> Connection:
        """Connect as the superuser, for SQL of the user."""
        return connect(self.dsn, pinned=FOR_SQL_OF_USERS)

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements, each for itself; rows of the last one."""
        with self.connect() as connection:
            for statement in statements:
                cursor = connection.execute(sql.SQL(statement))
            return cursor.fetchall() if cursor.description else []

    def as_role(self, role: str, password: str) -> str:
        """The DSN of another role."""
        return psycopg.conninfo.make_conninfo(self.dsn, user=role, password=password)


def database_dsn(stack_dsn: str, name: str) -> str:
    """The DSN of another database of the same server."""
    return psycopg.conninfo.make_conninfo(stack_dsn, dbname=name)


@contextmanager
def new_database(
    server_dsn: str, template: str = "template1", settings: Mapping[str, str] = HOSTILE
) -> Iterator[Database]:
    """An empty database, or a copy of another one, with hostile settings; its slots and itself are gone afterwards."""
    name = f"t_{uuid4().hex[:12]}"
    with connect(server_dsn) as server:
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        server.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        for setting, value in settings.items():
            server.execute(sql.SQL(f"ALTER DATABASE {name} SET {setting} = {value}"))
    yield Database(name, database_dsn(server_dsn, name))
    with connect(server_dsn) as server:
        slots = server.execute("SELECT slot_name FROM pg_replication_slots WHERE database = %s", (name,)).fetchall()
        for (slot,) in slots:
            drop_slot(server, slot)
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def server_setting(database: Database, name: str, value: str) -> Iterator[None]:
    """Run the server with a setting that needs no restart."""

    def put(value: str) -> None:
        database.execute(f"ALTER SYSTEM SET {name} = '{value}'", "SELECT pg_reload_conf()")
        wait_for(lambda: database.execute(f"SHOW {name}") == [(value,)], 10)

    [(before,)] = database.execute(f"SHOW {name}")
    put(value)
    try:
        yield
    finally:
        put(before)


@pytest.fixture
def database(postgres: Postgres) -> Iterator[Database]:
    """An empty database of the test's own."""
    with new_database(postgres.dsn) as database:
        yield database


class NotLogical(Postgres):
    """A server as it comes, without logical WAL."""

    def _command(self) -> Sequence[str]:
        return [*super()._command(), "-c", "wal_level=replica"]


@pytest.fixture
def not_logical(enterable_folder: Path) -> Iterator[str]:
    """The DSN of such a server."""
    port = free_port()
    state = enterable_folder / f"not-logical-{port}"
    state.mkdir()
    server = NotLogical(state, port, durable=False)
    server.start()
    yield server.dsn
    server.stop()


@pytest.fixture(scope="module")
def answering(postgres: Postgres) -> Iterator[Connection]:
    """A connection for tests that only ask Postgres for answers, in an empty database without hostile settings."""
    with new_database(postgres.dsn, settings={}) as database, database.connect() as connection:
        yield connection

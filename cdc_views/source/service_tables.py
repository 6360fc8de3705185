"""The service schema `cdc_views` in the source: heartbeat, ddl, truncates, signal, and what fills them.

DDL and TRUNCATE do not appear in the logical stream by themselves. Event triggers and statement
triggers write them, in their own transaction, to captured tables, so that each has an exact place
in the order of changes. A row of `ddl` whose fingerprint equals the known one changes nothing for
us (SET STATISTICS, REPLICA IDENTITY); one without a fingerprint (a table dropped or rewritten, an
ALTER of a partitioned one, of a type that a column has, a publication that is new or has less) always does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from cdc_views.names import TableName
from cdc_views.service_schema import SCHEMA, SERVICE_TABLES
from cdc_views.source import service_sql
from cdc_views.source.connection import Connection

__all__ = ["SERVICE_TABLES", "create_service_tables", "service_tables_sql"]

TRUNCATE_TRIGGER: Final = "cdc_views_truncate"


def identifier(table: TableName) -> sql.Identifier:
    """Quote a table's name."""
    return sql.Identifier(table.schema, table.table)


def create_service_tables(connection: Connection, publication: str, tables: Iterable[TableName]) -> bool:
    """Create, in one transaction, whatever is missing of the service schema and its triggers.

    False: the role may not create event triggers, and all the rest was made. Then the marker's
    fingerprint shows DDL, less exactly.
    """
    captured = list(tables)
    with connection.transaction():
        connection.execute(service_sql.TABLES)
        connection.execute(service_sql.FUNCTIONS)
        connection.execute("DELETE FROM cdc_views.captured")
        for table in captured:
            connection.execute(_capture(table, publication))
        for table in tables_without_truncate_trigger(connection, captured):
            connection.execute(_truncate_trigger(table))
        return _create_event_triggers(connection)


def service_tables_sql(publication: str, tables: Iterable[TableName], role: str | None = None) -> str:
    """Print what create_service_tables does, for a DBA; `role` is given what the connector needs."""
    captured = list(tables)
    parts: list[sql.Composable] = [_text(service_sql.TABLES), _text(service_sql.FUNCTIONS)]
    parts += [_capture(table, publication) for table in captured]
    parts += [_truncate_trigger(table) for table in captured]
    parts += [_text(statement) for statement in service_sql.EVENT_TRIGGERS.values()]
    if role:
        name = sql.Identifier(role)
        parts.append(sql.SQL(service_sql.GRANTS).format(role=name))
        grant = sql.SQL("GRANT SELECT ON {table} TO {role};\n")
        parts += [grant.format(table=identifier(table), role=name) for table in captured]
    return "BEGIN;\n" + sql.Composed(parts).as_string(None) + "COMMIT;\n"


def missing_event_triggers(connection: Connection) -> list[str]:
    """Name our event triggers that are absent or disabled."""
    rows = connection.execute("SELECT evtname::text FROM pg_catalog.pg_event_trigger WHERE evtenabled = 'A'")
    present = {name for (name,) in rows}
    return [name for name in service_sql.EVENT_TRIGGERS if name not in present]


def missing_service_tables(connection: Connection) -> list[TableName]:
    """Name the captured service tables that do not exist."""
    # Not by to_regclass: it fails for a role that may not use the schema.
    rows = connection.execute(
        "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        (SCHEMA,),
    ).fetchall()
    return [table for table in SERVICE_TABLES if (table.schema, table.table) not in rows]


def tables_without_truncate_trigger(connection: Connection, tables: Sequence[TableName]) -> list[TableName]:
    """Name the tables whose TRUNCATE would go unseen."""
    present = connection.execute(
        "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_trigger g"
        " JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " WHERE g.tgname = %s AND g.tgenabled = 'A'",
        (TRUNCATE_TRIGGER,),
    ).fetchall()
    return [table for table in tables if (table.schema, table.table) not in present]


def quoted(table: TableName) -> str:
    """Quote a table's name as text, as to_regclass reads it."""
    return identifier(table).as_string(None)


def _create_event_triggers(connection: Connection) -> bool:
    for name in missing_event_triggers(connection):
        try:
            with connection.transaction():
                connection.execute(sql.SQL("DROP EVENT TRIGGER IF EXISTS {}").format(sql.Identifier(name)))
                connection.execute(service_sql.EVENT_TRIGGERS[name])
        except psycopg.errors.InsufficientPrivilege:
            return False
    return True


def _capture(table: TableName, publication: str) -> sql.Composed:
    return sql.SQL(service_sql.CAPTURE).format(
        relation=sql.Literal(quoted(table)),
        schema=sql.Literal(table.schema),
        name=sql.Literal(table.table),
        publication=sql.Literal(publication),
    )


def _truncate_trigger(table: TableName) -> sql.Composed:
    return sql.SQL(service_sql.TRUNCATE_TRIGGER).format(table=identifier(table))


def _text(statement: LiteralString) -> sql.SQL:
    return sql.SQL(statement)

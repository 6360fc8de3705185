"""The service schema `cdc_views` in the source: heartbeat, ddl, truncates, captured, and what fills them.

DDL and TRUNCATE do not appear in the logical stream by themselves. Event triggers and statement
triggers write them, in their own transaction, to captured tables, so that each has an exact place
in the order of changes. A row of `ddl` describes the table after the command (cdc_views.captured says which changes
matter); one without a description (a table that was dropped or rewritten, a publication that was created again) always
matters. The projects of a database share the schema; each has its own rows, keyed by its publication.
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
START_OF_CAPTURE: Final = "START OF CAPTURE"

_RELATIONS_SQL: Final = """
WITH RECURSIVE tree(relation) AS (
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE (n.nspname, c.relname) = (%s, %s)
    UNION
    SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.relation)
SELECT n.nspname::text, r.relname::text, EXISTS (
    SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = r.oid AND g.tgname = %s AND g.tgenabled = 'A')
FROM tree JOIN pg_catalog.pg_class r ON r.oid = tree.relation JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE r.relkind IN ('r', 'p') ORDER BY 1, 2"""


def identifier(table: TableName) -> sql.Identifier:
    """Quote a table's name."""
    return sql.Identifier(table.schema, table.table)


def create_service_tables(connection: Connection, publication: str, tables: Iterable[TableName]) -> bool:
    """Create, in one transaction, whatever is missing of the service schema and its triggers.

    Rows of other projects, which have other publications, stay as they are. Returns False if the role may not create
    event triggers, and all the rest was created: changes are then seen at the next marker, less exactly.
    """
    captured = list(tables)
    with connection.transaction():
        if service_schema_version(connection) != service_sql.VERSION:
            for part in (service_sql.TABLES, service_sql.FUNCTIONS, service_sql.MARK_VERSION):
                connection.execute(_text(part))
        connection.execute(_forget(captured, publication))
        for table in captured:
            connection.execute(_capture(table, publication))
        for relation in relations_without_truncate_trigger(connection, captured):
            connection.execute(_truncate_trigger(relation))
        return _create_event_triggers(connection)


def service_tables_sql(
    publication: str,
    tables: Iterable[TableName],
    role: str | None = None,
    unwatched: Iterable[TableName] | None = None,
) -> str:
    """Print what create_service_tables does, for a DBA; `role` is given what the connector needs.

    `unwatched` are the tables and partitions that need a trigger for TRUNCATE, `tables` if it is not given.
    """
    captured = list(tables)
    parts: list[sql.Composable] = [
        _text(part) for part in (service_sql.TABLES, service_sql.FUNCTIONS, service_sql.MARK_VERSION)
    ]
    parts += [_forget(captured, publication)]
    parts += [_capture(table, publication) for table in captured]
    parts += [_truncate_trigger(relation) for relation in (captured if unwatched is None else unwatched)]
    parts += [_text(statement) for statement in service_sql.EVENT_TRIGGERS.values()]
    if role:
        name = sql.Identifier(role)
        parts.append(sql.SQL(service_sql.GRANTS).format(role=name))
        grant = sql.SQL("GRANT SELECT ON {table} TO {role};\n")
        parts += [grant.format(table=identifier(table), role=name) for table in captured]
    return "BEGIN;\n" + sql.Composed(parts).as_string(None) + "COMMIT;\n"


def service_schema_version(connection: Connection) -> str | None:
    """The version that the service schema is marked with; None if there is none."""
    row = connection.execute(
        "SELECT pg_catalog.obj_description(oid, 'pg_namespace') FROM pg_catalog.pg_namespace WHERE nspname = %s",
        (SCHEMA,),
    ).fetchone()
    return None if row is None else row[0]


def record_start_of_capture(connection: Connection, publication: str) -> None:
    """Record what the captured tables are like before a snapshot: what is changed during it is compared with that."""
    connection.execute(
        "SELECT cdc_views.record(c, %s) FROM cdc_views.captured c WHERE c.publication = %s",
        (START_OF_CAPTURE, publication),
    )


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


def relations_without_truncate_trigger(connection: Connection, tables: Sequence[TableName]) -> list[TableName]:
    """Name the tables and partitions whose TRUNCATE would not be recorded."""
    found = []
    for table in tables:
        rows = connection.execute(_RELATIONS_SQL, (table.schema, table.table, TRUNCATE_TRIGGER))
        found += [TableName(schema, name) for schema, name, is_watched in rows if not is_watched]
    return found


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
    return sql.SQL(service_sql.CAPTURE + service_sql.FORMER_IDENTITY).format(
        relation=sql.Literal(quoted(table)),
        schema=sql.Literal(table.schema),
        name=sql.Literal(table.table),
        publication=sql.Literal(publication),
    )


def _forget(tables: Sequence[TableName], publication: str) -> sql.Composed:
    return sql.SQL(service_sql.FORGET).format(
        publication=sql.Literal(publication),
        schemas=sql.Literal([table.schema for table in tables]),
        names=sql.Literal([table.table for table in tables]),
    )


def _truncate_trigger(table: TableName) -> sql.Composed:
    return sql.SQL(service_sql.TRUNCATE_TRIGGER).format(table=identifier(table))


def _text(statement: LiteralString) -> sql.SQL:
    return sql.SQL(statement)

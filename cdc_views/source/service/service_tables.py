"""The service schema `cdc_views` in the source: the tables heartbeat, ddl, truncates and captured, and their triggers.

DDL and TRUNCATE do not appear in the logical stream by themselves. Event triggers and statement triggers write them to
captured tables, in the same transaction, so that each has an exact place in the order of changes. A row of `ddl`
describes the table after the command; cdc_views.captured decides which changes matter. A row without a description (a
table that was dropped or rewritten, a publication that was recreated) always matters. The projects of a database share
the schema. Each has its own rows, keyed by its publication.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, LiteralString

from psycopg import sql

from cdc_views.base.names import TableName
from cdc_views.base.service_schema import SCHEMA, SERVICE_TABLES
from cdc_views.source.connection import Connection
from cdc_views.source.service import service_sql

__all__ = ["SERVICE_TABLES"]

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
    """Return a table's name as a quoted identifier."""
    return sql.Identifier(table.schema, table.table)


def service_schema_sql(publication: str, tables: Iterable[TableName], *, is_current: bool = False) -> str:
    """Return the SQL of one transaction that creates the service schema and captures the tables of a project.

    Rows of other projects, which have other publications, stay as they are. `is_current`: the schema exists in this
    version and is not recreated, since recreated functions count as changed.
    """
    captured = list(tables)
    created = () if is_current else (service_sql.TABLES, service_sql.FUNCTIONS, service_sql.MARK_VERSION)
    parts = [*map(_text, created), _forget(captured, publication)]
    return transaction(sql.Composed([*parts, *(_capture(table, publication) for table in captured)]))


def truncate_trigger_sql(table: TableName) -> str:
    """Return the SQL that creates the trigger that records a TRUNCATE of the table."""
    return transaction(sql.SQL(service_sql.TRUNCATE_TRIGGER).format(table=identifier(table)))


def event_triggers_sql(names: Iterable[str]) -> str:
    """Return the SQL that creates our event triggers, or raises a warning if the role may not create them."""
    creating = "".join(f"DROP EVENT TRIGGER IF EXISTS {name};{service_sql.EVENT_TRIGGERS[name]}" for name in names)
    return block(f"{creating}{service_sql.EVENT_TRIGGERS_REFUSED}")


def grants_sql(role: str, tables: Iterable[TableName]) -> str:
    """Return the SQL that lets the role of connector and engine use the service schema and read the tables."""
    return sql.SQL(service_sql.GRANTS).format(role=sql.Identifier(role)).as_string(None) + "".join(
        select_sql(role, table) for table in tables
    )


def select_sql(role: str, table: TableName) -> str:
    """Return the SQL that lets a role read a table."""
    grants = "GRANT USAGE ON SCHEMA {schema} TO {role};\nGRANT SELECT ON {table} TO {role};\n"
    return (
        sql.SQL(grants)
        .format(schema=sql.Identifier(table.schema), table=identifier(table), role=sql.Identifier(role))
        .as_string(None)
    )


def transaction(statements: sql.Composable) -> str:
    """Return the SQL that runs these statements in one transaction."""
    return f"BEGIN;\n{statements.as_string(None).strip()}\nCOMMIT;\n"


def block(body: str) -> str:
    """Return the SQL that runs this body of PL/pgSQL. Names in it can contain anything, even a closing dollar quote."""
    tag = "$cdc_views$"
    while tag in body:
        tag = f"{tag[:-1]}_$"
    return f"DO {tag}\nBEGIN\n{body.strip(chr(10))}\nEND {tag};\n"


def service_schema_version(connection: Connection) -> str | None:
    """Return the version that the service schema is marked with; None without a schema or a mark."""
    row = connection.execute(
        "SELECT pg_catalog.obj_description(oid, 'pg_namespace') FROM pg_catalog.pg_namespace WHERE nspname = %s",
        (SCHEMA,),
    ).fetchone()
    return None if row is None else row[0]


def record_start_of_capture(connection: Connection, publication: str) -> None:
    """Record the descriptions of the captured tables before a snapshot, to compare changes during it with them."""
    connection.execute(
        "SELECT cdc_views.record(c, %s) FROM cdc_views.captured c WHERE c.publication = %s",
        (START_OF_CAPTURE, publication),
    )


def missing_event_triggers(connection: Connection) -> list[str]:
    """Return the names of our event triggers that are absent or disabled."""
    rows = connection.execute("SELECT evtname::text FROM pg_catalog.pg_event_trigger WHERE evtenabled = 'A'")
    present = {name for (name,) in rows}
    return [name for name in service_sql.EVENT_TRIGGERS if name not in present]


def missing_service_tables(connection: Connection) -> list[TableName]:
    """Return the captured service tables that do not exist."""
    # Do not use to_regclass here: it fails for a role that may not use the schema.
    rows = connection.execute(
        "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s",
        (SCHEMA,),
    ).fetchall()
    return [table for table in SERVICE_TABLES if (table.schema, table.table) not in rows]


def relations_without_truncate_trigger(connection: Connection, tables: Sequence[TableName]) -> list[TableName]:
    """Return the tables and partitions whose TRUNCATE would not be recorded."""
    found = []
    for table in tables:
        rows = connection.execute(_RELATIONS_SQL, (table.schema, table.table, TRUNCATE_TRIGGER))
        found += [TableName(schema, name) for schema, name, is_watched in rows if not is_watched]
    return found


def quoted(table: TableName) -> str:
    """Return a table's quoted name as text, as to_regclass reads it."""
    return identifier(table).as_string(None)


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


def _text(statement: LiteralString) -> sql.SQL:
    return sql.SQL(statement)

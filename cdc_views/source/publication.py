"""The publication of the connector. It has exactly the mirrored tables and the captured service tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from psycopg import sql

from cdc_views.base.names import TableName
from cdc_views.source.catalog import SourceTable
from cdc_views.source.connection import Connection
from cdc_views.source.service.service_tables import SERVICE_TABLES, identifier, transaction

# Without truncate: a compacted topic takes no record without a key, and a trigger records each TRUNCATE.
_OPTIONS: Final = "publish = 'insert, update, delete', publish_via_partition_root = true"
# Only stored ones: virtual columns are not in the WAL.
_GENERATED: Final = "publish_generated_columns = stored"
FIRST_GENERATED: Final = 180000  # server version
FIRST_COLUMN_LISTS: Final = 150000
_RELATIONS: Final = (
    "FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid"
    " JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE p.pubname = %s"
)
_WHOLE: Final[Mapping[TableName, SourceTable]] = {}


@dataclass(frozen=True)
class Publication:
    """A publication as the catalog describes it.

    `complete`: inserts, updates and deletes are published. `filtered`: the tables with a row filter. `columns`: the
    columns of each table with a column list. `generated`: stored generated columns are published.
    """

    tables: frozenset[TableName]
    complete: bool
    via_root: bool
    filtered: frozenset[TableName]
    columns: Mapping[TableName, frozenset[str]]
    generated: bool


def read_publication(connection: Connection, name: str) -> Publication | None:
    """Describe a publication. Return None if it does not exist."""
    row: Any = connection.execute(
        "SELECT pubinsert AND pubupdate AND pubdelete, pubviaroot FROM pg_catalog.pg_publication WHERE pubname = %s",
        (name,),
    ).fetchone()
    if row is None:
        return None
    tables = connection.execute(
        "SELECT schemaname::text, tablename::text FROM pg_catalog.pg_publication_tables WHERE pubname = %s", (name,)
    ).fetchall()
    return Publication(
        tables=frozenset(TableName(schema, table) for schema, table in tables),
        complete=row[0],
        via_root=row[1],
        filtered=_filtered(connection, name),
        columns=_column_lists(connection, name),
        generated=_publishes_generated(connection, name),
    )


def publication_sql(
    name: str,
    tables: Iterable[TableName],
    server_version: int,
    *,
    exists: bool,
    has_options: bool = False,
    listed: Mapping[TableName, SourceTable] = _WHOLE,
) -> str:
    """Return the SQL that creates or corrects the publication. `listed` has the tables with a column list.

    A publication that `exists` and `has_options` keeps its options, since altering them counts as a change of every
    table.
    """
    options = sql.SQL(_OPTIONS if server_version < FIRST_GENERATED else f"{_OPTIONS}, {_GENERATED}")
    published = sql.SQL(", ").join(_published(table, listed) for table in (*tables, *SERVICE_TABLES))
    if not exists:
        create = sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH ({});\n")
        return create.format(sql.Identifier(name), published, options).as_string(None)
    alter = sql.SQL("ALTER PUBLICATION {0} SET TABLE {1};")
    if not has_options:
        alter = sql.SQL("ALTER PUBLICATION {0} SET TABLE {1};\nALTER PUBLICATION {0} SET ({2});")
    return transaction(alter.format(sql.Identifier(name), published, options))


def _published(table: TableName, listed: Mapping[TableName, SourceTable]) -> sql.Composable:
    if table not in listed:
        return identifier(table)
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in listed[table].columns)
    return sql.SQL("{} ({})").format(identifier(table), columns)


def _publishes_generated(connection: Connection, name: str) -> bool:
    if connection.info.server_version < FIRST_GENERATED:
        return False
    row: Any = connection.execute(
        "SELECT pubgencols = 's' FROM pg_catalog.pg_publication WHERE pubname = %s", (name,)
    ).fetchone()
    return bool(row[0])


def _filtered(connection: Connection, name: str) -> frozenset[TableName]:
    if connection.info.server_version < FIRST_COLUMN_LISTS:
        return frozenset()
    rows = connection.execute(f"SELECT n.nspname::text, c.relname::text {_RELATIONS} AND r.prqual IS NOT NULL", (name,))
    return frozenset(TableName(schema, table) for schema, table in rows)


def _column_lists(connection: Connection, name: str) -> dict[TableName, frozenset[str]]:
    if connection.info.server_version < FIRST_COLUMN_LISTS:
        return {}
    rows = connection.execute(
        "SELECT n.nspname::text, c.relname::text, ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a"
        f" WHERE a.attrelid = c.oid AND a.attnum = ANY(r.prattrs::int2[])) {_RELATIONS} AND r.prattrs IS NOT NULL",
        (name,),
    )
    return {TableName(schema, table): frozenset(columns) for schema, table, columns in rows}

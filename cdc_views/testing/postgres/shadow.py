"""The shadow: a second database with the same tables, created from the source's catalog and advanced by its WAL.

A shadow table has the columns of the source, its key, and plain indexes. It has no constraints, triggers, defaults or
foreign keys, since the source has already accepted its rows. A stored generated column is an ordinary column, because
its value is in the WAL. A virtual one is computed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from cdc_views.base.names import TableName
from cdc_views.base.rendering import FOR_SQL_OF_USERS, PINNED, options
from cdc_views.errors import ReplayFailed, SchemaChanged, UnknownTable, UnsupportedTable
from cdc_views.testing.postgres.wal import WalChange, WalTransaction

Connection = psycopg.Connection[tuple[Any, ...]]

_DATABASE_SQL: Final = """
SELECT pg_encoding_to_char(encoding), datcollate, datctype, to_jsonb(d) ->> 'datlocprovider',
       coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
FROM pg_database d WHERE datname = current_database()"""

# The identity finds the old version of a row: the primary key, or the chosen index. With REPLICA IDENTITY FULL the WAL
# has the whole old row, and so the primary key.
_TABLE_SQL: Final = """
SELECT c.oid::int8, c.relkind = 'p',
  ARRAY(SELECT a.attname::text FROM pg_index i CROSS JOIN unnest(i.indkey::int2[]) WITH ORDINALITY k(attnum, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
        WHERE i.indrelid = c.oid AND k.place <= i.indnkeyatts AND i.indimmediate
          AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'n' THEN false ELSE i.indisprimary END
        ORDER BY k.place),
  ARRAY(SELECT p.relid::oid::int8 FROM pg_partition_tree(c.oid) p WHERE p.isleaf)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')"""

_COLUMNS_SQL: Final = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod),
  CASE WHEN a.attcollation <> t.typcollation THEN format(' COLLATE %%I.%%I', cn.nspname, co.collname) ELSE '' END,
  CASE WHEN a.attgenerated = 'v' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN pg_collation co ON co.oid = a.attcollation LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

_NAMES_SQL: Final = """
SELECT n.nspname::text, c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY(%s::int8[]::oid[])"""

# For speed only: indexes on plain columns that any server can create. Never unique: rows arrive one by one.
_INDEXES_SQL: Final = """
SELECT (SELECT string_agg(pg_get_indexdef(i.indexrelid, k, false), ', ' ORDER BY k)
        FROM generate_series(1, i.indnkeyatts) k)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam AND m.amname = 'btree'
WHERE i.indrelid = %s AND NOT i.indisprimary AND i.indexprs IS NULL AND i.indpred IS NULL
  AND NOT EXISTS (SELECT FROM pg_opclass o WHERE o.oid = ANY(i.indclass::oid[]) AND NOT o.opcdefault)"""

# Every type that the columns need, after the types that it consists of. Every server has the types of pg_catalog.
_TYPES_SQL: Final = """
WITH RECURSIVE needed(type, depth) AS (
    SELECT a.atttypid, 0 FROM pg_attribute a
    WHERE a.attrelid = ANY(%s::int8[]::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
  UNION
    SELECT part.type, depth + 1
    FROM needed JOIN pg_type t ON t.oid = needed.type AND t.typnamespace <> 'pg_catalog'::regnamespace
    CROSS JOIN LATERAL (
        SELECT t.typelem WHERE t.typelem <> 0
        UNION ALL SELECT t.typbasetype WHERE t.typbasetype <> 0
        UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid
        UNION ALL SELECT r.rngtypid FROM pg_range r WHERE r.rngmultitypid = t.oid
        UNION ALL SELECT a.atttypid FROM pg_attribute a
                  WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ) part(type)
)
SELECT format('%%I.%%I', n.nspname, t.typname), n.nspname::text,
  CASE
    WHEN e.extname IS NOT NULL THEN
        format('CREATE EXTENSION IF NOT EXISTS %%I SCHEMA %%I', e.extname, n.nspname)
    WHEN t.typtype = 'e' THEN (
        SELECT format('CREATE TYPE %%I.%%I AS ENUM (%%s)', n.nspname, t.typname,
                      string_agg(quote_literal(enumlabel), ', ' ORDER BY enumsortorder))
        FROM pg_enum WHERE enumtypid = t.oid)
    WHEN t.typtype = 'd' THEN
        format('CREATE DOMAIN %%I.%%I AS %%s', n.nspname, t.typname, format_type(t.typbasetype, t.typtypmod))
    WHEN t.typtype = 'r' THEN (
        SELECT format('CREATE TYPE %%I.%%I AS RANGE (SUBTYPE = %%s)', n.nspname, t.typname,
                      format_type(rngsubtype, NULL))
        FROM pg_range WHERE rngtypid = t.oid)
    WHEN t.typtype = 'c' THEN (
        SELECT format('CREATE TYPE %%I.%%I AS (%%s)', n.nspname, t.typname,
                      string_agg(format('%%I %%s', attname, format_type(atttypid, atttypmod)), ', ' ORDER BY attnum))
        FROM pg_attribute WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped)
  END
FROM (SELECT type, max(depth) AS depth FROM needed GROUP BY type) needed
JOIN pg_type t ON t.oid = needed.type JOIN pg_namespace n ON n.oid = t.typnamespace
LEFT JOIN pg_depend x ON x.classid = 'pg_type'::regclass AND x.objid = t.oid AND x.deptype = 'e'
LEFT JOIN pg_extension e ON e.oid = x.refobjid AND x.refclassid = 'pg_extension'::regclass
WHERE n.nspname <> 'pg_catalog' AND t.typtype <> 'm' AND (t.typcategory <> 'A' OR t.typtype = 'd')
ORDER BY needed.depth DESC, t.oid"""


@dataclass(frozen=True)
class ShadowColumn:
    """A column as in the DDL; `virtual` is the expression of a virtual generated column."""

    name: str
    type: str
    collation: str
    virtual: str | None


@dataclass(frozen=True)
class ReplayTable:
    """The parts of a source table needed for a replay. `key` finds a row; `parts` are the tables of its partitions."""

    name: TableName
    oid: int
    partitioned: bool
    columns: tuple[ShadowColumn, ...]
    key: tuple[str, ...]
    parts: frozenset[TableName]

    @property
    def stored(self) -> tuple[str, ...]:
        """The columns with stored values."""
        return tuple(column.name for column in self.columns if column.virtual is None)

    @property
    def identifier(self) -> sql.Identifier:
        """The name for SQL."""
        return sql.Identifier(self.name.schema, self.name.table)


def connect(dsn: str, **parameters: Any) -> Connection:
    """Connect for the oracle's own SQL. Source and shadow share the settings that decide how values are printed."""
    return _connect(dsn, PINNED, **parameters)


def connect_for_queries(dsn: str) -> Connection:
    """Connect for SQL of the user, whose names the database's search_path resolves."""
    return _connect(dsn, FOR_SQL_OF_USERS)


def _connect(dsn: str, pinned: Mapping[str, str], **parameters: Any) -> Connection:
    return psycopg.connect(
        dsn, autocommit=True, application_name="cdc_views oracle", options=options(pinned), **parameters
    )


def read_tables(source: Connection, names: Iterable[TableName]) -> list[ReplayTable]:
    """Describe tables. Raises UnknownTable, UnsupportedTable."""
    return [_read_table(source, name) for name in names]


def _read_table(source: Connection, name: TableName) -> ReplayTable:
    row = source.execute(_TABLE_SQL, (name.schema, name.table)).fetchone()
    if row is None:
        raise UnknownTable(f'table "{name}" does not exist in the source', hint="names are case-sensitive")
    oid, partitioned, key, leaves = row
    if not key:
        raise UnsupportedTable(
            f'table "{name}" has no key that its changes in the WAL carry',
            hint="give it a primary key that is not deferrable, or a replica identity by another such index",
        )
    columns = tuple(ShadowColumn(*column) for column in source.execute(_COLUMNS_SQL, (oid,)))
    parts = source.execute(_NAMES_SQL, (leaves,)).fetchall() if partitioned else []
    return ReplayTable(name, oid, partitioned, columns, tuple(key), frozenset(TableName(*part) for part in parts))


def create_database(source: Connection, server: Connection, name: str) -> None:
    """Create an empty database that compares text as the source does."""
    row = source.execute(_DATABASE_SQL).fetchone()
    assert row is not None
    encoding, collate, ctype, provider, locale = row
    options = [sql.SQL("TEMPLATE template0 ENCODING {} LC_COLLATE {} LC_CTYPE {}").format(encoding, collate, ctype)]
    if provider == "i":
        options.append(sql.SQL("LOCALE_PROVIDER icu ICU_LOCALE {}").format(locale))
    elif provider == "b":
        options.append(sql.SQL("LOCALE_PROVIDER builtin BUILTIN_LOCALE {}").format(locale))
    server.execute(sql.SQL("CREATE DATABASE {} {}").format(sql.Identifier(name), sql.SQL(" ").join(options)))


def database_dsn(dsn: str, name: str) -> str:
    """The DSN of another database of the same server."""
    return make_conninfo(dsn, dbname=name)


class Shadow:
    """The tables of the shadow: creates, fills and advances them."""

    def __init__(self, connection: Connection, tables: Sequence[ReplayTable]) -> None:
        self._tables = tables
        self._statements: dict[tuple[TableName, str, tuple[str, ...]], bytes] = {}

        self.use(connection)

    def use(self, connection: Connection) -> None:
        """Work over this connection from now on."""
        self._connection = connection
        # Statements differ by the columns whose values the WAL omits.
        connection.prepared_max = 1_000

    def create(self, source: Connection) -> None:
        """Create types and tables. `source` is in the snapshot that `copy` reads. Raises UnsupportedTable."""
        with self._connection.transaction():
            oids = [table.oid for table in self._tables]
            for type_name, schema, statement in source.execute(_TYPES_SQL, (oids,)):
                if statement is None:
                    raise UnsupportedTable(
                        f"type {type_name} cannot be created again", hint="omit the tables that have it"
                    )
                self._make_schema(schema)
                self._connection.execute(statement)
            for table in self._tables:
                self._make_schema(table.name.schema)
                self._connection.execute(_table_ddl(table))

    def copy(self, source: Connection) -> None:
        """Copy all rows of the connection's snapshot, and create the indexes."""
        with self._connection.transaction():
            for table in self._tables:
                columns = _identifiers(table.stored)
                read = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(columns, table.identifier)
                write = sql.SQL("COPY {} ({}) FROM STDIN").format(table.identifier, columns)
                with source.cursor().copy(read) as rows, self._connection.cursor().copy(write) as into:
                    for block in rows:
                        into.write(block)
        for table in self._tables:
            for (columns_sql,) in source.execute(_INDEXES_SQL, (table.oid,)).fetchall():
                on = sql.SQL("CREATE INDEX ON {} ({})").format(table.identifier, sql.SQL(columns_sql))
                self._connection.execute(on)
        self._connection.execute("ANALYZE")

    def require_same(self, now: Sequence[ReplayTable]) -> None:
        """Raise SchemaChanged if a table has other columns or another key than at the start, or is another table."""
        for table, other in zip(self._tables, now, strict=True):
            if (table.oid, table.columns, table.key) != (other.oid, other.columns, other.key):
                raise SchemaChanged(
                    f'table "{table.name}" is not the one that the oracle copied at its start',
                    hint="the oracle does not follow DDL: start another one",
                )
        self._tables = now  # there may be a new partition

    def mirror_query(self, name: TableName) -> tuple[str, tuple[str, ...]]:
        """The query for all columns and rows of a table, and its key."""
        table = next(table for table in self._tables if table.name == name)
        columns = _identifiers(column.name for column in table.columns)
        return sql.SQL("SELECT {} FROM {}").format(columns, table.identifier).as_string(), table.key

    def apply(self, transactions: Iterable[WalTransaction]) -> set[TableName]:
        """Apply the transactions in order. Returns the tables that they changed. Raises ReplayFailed.

        Runs inside the caller's transaction.
        """
        tables = {part: table for table in self._tables for part in (*table.parts, table.name)}
        done: list[tuple[ReplayTable, psycopg.Cursor[Any]]] = []
        try:
            with self._connection.pipeline():
                for change in (change for transaction in transactions for change in transaction.changes):
                    if (table := tables.get(change.table)) is not None:
                        done += [(table, self._do(table, change))]
        except psycopg.Error as error:
            # The message can contain values of the row.
            raise ReplayFailed(
                f'the shadow refuses a change of the WAL: {type(error).__name__} in table "{error.diag.table_name}"',
                hint="a row was not as the source had it; was the shadow, or the slot, used by somebody else?",
            ) from None
        for table, cursor in done:
            if cursor.rowcount not in (1, -1):  # unknown for TRUNCATE
                raise ReplayFailed(f'table "{table.name}": a change of the WAL meets {cursor.rowcount} rows, wanted 1')
        return {table.name for table, _ in done}

    def _do(self, table: ReplayTable, change: WalChange) -> psycopg.Cursor[Any]:
        new, old = change.new or {}, change.old or change.new or {}
        if change.new is not None and {*new, *change.unchanged} != {column.name for column in table.columns}:
            raise ReplayFailed(f'table "{table.name}": a change of the WAL has other columns than the table')
        if change.kind == "TRUNCATE":
            return self._truncate(table, change)
        written = tuple(name for name in table.stored if name in new)
        values = [new[name] for name in written]
        key = [old[name] for name in table.key]
        shape = (table.name, change.kind, written)
        if shape not in self._statements:
            self._statements[shape] = _statement(table, change.kind, written).as_bytes(self._connection)
        parameters = {"INSERT": values, "UPDATE": [*values, *key], "DELETE": key}[change.kind]
        return self._connection.execute(self._statements[shape], parameters, prepare=True)

    def _truncate(self, table: ReplayTable, change: WalChange) -> psycopg.Cursor[Any]:
        # A TRUNCATE of the whole table names its partitions, too.
        if table.name not in change.together:
            raise ReplayFailed(
                f'table "{table.name}": partition "{change.table.table}" was truncated',
                hint="which of its rows were in that partition is not known here",
            )
        return self._connection.execute(sql.SQL("TRUNCATE {}").format(table.identifier))

    def _make_schema(self, name: str) -> None:
        self._connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(name)))


def _table_ddl(table: ReplayTable) -> sql.Composed:
    columns = [
        sql.SQL("{} {}").format(
            sql.Identifier(column.name),
            sql.SQL(
                column.type + column.collation
                + (f" GENERATED ALWAYS AS ({column.virtual}) VIRTUAL" if column.virtual else "")
            ),
        )
        for column in table.columns
    ]  # fmt: skip
    key = sql.SQL("PRIMARY KEY ({})").format(_identifiers(table.key))
    return sql.SQL("CREATE TABLE {} ({})").format(table.identifier, sql.SQL(", ").join([*columns, key]))


def _statement(table: ReplayTable, kind: str, written: Sequence[str]) -> sql.Composed:
    """The SQL for a change. A parameter gets the type of its column, so text from test_decoding fits any type."""
    name = _name(table.name.schema, table.name.table)
    where = sql.SQL(" AND ").join(map(_equation, table.key))
    if kind == "INSERT":
        names, marks = sql.SQL(", ").join(map(_name, written)), sql.SQL(", ").join([sql.SQL("%s")] * len(written))
        return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            _name(table.name.schema, table.name.table), names, marks
        )
    if kind == "UPDATE":
        values = sql.SQL(", ").join(map(_equation, written))
        return sql.SQL("UPDATE {} SET {} WHERE {}").format(name, values, where)
    return sql.SQL("DELETE FROM {} WHERE {}").format(name, where)


def _equation(name: str) -> sql.Composed:
    return sql.SQL("{} = %s").format(_name(name))


def _name(*parts: str) -> sql.Identifier:
    # psycopg looks for its placeholders in quoted names, too.
    return sql.Identifier(*(part.replace("%", "%%") for part in parts))


def _identifiers(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))

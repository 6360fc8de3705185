"""Reads the source's catalog: the tables' columns, keys and replica identities.

Types are resolved: a domain has its base type, an enum has the type "enum". A function of the service schema uses the
same SQL to describe a table within the transaction that alters it (service/service_sql.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from cdc_views.base.column_options import ColumnOptions
from cdc_views.base.names import ColumnName, TableName
from cdc_views.errors import UnknownTable
from cdc_views.source.connection import Connection
from cdc_views.source.toast import ServerFormat

ReplicaIdentity = Literal["default", "full", "nothing", "index"]

_REPLICA_IDENTITY: Final[dict[str, ReplicaIdentity]] = {"d": "default", "f": "full", "n": "nothing", "i": "index"}

TYPES_BY_NAME: Final = (
    "citext", "hstore", "ltree", "isbn", "geometry", "geography", "vector", "halfvec", "sparsevec", "tsvector",
)  # fmt: skip
"""The types that Debezium finds by their names alone: all but tsvector are of extensions."""
USER_DEFINED: Final = " (user-defined)"

# The name of a type; that of an enum is "enum". All other code knows types by this name, so a type of the user that has
# the name of one that is treated in a special way gets another one.
_TYPE_NAME_SQL: Final = f"""
CASE WHEN {{type}}.typtype = 'e' THEN 'enum'
     WHEN {{type}}.typnamespace <> 'pg_catalog'::regnamespace AND ({{type}}.typname = 'enum' OR EXISTS (
              SELECT FROM pg_catalog.pg_type builtin
              WHERE builtin.typname = {{type}}.typname AND builtin.typnamespace = 'pg_catalog'::regnamespace)
          OR {{type}}.typname IN ({", ".join(f"'{name}'" for name in TYPES_BY_NAME)}) AND NOT EXISTS (
              SELECT FROM pg_catalog.pg_depend member WHERE member.classid = 'pg_catalog.pg_type'::regclass
              AND member.objid = {{type}}.oid AND member.deptype = 'e'))
     THEN {{type}}.typname || '{USER_DEFINED}' ELSE {{type}}.typname::text END"""

# One row per column of the table whose oid replaces {relation}. A column with PLAIN storage counts as toastable: values
# that were stored out of line before stay there, and the fingerprint does not show a change of the storage.
COLUMNS_SQL: Final = f"""
SELECT a.attname::text AS name, a.attnum::int AS attnum,
       {_TYPE_NAME_SQL.format(type="base")} AS type_name,
       base.typmod AS typmod,
       CASE WHEN base.typcategory <> 'A' THEN NULL
            ELSE {_TYPE_NAME_SQL.format(type="element")} END AS element,
       a.attnotnull AS not_null,
       base.typlen = -1 AND base.typstorage <> 'p'
           AND (c.reltoastrelid <> 0 OR c.relkind = 'p' OR a.attstorage = 'p') AS toastable,
       a.atttypid <> base.oid AS domain, a.attgenerated = 'v' AS virtual
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
CROSS JOIN LATERAL (
    WITH RECURSIVE resolved(type, typmod) AS (
        SELECT a.atttypid, a.atttypmod
        UNION ALL
        SELECT d.typbasetype, CASE WHEN resolved.typmod = -1 THEN d.typtypmod ELSE resolved.typmod END
        FROM resolved JOIN pg_catalog.pg_type d ON d.oid = resolved.type AND d.typtype = 'd'
    )
    SELECT t.oid, t.typname, t.typnamespace, t.typtype, t.typcategory, t.typelem, t.typlen, t.typstorage,
           resolved.typmod
    FROM resolved JOIN pg_catalog.pg_type t ON t.oid = resolved.type AND t.typtype <> 'd'
) base
LEFT JOIN pg_catalog.pg_type element ON element.oid = base.typelem
WHERE c.oid = {{relation}}
ORDER BY a.attnum"""

KEY_SQL: Final = """
SELECT a.attname::text AS name, NOT i.indimmediate AS deferrable, part.place
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS part(attnum, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = part.attnum
WHERE i.indrelid = {relation} AND i.indisprimary AND part.place <= i.indnkeyatts
ORDER BY part.place"""

_FORMAT_SQL: Final = """
SELECT pg_catalog.pg_encoding_max_length(d.encoding),
       has_function_privilege('pg_catalog.pg_control_init()', 'EXECUTE')
FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database()"""

_ALIGNMENT_SQL: Final = "SELECT max_data_alignment FROM pg_catalog.pg_control_init()"
_USUAL_ALIGNMENT: Final = 8

_TABLES_SQL: Final = """
SELECT n.nspname, c.relname, c.oid::bigint, coalesce((
    SELECT CASE WHEN bool_and(l.relreplident = 'f') THEN 'f'
                WHEN bool_and(l.relreplident IN ('d', 'f')) THEN 'd' ELSE min(l.relreplident::text) END
    FROM pg_catalog.pg_partition_tree(c.oid) p JOIN pg_catalog.pg_class l ON l.oid = p.relid
    WHERE c.relkind = 'p' AND p.isleaf AND l.relkind = 'r'), c.relreplident::text)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
  AND (n.nspname, c.relname) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"""

_ROWS_SQL: Final = """
SELECT c.reltuples
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p')
  AND (n.nspname, c.relname) IN (SELECT * FROM unnest(%s::text[], %s::text[]))"""

NO_OPTIONS: Final = ColumnOptions()

# No real name contains these characters, so that the parts stay distinct.
FIELD_SEPARATOR: Final = "\x1f"
LINE_SEPARATOR: Final = "\x1e"


@dataclass(frozen=True)
class SourceColumn:
    """A column.

    `type_name` is the name of the base type (_TYPE_NAME_SQL), and `element` that of an array's elements.
    `toastable`: a value can be stored out of line. `domain`: the column's own type is a domain over `type_name`.
    `virtual`: Postgres computes the values at every read. `as_text`: source.text_columns names the column.
    `as_decimal`: the precision and scale from source.decimal_columns.
    """

    name: str
    attnum: int
    type_name: str
    typmod: int
    element: str | None
    not_null: bool
    toastable: bool
    domain: bool = False
    virtual: bool = False
    as_text: bool = False
    as_decimal: tuple[int, int] | None = None

    @property
    def mirrored_type(self) -> str:
        """Return the type that views see: `type_name`, or `text`."""
        return "text" if self.as_text else self.type_name

    @property
    def form(self) -> str | None:
        """Return how the column's form in the mirror differs from the default form of its type; "" for a text."""
        if self.as_text:
            return ""
        if self.as_decimal is not None:
            return " decimal({},{})".format(*self.as_decimal)
        # Mirrors that earlier versions made have the padding.
        return " unpadded" if "bpchar" in (self.type_name, self.element) else None


@dataclass(frozen=True)
class SourceTable:
    """A table of the source as its catalog describes it. `key` is empty if there is no primary key.

    `replica_identity` of a partitioned table is full only if all its partitions have it.
    `columns` are the columns of the mirror. Those in `excluded` are neither in the mirror nor in the log: virtual
    generated columns, and the columns in source.exclude_columns.
    `placeholder` does not come from the catalog. It is the secret text that stands for unchanged values in the events
    of the table. Decoding needs it (log/debezium/placeholder.py).
    """

    name: TableName
    oid: int
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    key_deferrable: bool
    replica_identity: ReplicaIdentity
    placeholder: str | None = field(default=None, repr=False)
    excluded: tuple[SourceColumn, ...] = ()

    @property
    def key_columns(self) -> tuple[SourceColumn, ...]:
        """Return the columns of the key, in its order."""
        by_name = {column.name: column for column in self.columns}
        return tuple(by_name[name] for name in self.key)

    @property
    def has_column_list(self) -> bool:
        """Whether the publication lists the table's columns. Postgres never publishes virtual columns."""
        return any(not column.virtual for column in self.excluded)

    def fingerprint(self) -> str:
        """Return a hash of everything that decides how events of this table are decoded."""
        domains = [f"{column.attnum} domain" for column in self._all_columns if column.element and column.domain]
        return _hash([*self._lines(), *domains])

    def mirror_fingerprint(self) -> str:
        """Return a hash of what decides the columns of the mirror: the types of the source, and the columns' forms."""
        forms = [f"{column.attnum}{form}" for column in self.columns if (form := column.form) is not None]
        forms += [f"{column.attnum} excluded" for column in self.excluded]
        types = _hash(self._lines())
        return _hash([types, *forms]) if forms else types

    @property
    def _all_columns(self) -> list[SourceColumn]:
        return sorted((*self.columns, *self.excluded), key=lambda column: column.attnum)

    def _lines(self) -> list[str]:
        columns = [
            FIELD_SEPARATOR.join((str(column.attnum), column.name, column.type_name, str(column.typmod),
                                  column.element or ""))
            for column in self._all_columns
        ]  # fmt: skip
        return [FIELD_SEPARATOR.join((self.name.schema, self.name.table)), *columns, FIELD_SEPARATOR.join(self.key)]


def _hash(lines: Iterable[str]) -> str:
    return hashlib.sha256(LINE_SEPARATOR.join(lines).encode()).hexdigest()


def read_tables(
    connection: Connection, names: Iterable[TableName], options: ColumnOptions = NO_OPTIONS
) -> dict[TableName, SourceTable]:
    """Describe the named tables. `options` has the settings of single columns.

    Raises UnknownTable for the first name that is not an ordinary or partitioned table.
    """
    wanted = list(names)
    rows = connection.execute(
        _TABLES_SQL, ([name.schema for name in wanted], [name.table for name in wanted])
    ).fetchall()
    found = {TableName(schema, table): (oid, identity) for schema, table, oid, identity in rows}
    for name in wanted:
        if name not in found:
            raise UnknownTable(
                f'table "{name}" does not exist in the source',
                hint="names are case-sensitive and without quotes; only tables can be mirrored, not views",
            )
    return {name: _read_table(connection, name, *found[name], options) for name in wanted}


def _read_table(
    connection: Connection, name: TableName, oid: int, identity: str, options: ColumnOptions
) -> SourceTable:
    server = _server_format(connection)
    described = connection.execute(COLUMNS_SQL.format(relation="%s::oid"), (oid,)).fetchall()
    columns = [_with_options(SourceColumn(*column), name, options, server) for column in described]
    key = connection.execute(KEY_SQL.format(relation="%s::oid"), (oid,)).fetchall()
    in_key = {part for part, _, _ in key}
    excluded = {
        column.name for column in columns
        if column.virtual or (ColumnName(name, column.name) in options.excluded and column.name not in in_key)
    }  # fmt: skip
    return SourceTable(
        name=name,
        oid=oid,
        columns=tuple(column for column in columns if column.name not in excluded),
        excluded=tuple(column for column in columns if column.name in excluded),
        key=tuple(part for part, _, _ in key),
        key_deferrable=any(deferrable for _, deferrable, _ in key),
        replica_identity=_REPLICA_IDENTITY[identity],
    )


def _server_format(connection: Connection) -> ServerFormat:
    row: Any = connection.execute(_FORMAT_SQL).fetchone()
    character_bytes, may_ask = row
    if not may_ask:  # which `check` reports
        return ServerFormat(character_bytes, _USUAL_ALIGNMENT)
    row = connection.execute(_ALIGNMENT_SQL).fetchone()
    return ServerFormat(character_bytes, row[0])


def tables_with_column_list(
    connection: Connection, names: Iterable[TableName], options: ColumnOptions
) -> dict[TableName, SourceTable]:
    """Describe the named tables of which only some columns must be published. Tables that do not exist are skipped."""
    wanted = {column.table for column in options.excluded} & set(names)
    rows = connection.execute(_TABLES_SQL, ([name.schema for name in wanted], [name.table for name in wanted]))
    found = read_tables(connection, [TableName(*row[:2]) for row in rows.fetchall()], options)
    return {name: table for name, table in found.items() if table.has_column_list}


def _with_options(column: SourceColumn, table: TableName, options: ColumnOptions, server: ServerFormat) -> SourceColumn:
    name = ColumnName(table, column.name)
    return replace(
        column,
        toastable=column.toastable and server.may_move(column.type_name, column.typmod),
        as_text=name in options.text,
        as_decimal=options.decimal_type(name),
    )


def excluded_columns(tables: Iterable[SourceTable]) -> list[ColumnName]:
    """Return the columns of these tables that are in no event."""
    return [ColumnName(table.name, column.name) for table in tables for column in table.excluded]


def estimated_rows(connection: Connection, names: Iterable[TableName]) -> int | None:
    """Return the number of rows in Postgres' statistics; None if one of the tables was never analyzed."""
    wanted = list(names)
    rows = connection.execute(_ROWS_SQL, ([name.schema for name in wanted], [name.table for name in wanted])).fetchall()
    counts = [int(count) for (count,) in rows]
    return sum(counts) if len(counts) == len(wanted) and all(count >= 0 for count in counts) else None


@dataclass(frozen=True)
class SourceIdentity:
    """Identifies one history of one database. Together with the slot and the topics it identifies a generation."""

    system_identifier: str
    timeline: int
    server_version: int


# pg_control_checkpoint lags behind a promotion; the name of the current WAL file does not.
SYSTEM_IDENTIFIER_SQL: Final = "(SELECT system_identifier::text FROM pg_catalog.pg_control_system())"
TIMELINE_SQL: Final = (
    "(SELECT CASE WHEN pg_catalog.pg_is_in_recovery()"
    " THEN (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint())"
    " ELSE ('x' || substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int END)"
)


def read_identity(connection: Connection) -> SourceIdentity:
    """Read the system identifier, the timeline and the version of the server."""
    row: Any = connection.execute(f"SELECT {SYSTEM_IDENTIFIER_SQL}, {TIMELINE_SQL}").fetchone()
    return SourceIdentity(row[0], row[1], connection.info.server_version)

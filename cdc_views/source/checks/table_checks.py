"""Checks what must hold for each table that is to be mirrored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from cdc_views.base.names import TableName
from cdc_views.base.service_schema import SCHEMA
from cdc_views.config import SourceSettings
from cdc_views.errors import UnknownTable
from cdc_views.findings import Finding
from cdc_views.source.catalog import SourceColumn, SourceTable, read_tables
from cdc_views.source.checks.refusals import (
    PRINTED_BY_NAME,
    REFUSED,
    REFUSED_REMEDY,
    guard,
    has_placeholder,
    key_refusal,
    refusal,
)
from cdc_views.source.connection import Connection
from cdc_views.source.publication import FIRST_COLUMN_LISTS, FIRST_GENERATED
from cdc_views.source.service.service_tables import block, quoted, select_sql

_FACTS_SQL: Final = """
SELECT c.relkind::text, c.relpersistence::text, has_schema_privilege(n.oid, 'USAGE')
           AND has_table_privilege(c.oid, 'SELECT'),
       row_security_active(c.oid),
       c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid),
       ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
             WHERE a.attrelid = c.oid AND NOT a.attisdropped
               AND a.attgenerated = 's' AND %s),
       ARRAY(SELECT con.conname::text FROM pg_catalog.pg_constraint con
             WHERE con.conrelid = c.oid AND con.contype = 'c' AND con.convalidated),
       ARRAY(SELECT o.relname::text FROM pg_catalog.pg_class o WHERE o.relnamespace = c.relnamespace
             AND o.oid <> c.oid AND o.relkind IN ('r', 'p') AND lower(o.relname) = lower(c.relname))
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s"""

# The relations that hold rows of a table, or can hold some later.
_HOLDERS_SQL: Final = """
WITH RECURSIVE tree(relation) AS (
    SELECT %s::oid
    UNION
    SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.relation)
SELECT n.nspname::text, r.relname::text, r.relkind::text, r.relpersistence::text, r.relreplident::text
FROM tree JOIN pg_catalog.pg_class r ON r.oid = tree.relation JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE r.relkind <> 'p' ORDER BY 1, 2"""

# The columns whose values contain, at any depth, a value of one of the types in the parameter.
_NESTED_SQL: Final = """
WITH RECURSIVE used(name, type, depth) AS (
    SELECT a.attname::text, a.atttypid, 0 FROM pg_catalog.pg_attribute a
    WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped
    UNION
    SELECT used.name, part.type, used.depth + 1 FROM used JOIN pg_catalog.pg_type t ON t.oid = used.type
    CROSS JOIN LATERAL (
        SELECT t.typelem UNION ALL SELECT t.typbasetype
        UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
                  WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ) AS part(type) WHERE part.type <> 0 AND used.depth < 16)
SELECT DISTINCT used.name, t.typname::text FROM used JOIN pg_catalog.pg_type t ON t.oid = used.type
WHERE used.depth > 0 AND t.typname = ANY(%s) AND t.typnamespace = 'pg_catalog'::regnamespace ORDER BY 1, 2"""

# The captured tables that are partitions or children of this table.
_CAPTURED_BELOW_SQL: Final = """
WITH RECURSIVE tree(relation) AS (
    SELECT i.inhrelid FROM pg_catalog.pg_inherits i WHERE i.inhparent = %s
    UNION
    SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.relation)
SELECT n.nspname::text, r.relname::text
FROM tree JOIN pg_catalog.pg_class r ON r.oid = tree.relation JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
WHERE (n.nspname, r.relname) IN (SELECT * FROM unnest(%s::text[], %s::text[])) ORDER BY 1, 2"""

# The tables of a publication that this table is a partition of.
_PUBLISHED_ABOVE_SQL: Final = """
SELECT t.schemaname::text, t.tablename::text
FROM pg_catalog.pg_partition_ancestors(%(table)s) above
JOIN pg_catalog.pg_class r ON r.oid = above.relid JOIN pg_catalog.pg_namespace n ON n.oid = r.relnamespace
JOIN pg_catalog.pg_publication_tables t ON (t.schemaname, t.tablename) = (n.nspname, r.relname)
WHERE t.pubname = %(publication)s AND r.oid <> %(table)s ORDER BY 1, 2"""

_IDENTITIES: Final = {"d": "default", "f": "full", "n": "nothing", "i": "index"}
DEFAULT_IDENTITY: Final = "REPLICA IDENTITY DEFAULT;"
# NOT VALID, then VALIDATE: others can write to the table while it is scanned. If it holds such values, the constraint
# is dropped again, since updates of their rows would fail.
_GUARD_SQL: Final = """BEGIN;
ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {constraint};
ALTER TABLE {table} ADD CONSTRAINT {constraint} CHECK ({check}) NOT VALID;
COMMIT;
"""
_VALIDATE_SQL: Final = """\
    ALTER TABLE {table} VALIDATE CONSTRAINT {constraint};
EXCEPTION WHEN check_violation THEN
    ALTER TABLE {table} DROP CONSTRAINT {constraint};
    RAISE WARNING 'the source holds values that cannot be mirrored: %', SQLERRM;
"""

_KINDS: Final = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence"}


@dataclass(frozen=True)
class _Facts:
    kind: str
    persistence: str
    readable: bool
    row_security: bool
    inherited: bool
    generated: list[str]
    checks: list[str]
    twins: list[str]


def check_tables(connection: Connection, source: SourceSettings) -> Iterator[Finding]:
    """Check each table. A table that does not exist is a finding, too."""
    for setting, column in source.columns.named():
        if column.table not in source.tables:
            problem = f'names column "{column}", whose table is not in source.tables'
            yield Finding("error", f"setting {setting}", problem, "correct it; names are case-sensitive")
    if source.exclude_columns and connection.info.server_version < FIRST_COLUMN_LISTS:
        problem = f"needs Postgres {FIRST_COLUMN_LISTS // 10000}: an earlier one cannot publish some columns of a table"
        yield Finding("error", "setting source.exclude_columns", problem, "upgrade Postgres, or exclude no columns")
    for name in source.tables:
        yield from _check_table(connection, name, source)


def _check_table(connection: Connection, name: TableName, source: SourceSettings) -> Iterator[Finding]:
    subject = f'table "{name}"'
    server_version = connection.info.server_version
    row = connection.execute(_FACTS_SQL, (server_version < FIRST_GENERATED, name.schema, name.table)).fetchone()
    if row is None:
        yield Finding("error", subject, "does not exist", "correct source.tables; names are case-sensitive")
        return
    facts = _Facts(*row)
    if facts.kind not in "rp":
        problem = f"is {_KINDS.get(facts.kind, 'no table')}"
        yield Finding("error", subject, problem, "only ordinary and partitioned tables can be mirrored")
        return
    if name.schema == SCHEMA:
        yield Finding("error", subject, "is a service table", "remove it from source.tables")
        return
    yield from _check_facts(subject, name, facts, connection.info.user)
    try:
        table = read_tables(connection, [name], source.columns)[name]
    except UnknownTable:  # dropped since the query above
        yield Finding("error", subject, "does not exist", "correct source.tables")
        return
    yield from _check_tree(connection, subject, table, source)
    yield from _check_key(subject, table)
    yield from _check_columns(subject, table, source, facts.checks, server_version)
    unpublished = sorted({*facts.generated} - {column.name for column in table.excluded})
    yield from _check_generated(subject, table, unpublished)
    if not unpublished:  # with full identity, an UPDATE of a table with unpublished columns fails
        for holder in _holders(connection, table):
            yield from _check_identity(table, holder, source)


def _check_facts(subject: str, name: TableName, facts: _Facts, role: str) -> Iterator[Finding]:
    if not facts.readable:
        fix = select_sql(role, name)
        remedy = f'run "{fix.strip().replace(chr(10), " ")}" as its owner'
        yield Finding("error", subject, "the role may not read it", remedy, fix, by_dba=True)
    if facts.persistence != "p":
        yield Finding("error", subject, "is not logged", f'run "ALTER TABLE {quoted(name)} SET LOGGED"')
    if facts.row_security:
        fix = f"ALTER ROLE {sql.Identifier(role).as_string(None)} BYPASSRLS;"
        problem = "row security hides rows of it from the role's snapshot"
        yield Finding("error", subject, problem, f'run "{fix.removesuffix(";")}" as a superuser', fix, by_dba=True)
    if facts.inherited:
        remedy = "mirror the inheriting tables themselves, or use a partitioned table"
        yield Finding("error", subject, "has inheriting tables, whose changes arrive under other names", remedy)
    if facts.twins:
        remedy = "rename one: Debezium ignores case in names"
        yield Finding("error", subject, f'differs only by case from "{facts.twins[0]}"', remedy)


def _check_generated(subject: str, table: SourceTable, unpublished: Sequence[str]) -> Iterator[Finding]:
    if unpublished:
        problem = f"stored generated columns that Postgres does not publish before version 18: {_listed(unpublished)}"
        yield Finding("error", subject, problem, "list them in source.exclude_columns, and compute them in a view")
    if virtual := [column.name for column in table.excluded if column.virtual]:
        problem = f"virtual generated columns, which are not in the WAL, are not mirrored: {_listed(virtual)}"
        yield Finding("info", subject, problem, "compute them in a view")


def _check_key(subject: str, table: SourceTable) -> Iterator[Finding]:
    if not table.key:
        remedy = f'run "ALTER TABLE {quoted(table.name)} ADD PRIMARY KEY (...)"'
        yield Finding("error", subject, "has no primary key", remedy)
    elif table.key_deferrable:
        problem = "has a deferrable primary key: a chain of key changes is wrong in the stream itself"
        yield Finding("error", subject, problem, "make the key NOT DEFERRABLE")


def _check_columns(
    subject: str, table: SourceTable, source: SourceSettings, checks: Collection[str], server_version: int
) -> Iterator[Finding]:
    for column in table.columns:
        if reason := refusal(column):
            yield Finding("error", subject, f'column "{column.name}" {reason}', REFUSED_REMEDY)
        if column.name in table.key and (reason := key_refusal(column)):
            remedy = "make another unique column the primary key"
            yield Finding("error", subject, f'key column "{column.name}" {reason}', remedy)
        if found := _missing_guard(column, checks, server_version):
            problem, constraint, check = found
            names = {"table": quoted(table.name), "constraint": constraint}
            fix = _GUARD_SQL.format(check=check, **names) + block(_VALIDATE_SQL.format(**names))
            remedy = f'exclude them: run "ALTER TABLE {quoted(table.name)} ADD CONSTRAINT {constraint} CHECK ({check})"'
            yield Finding("error", subject, f'column "{column.name}": {problem}', remedy, fix)
    present = {column.name for column in (*table.columns, *table.excluded)}
    for setting, name in source.columns.of_table(table.name):
        if name.column not in present:
            problem = f'has no column "{name.column}", which {setting} names'
            yield Finding("error", subject, problem, f"correct {setting}; names are case-sensitive")
        elif name.column in table.key and name in source.exclude_columns:
            problem = f'key column "{name.column}" cannot be excluded'
            yield Finding("error", subject, problem, "remove it from source.exclude_columns")


def check_values(connection: Connection, source: SourceSettings) -> Iterator[Finding]:
    """Look for values that a missing CHECK would have prevented. Reads the tables that lack one in full."""
    for name in source.tables:
        row = connection.execute(_FACTS_SQL, (False, name.schema, name.table)).fetchone()
        if row is None or not (facts := _Facts(*row)).readable or facts.kind not in "rp":
            continue
        for column in read_tables(connection, [name], source.columns)[name].columns:
            found = _missing_guard(column, facts.checks, connection.info.server_version)
            if found is None:
                continue
            query = f"SELECT EXISTS (SELECT FROM {quoted(name)} WHERE NOT ({found[2]}))"
            if connection.execute(sql.SQL(query)).fetchone() == (True,):
                problem = f'column "{column.name}" holds values that cannot be mirrored: {found[0]}'
                remedy = "change them, or remove the table from source.tables"
                yield Finding("error", f'table "{name}"', problem, remedy)


def _missing_guard(column: SourceColumn, checks: Collection[str], server_version: int) -> tuple[str, str, str] | None:
    """Return what goes wrong without the CHECK that a column lacks, and the name and the condition of the CHECK."""
    constraint = f"cdc_views_{column.attnum}"
    found = guard(column, server_version)
    if found is None or constraint in checks:
        return None
    problem, condition = found
    return problem, constraint, condition.format(column=sql.Identifier(column.name).as_string(None))


def _check_identity(table: SourceTable, holder: _Holder, source: SourceSettings) -> Iterator[Finding]:
    toastable = [column for column in table.columns if column.toastable]
    # For some types, an event does not mark an unchanged value, so that the engine cannot look it up.
    unmarked = [each for each in toastable if not has_placeholder(each)]
    needing = toastable if source.toast == "full" and not table.excluded else unmarked
    listed, identity = _listed(column.name for column in needing), holder.identity
    if table.excluded and needing:
        problem = f'needs replica identity "full" for columns that can be TOASTed: {listed}; but Postgres then refuses '
        problem += f"updates while columns are not published: {_listed(column.name for column in table.excluded)}"
        remedy = f"list {listed} in source.exclude_columns too, or exclude no columns"
        yield Finding("error", f'table "{holder.name}"', problem, remedy)
    elif table.excluded and identity != "default":
        problem = f'replica identity is "{identity}", wanted "default" for a table with columns that are not published'
        yield _identity_finding(holder, problem, DEFAULT_IDENTITY)
    elif needing and identity != "full":
        problem = f'replica identity is "{identity}", wanted "full" for columns that can be TOASTed: {listed}'
        yield _identity_finding(holder, problem, "REPLICA IDENTITY FULL;")
    elif identity in ("nothing", "index"):
        problem = f'replica identity is "{identity}", wanted "default" or "full"'
        yield _identity_finding(holder, problem, DEFAULT_IDENTITY)


def _identity_finding(holder: _Holder, problem: str, wanted: str) -> Finding:
    fix = f"ALTER TABLE {quoted(holder.name)} {wanted}"
    return Finding("error", f'table "{holder.name}"', problem, f'run "{fix.removesuffix(";")}"', fix)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


@dataclass(frozen=True)
class _Holder:
    """A relation that holds rows of a table: the table itself, a partition or an inheriting table."""

    name: TableName
    kind: str
    persistence: str
    identity: str


def _holders(connection: Connection, table: SourceTable) -> list[_Holder]:
    rows = connection.execute(_HOLDERS_SQL, (table.oid,))
    return [
        _Holder(TableName(schema, name), kind, persistence, _IDENTITIES[identity])
        for schema, name, kind, persistence, identity in rows
    ]


def _check_tree(connection: Connection, subject: str, table: SourceTable, source: SourceSettings) -> Iterator[Finding]:
    for holder in _holders(connection, table):
        if holder.name != table.name and holder.kind != "r":
            problem = f'partition "{holder.name}" is {_KINDS.get(holder.kind, "no table")}, whose rows have no events'
            yield Finding("error", subject, problem, "detach it, or do not mirror the table")
        if holder.name != table.name and holder.persistence != "p":
            fix = f"ALTER TABLE {quoted(holder.name)} SET LOGGED"
            yield Finding("error", subject, f'partition "{holder.name}" is not logged', f'run "{fix}"')
    names = [name for name in source.tables if name != table.name]
    below = connection.execute(
        _CAPTURED_BELOW_SQL, (table.oid, [name.schema for name in names], [name.table for name in names])
    )
    for schema, name in below:
        problem = f'has the partition "{schema}.{name}", which is in source.tables too'
        yield Finding("error", subject, problem, "mirror one of them: the publication sends its rows under one name")
    published = {"table": table.oid, "publication": source.publication}
    for schema, name in connection.execute(_PUBLISHED_ABOVE_SQL, published):
        problem = f'is a partition of "{schema}.{name}", which publication "{source.publication}" has, too'
        hint = (
            f'mirror one of them, and take the other out of the publication: rows have the name "{schema}.{name}" in it'
        )
        yield Finding("error", subject, problem, hint)
    for column, type_name in connection.execute(_NESTED_SQL, (table.oid, list(PRINTED_BY_NAME))):
        if column in {each.name for each in table.excluded}:
            continue
        problem = f'column "{column}" holds values of type "{type_name}", {REFUSED[type_name]}'
        yield Finding("error", subject, problem, REFUSED_REMEDY)

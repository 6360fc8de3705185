"""What must hold in the source before the connector starts, and what `check --fix` can do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import sql

from cdc_views.config import Settings, SourceSettings
from cdc_views.errors import RESET, PreflightFailed
from cdc_views.findings import Finding
from cdc_views.names import TableName
from cdc_views.service_schema import SCHEMA
from cdc_views.source.catalog import SourceTable, tables_with_column_list
from cdc_views.source.connection import Connection, connect
from cdc_views.source.publication import FIRST_GENERATED, create_publication, publication_sql, read_publication
from cdc_views.source.service_sql import VERSION
from cdc_views.source.service_tables import (
    SERVICE_TABLES,
    create_service_tables,
    missing_event_triggers,
    missing_service_tables,
    relations_without_truncate_trigger,
    service_schema_version,
    service_tables_sql,
)
from cdc_views.source.slot import LOST, free_slots, free_wal_senders, read_slot
from cdc_views.source.table_checks import DEFAULT_IDENTITY, check_tables

__all__ = ["Finding", "check_source", "fix_source"]

LEAST_SERVER_VERSION: Final = 140000
SERVICE_SUBJECT: Final = "service tables"
PUBLICATION_SUBJECT: Final = "publication"

# Managed services give replication by membership instead of the role attribute.
_MAY_REPLICATE: Final = """
SELECT r.rolsuper OR r.rolreplication OR EXISTS (
    SELECT FROM pg_catalog.pg_roles g WHERE g.rolname IN ('rds_replication', 'rds_superuser', 'cloudsqlsuperuser')
    AND pg_catalog.pg_has_role(r.oid, g.oid, 'member'))
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user"""

_SERVICE_RIGHTS: Final = """
SELECT c.relname::text, needed.what FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'cdc_views'
CROSS JOIN (VALUES ('read', 'SELECT'), ('insert into', 'INSERT'), ('update', 'UPDATE')) AS needed(what, privilege)
WHERE c.relname = ANY(%s::text[] || 'captured'::text) AND (needed.privilege = 'SELECT' OR c.relname = 'heartbeat')
  AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, needed.privilege))
ORDER BY 1, 2"""


def check_source(settings: Settings) -> list[Finding]:
    """Look at everything in the source that a mirror depends on. Raises SourceUnreachable."""
    source = settings.source
    with connect(source.dsn.get_secret_value()) as connection:
        findings = [*_check_server(connection), *_check_role(connection), *check_tables(connection, source)]
        if any(finding.severity == "error" and finding.subject.startswith("server") for finding in findings):
            return findings
        listed = tables_with_column_list(connection, source.tables, source.columns)
        findings += _check_service_tables(connection, source)
        findings += _check_publication(connection, source, listed)
        findings += _check_slot(connection, source)
        return findings


def fix_source(settings: Settings, findings: Sequence[Finding]) -> None:
    """Do what SQL can do about the findings: service tables, triggers, publication, replica identity."""
    source = settings.source
    subjects = {finding.subject for finding in findings if finding.fix}
    with connect(source.dsn.get_secret_value()) as connection:
        try:
            of_tables = [each for each in findings if each.subject not in (SERVICE_SUBJECT, PUBLICATION_SUBJECT)]
            # With REPLICA IDENTITY FULL an UPDATE fails while a column is not published: it goes before the publication
            # leaves one out, and comes after the publication has them all.
            first = [each for each in of_tables if (each.fix or "").endswith(DEFAULT_IDENTITY)]
            for finding in first:
                connection.execute(sql.SQL(finding.fix or ""))
            listed = tables_with_column_list(connection, source.tables, source.columns)
            if SERVICE_SUBJECT in subjects:
                create_service_tables(connection, source.publication, source.tables)
            if PUBLICATION_SUBJECT in subjects:
                create_publication(connection, source.publication, source.tables, listed)
            for finding in of_tables:
                if finding.fix and finding not in first:
                    connection.execute(sql.SQL(finding.fix))
        except psycopg.errors.CheckViolation as error:
            raise PreflightFailed(
                f"the source holds values that cannot be mirrored: {error.diag.message_primary}",
                hint="change them, or leave the table out",
            ) from None
        except psycopg.errors.InsufficientPrivilege as error:
            raise PreflightFailed(
                f"the role may not fix the source: {error.diag.message_primary}",
                hint='let a DBA run what "cdc-views check" prints, or give a role that owns the tables',
            ) from None


def _check_server(connection: Connection) -> Iterator[Finding]:
    version = connection.info.server_version
    if version < LEAST_SERVER_VERSION:
        problem = f"version is {version // 10000}, wanted {LEAST_SERVER_VERSION // 10000} or later"
        yield Finding("error", "server version", problem, "upgrade Postgres")
    if _value(connection, "SELECT pg_catalog.pg_is_in_recovery()"):
        yield Finding("error", "server", "is a standby", "give the dsn of the primary")
    level = _value(connection, "SELECT current_setting('wal_level')")
    if level != "logical":
        yield Finding(
            "error",
            "server setting wal_level",
            f'is "{level}", wanted "logical"',
            "run \"ALTER SYSTEM SET wal_level = 'logical'\" as a superuser and restart Postgres",
        )
    yield from _check_unpinned(connection)
    kept = _value(connection, "SELECT current_setting('max_slot_wal_keep_size')")
    if kept == "-1":
        yield Finding(
            "info",
            "server setting max_slot_wal_keep_size",
            "is unlimited: while the connector is down, WAL grows until the disk is full",
            "set a limit if losing the slot (and making a new snapshot) is better than a full disk",
        )


def _check_unpinned(connection: Connection) -> Iterator[Finding]:
    """Settings that matter and that no session can pin (docs/printing.md)."""
    if _value(connection, "SELECT current_setting('server_encoding')") == "SQL_ASCII":
        problem = 'is "SQL_ASCII", whose bytes are of no known encoding: Debezium replaces those that are not UTF-8'
        yield Finding("error", "database encoding", problem, "move the data to a database of encoding UTF8")
    # Versions before 17 do not know it, so it cannot be an option of the connection.
    limit = _value(connection, "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'")
    if limit not in (None, "0"):
        remedy = f'run "ALTER ROLE {sql.Identifier(connection.info.user).as_string(None)} SET transaction_timeout = 0"'
        problem = f"is {limit} ms, wanted 0: it ends long snapshots, and the decoding of long transactions"
        yield Finding("error", "setting transaction_timeout", problem, remedy)


def _check_role(connection: Connection) -> Iterator[Finding]:
    if _value(connection, _MAY_REPLICATE):
        return
    role = connection.info.user
    yield Finding(
        "error",
        f'role "{role}"',
        "may not replicate",
        f'run "ALTER ROLE {sql.Identifier(role).as_string(None)} REPLICATION" as a superuser',
    )


def _check_service_tables(connection: Connection, source: SourceSettings) -> Iterator[Finding]:
    problems = [f'table "{table}" is missing' for table in missing_service_tables(connection)]
    if not problems and (found := service_schema_version(connection)) != VERSION:
        problems += [f'schema "{SCHEMA}" is marked "{found}", wanted "{VERSION}"']
    unwatched = relations_without_truncate_trigger(connection, source.tables)
    if not problems and not (problems := _missing_rights(connection)):
        problems += [f'no trigger for TRUNCATE on "{relation}"' for relation in unwatched]
        problems += [f'DDL of "{name}" is not recorded' for name in _uncaptured(connection, source)]
    script = service_tables_sql(source.publication, source.tables, connection.info.user, unwatched)
    remedy = '"cdc-views check --fix" makes them; or a DBA runs the SQL of this finding'
    if problems:
        yield Finding("error", SERVICE_SUBJECT, "; ".join(problems), remedy, script)
    elif missing := missing_event_triggers(connection):
        problem = f"no event trigger {_quote_all(missing)}: DDL is only seen by comparing descriptions at each marker"
        yield Finding("warning", SERVICE_SUBJECT, problem, remedy, script)


def _uncaptured(connection: Connection, source: SourceSettings) -> list[str]:
    # By oid: a table that was dropped and made again is another one.
    rows = connection.execute(
        "SELECT n.nspname::text, t.relname::text FROM cdc_views.captured c"
        " JOIN pg_catalog.pg_class t ON t.oid = c.relation JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace"
        " WHERE c.publication = %s AND (c.schema_name, c.table_name) = (n.nspname, t.relname)",
        (source.publication,),
    ).fetchall()
    return [str(table) for table in source.tables if (table.schema, table.table) not in rows]


def _missing_rights(connection: Connection) -> list[str]:
    rows = connection.execute(_SERVICE_RIGHTS, ([table.table for table in SERVICE_TABLES],))
    return [f'the role may not {what} "cdc_views.{table}"' for table, what in rows]


def _check_publication(
    connection: Connection, source: SourceSettings, listed: Mapping[TableName, SourceTable]
) -> Iterator[Finding]:
    publication = read_publication(connection, source.publication)
    problems = []
    if publication is None:
        problems.append(f'publication "{source.publication}" does not exist')
    else:
        wanted = {*source.tables, *SERVICE_TABLES}
        problems += [f'lacks "{table}"' for table in sorted(wanted - publication.tables)]
        problems += [f'has "{table}", which is not mirrored' for table in sorted(publication.tables - wanted)]
        problems += [f'publishes only part of "{table}"' for table in sorted(publication.filtered)]
        problems += [f'publishes other columns of "{table}" than those that are mirrored'
                     for table in sorted(wanted & publication.tables)
                     if publication.columns.get(table) != _columns_of(table, listed)]  # fmt: skip
        if not publication.complete:
            problems.append("does not publish inserts, updates and deletes")
        if not publication.via_root:
            problems.append("publishes partitions under their own names")
        if not publication.generated and connection.info.server_version >= FIRST_GENERATED:
            problems.append("does not publish stored generated columns")
    if problems:
        yield Finding(
            "error",
            PUBLICATION_SUBJECT,
            "; ".join(problems),
            '"cdc-views check --fix" sets it; or the owner of the tables runs the SQL of this finding',
            publication_sql(
                source.publication,
                source.tables,
                connection.info.server_version,
                exists=publication is not None,
                listed=listed,
            ),
        )


def _columns_of(table: TableName, listed: Mapping[TableName, SourceTable]) -> frozenset[str] | None:
    return frozenset(column.name for column in listed[table].columns) if table in listed else None


def _check_slot(connection: Connection, source: SourceSettings) -> Iterator[Finding]:
    slot = read_slot(connection, source.slot)
    subject = f'replication slot "{source.slot}"'
    if slot is None:
        if free_slots(connection) < 1:
            yield Finding("error", "replication slots", "none is free", "drop one, or raise max_replication_slots")
        if free_wal_senders(connection) < 1:
            yield Finding("error", "WAL senders", "none is free", "raise max_wal_senders")
        return
    if slot.lost:
        yield Finding("error", subject, LOST, RESET)
    if slot.plugin != "pgoutput" or slot.database != connection.info.dbname:
        problem = f'is of plugin "{slot.plugin}" in database "{slot.database}", wanted "pgoutput" in this one'
        yield Finding("error", subject, problem, "give another name in source.slot")


def _quote_all(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _value(connection: Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(query, parameters or None).fetchone()
    return row[0] if row else None

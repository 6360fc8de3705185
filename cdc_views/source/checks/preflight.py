"""Checks what must hold in the source before the connector starts. Findings that SQL can fix have the SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from psycopg import sql

from cdc_views.base.names import TableName
from cdc_views.base.service_schema import SCHEMA
from cdc_views.config import Settings, SourceSettings
from cdc_views.errors import RESET
from cdc_views.findings import FIX_OR_PRINT, PRINT, Finding
from cdc_views.source.catalog import SourceTable, tables_with_column_list
from cdc_views.source.checks.table_checks import DEFAULT_IDENTITY, check_tables, check_values
from cdc_views.source.connection import Connection, connect
from cdc_views.source.publication import FIRST_GENERATED, publication_sql, read_publication
from cdc_views.source.service.service_sql import VERSION
from cdc_views.source.service.service_tables import (
    SERVICE_TABLES,
    block,
    event_triggers_sql,
    grants_sql,
    missing_event_triggers,
    missing_service_tables,
    relations_without_truncate_trigger,
    service_schema_sql,
    service_schema_version,
    truncate_trigger_sql,
)
from cdc_views.source.slot import free_slots, free_wal_senders, read_slot

LEAST_SERVER_VERSION: Final = 140000
SERVICE_SUBJECT: Final = "service tables"
PUBLICATION_SUBJECT: Final = "publication"

# Managed services grant replication through membership instead of the role attribute.
MAY_REPLICATE: Final = """
SELECT r.rolsuper OR r.rolreplication OR EXISTS (
    SELECT FROM pg_catalog.pg_roles g WHERE g.rolname IN ('rds_replication', 'rds_superuser', 'cloudsqlsuperuser')
    AND pg_catalog.pg_has_role(r.oid, g.oid, 'member'))
FROM pg_catalog.pg_roles r WHERE r.rolname = {role}"""

# Every role may call these by default; some servers revoke that.
NEEDED_FUNCTIONS: Final = (
    "pg_catalog.pg_control_system()", "pg_catalog.pg_control_checkpoint()", "pg_catalog.pg_control_init()",
    "pg_catalog.pg_is_in_recovery()", "pg_catalog.pg_current_wal_lsn()", "pg_catalog.pg_current_wal_insert_lsn()",
    "pg_catalog.pg_walfile_name(pg_lsn)", "pg_catalog.pg_drop_replication_slot(name)",
    "pg_catalog.pg_terminate_backend(integer, bigint)",
)  # fmt: skip
# The functions of the service schema that the engine calls.
CALLED: Final = ("describe", "record", "used_types")

_UNLESS_EXISTS: Final = """\
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = {name}) THEN
        {create}
    END IF;
"""

_SERVICE_RIGHTS: Final = """
SELECT c.relname::text, needed.what FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'cdc_views'
CROSS JOIN (VALUES ('read', 'SELECT'), ('insert into', 'INSERT'), ('update', 'UPDATE')) AS needed(what, privilege)
WHERE c.relname = ANY(%s::text[] || 'captured'::text) AND (needed.privilege = 'SELECT' OR c.relname = 'heartbeat')
  AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, needed.privilege))
UNION ALL
SELECT p.proname::text, 'call' FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace AND n.nspname = 'cdc_views'
WHERE p.proname = ANY(%s) AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE'))
ORDER BY 1, 2"""


def check_source(settings: Settings, held: Collection[TableName] = (), *, values: bool = False) -> list[Finding]:
    """Check everything in the source that a mirror depends on. Raises SourceUnreachable.

    Tables in `held` are stopped, and may be in any state. With `values`, tables that lack a CHECK are read in full, to
    find values that cannot be mirrored.
    """
    tables = [table for table in settings.source.tables if table not in held]
    source = settings.source.model_copy(update={"tables": tables})
    with connect(source.dsn.get_secret_value()) as connection:
        server = list(_check_server(connection))
        findings = [*server, *_check_unpinned(connection), *_check_role(connection), *check_tables(connection, source)]
        if any(finding.severity == "error" for finding in server):
            return findings
        listed = tables_with_column_list(connection, source.tables, source.columns)
        findings += _check_service_tables(connection, source)
        findings += _check_publication(connection, source, listed, held)
        findings += _check_slot(connection, source)
        return [*findings, *(check_values(connection, source) if values else ())]


def in_order(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that have SQL, in the order in which the SQL must run.

    The publication needs the service tables. With REPLICA IDENTITY FULL, an UPDATE fails while a column is not
    published. So FULL is removed before the publication omits a column, and set after the publication has all columns.
    """

    def step(finding: Finding) -> int:
        if finding.fix is not None and finding.fix.endswith(DEFAULT_IDENTITY):
            return 0
        return {SERVICE_SUBJECT: 1, PUBLICATION_SUBJECT: 2}.get(finding.subject, 3)

    return sorted((finding for finding in findings if finding.fix is not None), key=step)


def _check_server(connection: Connection) -> Iterator[Finding]:
    version = connection.info.server_version
    if version < LEAST_SERVER_VERSION:
        problem = f"version is {version // 10000}, wanted {LEAST_SERVER_VERSION // 10000} or later"
        yield Finding("error", "server version", problem, "upgrade Postgres")
    if _value(connection, "SELECT setting = 'on' FROM pg_catalog.pg_settings WHERE name = 'in_hot_standby'"):
        yield Finding("error", "server", "is a standby", "use the dsn of the primary")
    level = _value(connection, "SELECT current_setting('wal_level')")
    if level != "logical":
        yield Finding(
            "error",
            "server setting wal_level",
            f'is "{level}", wanted "logical"',
            "run \"ALTER SYSTEM SET wal_level = 'logical'\" as a superuser and restart Postgres",
        )
    kept = _value(connection, "SELECT current_setting('max_slot_wal_keep_size')")
    if kept == "-1":
        yield Finding(
            "info",
            "server setting max_slot_wal_keep_size",
            "is unlimited: while the connector is down, WAL grows until the disk is full",
            "set a limit if losing the slot (and taking a new snapshot) is better than a full disk",
        )
    # Versions before 18 lack this setting.
    idle = _value(connection, "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'idle_replication_slot_timeout'")
    if idle not in (None, "0"):
        yield Finding(
            "info",
            "server setting idle_replication_slot_timeout",
            f"is {idle} s: while the connector is down for longer, the server invalidates its slot",
            "set it to 0, unless losing the slot (and taking a new snapshot) is better than WAL that is kept for it",
        )


def _check_unpinned(connection: Connection) -> Iterator[Finding]:
    """Check the settings that matter and that no session can pin (docs/printing.md)."""
    if _value(connection, "SELECT current_setting('server_encoding')") == "SQL_ASCII":
        problem = 'is "SQL_ASCII", whose bytes have no known encoding: Debezium replaces those that are not UTF-8'
        yield Finding("error", "database encoding", problem, "move the data to a database of encoding UTF8")
    # Versions before 17 lack this setting, so it cannot be an option of the connection.
    limit = _value(connection, "SELECT setting FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'")
    if limit not in (None, "0"):
        remedy = f'run "ALTER ROLE {sql.Identifier(connection.info.user).as_string(None)} SET transaction_timeout = 0"'
        problem = f"is {limit} ms, wanted 0: it ends long snapshots, and the decoding of long transactions"
        yield Finding("error", "setting transaction_timeout", problem, remedy)


def _check_role(connection: Connection) -> Iterator[Finding]:
    subject = f'role "{connection.info.user}"'
    if not _value(connection, MAY_REPLICATE.format(role="current_user")):
        fix = f"ALTER ROLE {_role(connection)} REPLICATION;"
        yield Finding("error", subject, "may not replicate", f"{_run(fix)} as a superuser", fix, by_dba=True)
    for function in NEEDED_FUNCTIONS:
        if not _value(connection, "SELECT has_function_privilege(%s, 'EXECUTE')", function):
            fix = f"GRANT EXECUTE ON FUNCTION {function} TO {_role(connection)};"
            yield Finding("error", subject, f"may not call {function}", f"{_run(fix)} as a superuser", fix, by_dba=True)


def _check_service_tables(connection: Connection, source: SourceSettings) -> Iterator[Finding]:
    problems = [f'table "{table}" is missing' for table in missing_service_tables(connection)]
    if not problems and (found := service_schema_version(connection)) != VERSION:
        problems += [f'schema "{SCHEMA}" is marked "{found}", wanted "{VERSION}"']
    is_current = not problems
    rights = [] if problems else _missing_rights(connection)
    if not problems and not rights:
        problems = [f'DDL of "{name}" is not recorded' for name in _uncaptured(connection, source)]
    if problems:
        fix = service_schema_sql(source.publication, source.tables, is_current=is_current)
        yield Finding("error", SERVICE_SUBJECT, "; ".join(problems), FIX_OR_PRINT, fix)
    # These come before the event triggers, which would record them.
    for relation in relations_without_truncate_trigger(connection, source.tables):
        problem = f'no trigger for TRUNCATE on "{relation}"'
        yield Finding("error", SERVICE_SUBJECT, problem, FIX_OR_PRINT, truncate_trigger_sql(relation))
    if missing := missing_event_triggers(connection):
        problem = f"no event trigger {_quote_all(missing)}: DDL is only noticed at the next marker"
        yield Finding("warning", SERVICE_SUBJECT, problem, FIX_OR_PRINT, event_triggers_sql(missing))
    if rights:
        fix = grants_sql(connection.info.user, source.tables)
        yield Finding("error", SERVICE_SUBJECT, "; ".join(rights), PRINT, fix, by_dba=True)


def _uncaptured(connection: Connection, source: SourceSettings) -> list[str]:
    # Compare by oid: a table that was dropped and recreated is another table.
    rows = connection.execute(
        "SELECT n.nspname::text, t.relname::text FROM cdc_views.captured c"
        " JOIN pg_catalog.pg_class t ON t.oid = c.relation JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace"
        " WHERE c.publication = %s AND (c.schema_name, c.table_name) = (n.nspname, t.relname)",
        (source.publication,),
    ).fetchall()
    return [str(table) for table in source.tables if (table.schema, table.table) not in rows]


def _missing_rights(connection: Connection) -> list[str]:
    rows = connection.execute(_SERVICE_RIGHTS, ([table.table for table in SERVICE_TABLES], list(CALLED)))
    return [f'the role may not {what} "cdc_views.{name}"' for name, what in rows]


def _check_publication(
    connection: Connection,
    source: SourceSettings,
    listed: Mapping[TableName, SourceTable],
    held: Collection[TableName],
) -> Iterator[Finding]:
    publication = read_publication(connection, source.publication)
    problems: list[str] = []
    of_options: list[str] = []
    if publication is None:
        problems.append(f'publication "{source.publication}" does not exist')
    else:
        wanted = {*source.tables, *SERVICE_TABLES}
        others = set() if held else publication.tables - wanted  # a stopped table may have another name now
        problems += [f'lacks "{table}"' for table in sorted(wanted - publication.tables)]
        problems += [f'has "{table}", which is not mirrored' for table in sorted(others)]
        problems += [f'publishes only part of "{table}"' for table in sorted(publication.filtered)]
        problems += [f'publishes other columns of "{table}" than the mirrored ones'
                     for table in sorted(wanted & publication.tables)
                     if publication.columns.get(table) != _columns_of(table, listed)]  # fmt: skip
        if not publication.complete:
            of_options.append("does not publish inserts, updates and deletes")
        if not publication.via_root:
            of_options.append("publishes partitions under their own names")
        if not publication.generated and connection.info.server_version >= FIRST_GENERATED:
            of_options.append("does not publish stored generated columns")
    if problems or of_options:
        version, exists = connection.info.server_version, publication is not None
        fix = publication_sql(
            source.publication, source.tables, version, exists=exists, has_options=not of_options, listed=listed
        )
        if not exists:
            name = sql.Literal(source.publication).as_string(None)
            fix = block(_UNLESS_EXISTS.format(name=name, create=fix.strip()))
        yield Finding("error", PUBLICATION_SUBJECT, "; ".join([*problems, *of_options]), FIX_OR_PRINT, fix)


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
        yield Finding("error", subject, slot.problem, RESET)
    if slot.plugin != "pgoutput" or slot.database != connection.info.dbname:
        problem = f'has plugin "{slot.plugin}" and database "{slot.database}", wanted "pgoutput" and this database'
        yield Finding("error", subject, problem, "set another name as source.slot")


def _role(connection: Connection) -> str:
    return sql.Identifier(connection.info.user).as_string(None)


def _run(fix: str) -> str:
    return f'run "{fix.removesuffix(";")}"'


def _quote_all(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _value(connection: Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(query, parameters or None).fetchone()
    return row[0] if row else None

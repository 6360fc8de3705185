"""`check --print-sql`: everything that a role without superuser rights needs in the source, as one script for psql.

A superuser runs it. In managed services without superusers, the owner of the tables runs it, with CREATE on the
database. It can be run again. It does not recreate what exists, since that would disturb a running engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from psycopg import sql

from cdc_views.config import Settings, SourceSettings
from cdc_views.findings import Finding
from cdc_views.source.catalog import read_tables
from cdc_views.source.checks.fixes import LIMITS
from cdc_views.source.checks.preflight import MAY_REPLICATE, NEEDED_FUNCTIONS, SERVICE_SUBJECT, check_source, in_order
from cdc_views.source.connection import Connection, connect
from cdc_views.source.service.service_tables import block, grants_sql

_HEADER: Final = """\
-- What cdc_views needs in database {database} for role {role}, which need not be a superuser or the owner.
-- Run it with psql, as a superuser or as the owner of the tables with CREATE on the database. It can be run again.
-- Whoever runs it owns its objects. A statement that does not get its lock in time fails: then run the script again.
"""

# A function or operator that somebody else has created in `public` must not run with the rights of an administrator.
_SESSION: Final = "SET client_min_messages = warning;\nSET search_path = pg_catalog;\n"
_PASSWORD: Final = """
-- The role. CREATE ROLE sets no password: set one with \\password, or let the role log in by other means.
"""
# Conditional, since the role may exist, and managed services grant replication through membership.
_ROLE: Final = """\
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {name}) THEN
        CREATE ROLE {role} LOGIN;
    END IF;
    IF NOT ({may_replicate}) THEN
        IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'rds_replication') THEN
            GRANT rds_replication TO {role};
        ELSE
            ALTER ROLE {role} REPLICATION;
        END IF;
    END IF;
    IF NOT has_database_privilege({name}, {database_name}, 'CONNECT') THEN
        GRANT CONNECT ON DATABASE {database} TO {role};
    END IF;
{more}"""
_FUNCTION: Final = """\
    IF NOT has_function_privilege({name}, {function_name}, 'EXECUTE') THEN
        GRANT EXECUTE ON FUNCTION {function} TO {role};
    END IF;
"""
_ROW_SECURITY: Final = """\
    IF NOT (SELECT rolsuper OR rolbypassrls FROM pg_catalog.pg_roles WHERE rolname = {name}) THEN
        ALTER ROLE {role} BYPASSRLS;  -- row security hides rows of captured tables
    END IF;
"""
_HAS_ROW_SECURITY: Final = """
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relrowsecurity AND (n.nspname, c.relname) IN (SELECT * FROM unnest(%s::text[], %s::text[])))"""


def dba_script(settings: Settings, role: str | None = None) -> str:
    """Return the script. `role` is the role of the connector and the engine; the default is the role of source.dsn.

    Raises SourceUnreachable, and UnknownTable if a table does not exist.
    """
    source = settings.source
    with connect(source.dsn.get_secret_value()) as connection:
        read_tables(connection, source.tables)
        is_own = role in (None, connection.info.user)
        role = role or connection.info.user
        header, rights = _header(connection, role), _role(connection, role, source)
    # The rights that the connected role lacks say nothing about another role. That one is granted all rights in any
    # case.
    findings = [finding for finding in check_source(settings) if is_own or not finding.by_dba]
    grants = f"\n-- Rights of the role.\n{grants_sql(role, source.tables)}"
    fixes = [finding for finding in in_order(findings) if not finding.by_dba]
    service = [finding for finding in fixes if finding.subject == SERVICE_SUBJECT]
    rest = [finding for finding in fixes if finding.subject != SERVICE_SUBJECT]
    return "".join(
        [header, *_not_done(findings), _SESSION, LIMITS, rights, *map(_fix, service), grants, *map(_fix, rest)]
    )


def _header(connection: Connection, role: str) -> str:
    database = sql.Identifier(connection.info.dbname).as_string(None)
    return _HEADER.format(database=_comment(database), role=_comment(sql.Identifier(role).as_string(None)))


def _not_done(findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.severity == "error" and finding.fix is None:
            text = f"{finding.subject}: {finding.problem}: {finding.remedy}"
            yield f"-- NOT DONE by this script: {_comment(text)}\n"


def _role(connection: Connection, role: str, source: SourceSettings) -> str:
    names: dict[str, sql.Composable] = {"role": sql.Identifier(role), "name": sql.Literal(role)}
    more = sql.Composed([
        sql.SQL(_FUNCTION).format(function=sql.SQL(function), function_name=sql.Literal(function), **names)
        for function in NEEDED_FUNCTIONS
    ])  # fmt: skip
    schemas, tables = [table.schema for table in source.tables], [table.table for table in source.tables]
    if connection.execute(_HAS_ROW_SECURITY, (schemas, tables)).fetchone() == (True,):
        more += sql.SQL(_ROW_SECURITY).format(**names)
    names |= {"database": sql.Identifier(connection.info.dbname), "database_name": sql.Literal(connection.info.dbname)}
    may_replicate = sql.SQL(MAY_REPLICATE).format(role=names["name"])
    body = sql.SQL(_ROLE).format(may_replicate=may_replicate, more=more, **names)
    return _PASSWORD + block(body.as_string(None))


def script_part(finding: Finding) -> str:
    """Return the SQL of a finding below a comment that names it."""
    return f"-- {_comment(f'{finding.subject}: {finding.problem}')}\n{(finding.fix or '').strip()}\n"


def _fix(finding: Finding) -> str:
    return f"\n{script_part(finding)}"


def _comment(text: str) -> str:
    """Return the text on one line, since a name can contain line breaks."""
    return " ".join(text.splitlines())

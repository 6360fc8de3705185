"""Removes from the source what a project created there: `cdc-views destroy`.

A project is identified by its publication. The service schema with its functions and event triggers belongs to all
projects of the database; a table's triggers, checks and replica identity belong to all projects that capture the table.
These stay until the last such project is removed. Everything except the slots is removed in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

import psycopg
from psycopg import sql

from cdc_views.base.names import TableName
from cdc_views.base.service_schema import SCHEMA
from cdc_views.errors import PreflightFailed
from cdc_views.source.checks.fixes import LOCK_TIMEOUT_S
from cdc_views.source.connection import Connection
from cdc_views.source.service.service_tables import identifier

# The captured tables with their partitions and inheriting tables.
_OURS: Final = """
WITH RECURSIVE ours(relation) AS (
    SELECT c.relation FROM cdc_views.captured c WHERE c.publication = %(publication)s
    UNION SELECT i.inhrelid FROM ours JOIN pg_catalog.pg_inherits i ON i.inhparent = ours.relation),
others(relation) AS (
    SELECT c.relation FROM cdc_views.captured c WHERE c.publication <> %(publication)s
    UNION SELECT i.inhrelid FROM others JOIN pg_catalog.pg_inherits i ON i.inhparent = others.relation)
SELECT t.oid, n.nspname::text, t.relname::text
FROM ours JOIN pg_catalog.pg_class t ON t.oid = ours.relation
JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
WHERE ours.relation NOT IN (SELECT relation FROM others)
ORDER BY 2, 3"""

# A project of an older version can have a publication without rows in `captured`. A publication FOR ALL TABLES is not
# one of ours.
_OTHERS: Final = """
SELECT FROM cdc_views.captured WHERE publication <> %(name)s
UNION ALL
SELECT FROM pg_catalog.pg_publication p JOIN pg_catalog.pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_catalog.pg_class c ON c.oid = r.prrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname <> %(name)s AND n.nspname = 'cdc_views'"""

_TRIGGERS: Final = """
SELECT g.tgname::text FROM pg_catalog.pg_trigger g JOIN pg_catalog.pg_proc f ON f.oid = g.tgfoid
JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace
WHERE g.tgrelid = %s AND n.nspname = 'cdc_views' AND g.tgparentid = 0 ORDER BY 1"""

_CHECKS: Final = r"""
SELECT conname::text FROM pg_catalog.pg_constraint
WHERE conrelid = %s AND contype = 'c' AND conname ~ '^cdc_views_[0-9]+$' AND coninhcount = 0 ORDER BY 1"""

_EVENT_TRIGGERS: Final = """
SELECT e.evtname::text FROM pg_catalog.pg_event_trigger e JOIN pg_catalog.pg_proc f ON f.oid = e.evtfoid
JOIN pg_catalog.pg_namespace n ON n.oid = f.pronamespace WHERE n.nspname = 'cdc_views' ORDER BY 1"""

# The former index of a table may no longer exist.
_FORMER_IDENTITY: Final = """
SELECT f.identity, i.relname::text FROM cdc_views.former_identities f JOIN pg_catalog.pg_class t ON t.oid = f.relation
LEFT JOIN pg_catalog.pg_index x ON x.indexrelid = f.index_relation AND x.indrelid = f.relation
LEFT JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
WHERE f.relation = %s AND t.relreplident = 'f' AND f.identity <> 'f'"""

# Schemas of older versions, which did not separate projects, lack the column.
_OWN_ROWS: Final = "DELETE FROM cdc_views.{table} AS own WHERE to_jsonb(own) ->> 'publication' = %s"

_HAS_FORMER: Final = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'cdc_views' AND tablename = %(name)s"

_LIMITS: Final = "SET LOCAL lock_timeout = {0}; SET LOCAL statement_timeout = {0}"

_IDENTITIES: Final = {"d": "DEFAULT", "n": "NOTHING", "f": "FULL"}


@dataclass(frozen=True)
class Removal:
    """Something in the source that was removed; or kept, for the reason in `kept_since`."""

    what: str
    kept_since: str | None = None

    def __str__(self) -> str:
        return f"removed {self.what}" if self.kept_since is None else f"kept: {self.what}, since {self.kept_since}"


def remove_from_source(connection: Connection, publication: str, slots: Sequence[str]) -> list[Removal]:
    """Remove the project's objects and rows, including the marker rows of `slots`. Return what was removed or kept.

    The slots themselves are not touched (slot.py). Raises PreflightFailed if the role lacks a right, or if other
    sessions use the tables for long.
    """
    try:
        with connection.transaction():
            return list(_removed(connection, publication, slots))
    except (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected):
        raise PreflightFailed(
            f"the captured tables were not locked within {LOCK_TIMEOUT_S} s: other sessions use them",
            hint="nothing was removed from the source; try again after long transactions have ended",
        ) from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise PreflightFailed(
            f"the role may not remove this from the source: {error.diag.message_primary}",
            hint="use a role that owns the tables and the schema cdc_views; nothing was removed from the source",
        ) from None


def _removed(connection: Connection, publication: str, slots: Sequence[str]) -> Iterator[Removal]:
    if _exists(connection, "SELECT FROM pg_catalog.pg_namespace WHERE nspname = %(name)s", SCHEMA):
        yield from _remove_service(connection, publication, slots)
    if _exists(connection, "SELECT FROM pg_catalog.pg_publication WHERE pubname = %(name)s", publication):
        connection.execute(sql.SQL("DROP PUBLICATION {}").format(sql.Identifier(publication)))
        yield Removal(f'publication "{publication}"')


def _remove_service(connection: Connection, publication: str, slots: Sequence[str]) -> Iterator[Removal]:
    """Remove triggers, checks and rows, and also the schema if no other project is left."""
    tables = connection.execute(_OURS, {"publication": publication}).fetchall()
    _lock(connection, [TableName(schema, table) for _, schema, table in tables])
    is_last = not _exists(connection, _OTHERS, publication)
    if is_last:  # first, so that they do not record the statements that follow
        for (name,) in connection.execute(_EVENT_TRIGGERS).fetchall():
            connection.execute(sql.SQL("DROP EVENT TRIGGER {}").format(sql.Identifier(name)))
            yield Removal(f'event trigger "{name}"')
    connection.execute("DELETE FROM cdc_views.captured WHERE publication = %s", (publication,))
    for oid, schema, table in tables:
        yield from _remove_from_table(connection, oid, TableName(schema, table))
    if is_last:
        connection.execute("DROP SCHEMA cdc_views CASCADE")
        yield Removal('schema "cdc_views"')
        return
    markers = [f"marker {slot}" for slot in slots]
    connection.execute("DELETE FROM cdc_views.heartbeat WHERE id = ANY(%s)", (markers,))
    for service in ("ddl", "truncates"):
        connection.execute(sql.SQL(_OWN_ROWS).format(table=sql.Identifier(service)), (publication,))
    yield Removal('rows of this project in schema "cdc_views", which other projects use')


def _lock(connection: Connection, tables: Sequence[TableName]) -> None:
    """Lock all tables at once: however many there are, an application waits no longer than one lock may take."""
    connection.execute(sql.SQL(_LIMITS).format(sql.Literal(f"{LOCK_TIMEOUT_S}s")))
    if tables:
        names = sql.SQL(", ").join(sql.SQL("ONLY {}").format(identifier(table)) for table in tables)
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(names))
    connection.execute("SET LOCAL statement_timeout = 0")


def _remove_from_table(connection: Connection, oid: int, table: TableName) -> Iterator[Removal]:
    for (trigger,) in connection.execute(_TRIGGERS, (oid,)).fetchall():
        statement = sql.SQL("DROP TRIGGER {} ON {}").format(sql.Identifier(trigger), identifier(table))
        connection.execute(statement)
        yield Removal(f'trigger "{trigger}" on "{table}"')
    for (check,) in connection.execute(_CHECKS, (oid,)).fetchall():
        statement = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}").format(identifier(table), sql.Identifier(check))
        connection.execute(statement)
        yield Removal(f'check constraint "{check}" on "{table}"')
    yield from _restore_identity(connection, oid, table)


def _restore_identity(connection: Connection, oid: int, table: TableName) -> Iterator[Removal]:
    if not _exists(connection, _HAS_FORMER, "former_identities"):
        yield Removal(f'replica identity of "{table}"', "its former value was not recorded")
        return
    former = connection.execute(_FORMER_IDENTITY, (oid,)).fetchone()
    connection.execute("DELETE FROM cdc_views.former_identities WHERE relation = %s", (oid,))
    if former is None:
        return
    identity, index = former
    if identity == "i" and index is None:
        yield Removal(f'replica identity of "{table}"', "its former index is gone")
        return
    using = sql.SQL("USING INDEX {}").format(sql.Identifier(index or ""))
    value = using if identity == "i" else sql.SQL(_IDENTITIES[identity]).format()
    connection.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY {}").format(identifier(table), value))
    yield Removal(f'replica identity FULL of "{table}", which is {value.as_string(None)} again')


def _exists(connection: Connection, query: LiteralString, name: str) -> bool:
    row = connection.execute(f"SELECT EXISTS ({query})", {"name": name}).fetchone()
    return row is not None and bool(row[0])

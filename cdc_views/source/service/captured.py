"""Reads the captured set of a project from the source.

Describing a table takes milliseconds, and every marker needs a description of all tables. So this first reads the
versions (xmin) of all catalog rows that a description depends on, which takes a fraction of that time. While the
versions are the same, so is the description.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cdc_views.base.captured import CapturedSet
from cdc_views.base.names import TableName
from cdc_views.base.service_schema import SCHEMA, SERVICE_TABLES
from cdc_views.source.connection import Connection
from cdc_views.source.service.service_sql import EVENT_TRIGGERS

_DESCRIBE_SQL: Final = """
SELECT (SELECT jsonb_object_agg(e.evtname, concat(e.xmin, ' ', p.xmin))
        FROM pg_catalog.pg_event_trigger e JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid
        WHERE e.evtenabled = 'A' AND e.evtname = ANY(%(event_triggers)s)),
       (SELECT jsonb_agg(jsonb_build_array(c.schema_name, c.table_name,
                                           cdc_views.describe(c.publication, c.relation)))
        FROM cdc_views.captured c WHERE c.publication = %(publication)s),
       ARRAY(SELECT DISTINCT u.type::bigint FROM cdc_views.captured c
             CROSS JOIN LATERAL cdc_views.used_types(c.relation) u WHERE c.publication = %(publication)s)"""

# `types` are those of the last description. Which types are used changes only with a row of pg_attribute or pg_type.
_VERSIONS_SQL: Final = """
WITH RECURSIVE root AS MATERIALIZED (
    SELECT c.relation, c.xmin FROM cdc_views.captured c WHERE c.publication = %(publication)s
    UNION ALL
    SELECT s.oid, s.xmin FROM pg_catalog.pg_class s
    WHERE s.relnamespace = %(schema)s::regnamespace AND s.relname = ANY(%(service_tables)s)),
tree(relation) AS (
    SELECT relation FROM root
    UNION
    SELECT i.inhrelid FROM tree JOIN pg_catalog.pg_inherits i ON i.inhparent = tree.relation),
above(relation) AS (
    SELECT t.relid FROM root CROSS JOIN LATERAL pg_catalog.pg_partition_ancestors(root.relation) t),
relation AS MATERIALIZED (
    SELECT r.oid, r.relnamespace, r.xmin FROM pg_catalog.pg_class r
    WHERE r.oid = ANY(ARRAY(SELECT relation FROM tree))),
used AS MATERIALIZED (
    SELECT t.oid, t.typrelid, t.xmin FROM pg_catalog.pg_type t WHERE t.oid = ANY(%(types)s::oid[])),
truncating AS MATERIALIZED (
    SELECT g.oid, g.tgfoid, g.xmin FROM pg_catalog.pg_trigger g
    WHERE g.tgrelid = ANY(ARRAY(SELECT oid FROM relation)) AND g.tgname = 'cdc_views_truncate'),
version(kind, id, number, xmin) AS (
    SELECT 1, relation, 0, xmin FROM root
    UNION ALL SELECT 2, oid, 0, xmin FROM relation
    UNION ALL SELECT 3, n.oid, 0, n.xmin FROM pg_catalog.pg_namespace n
              WHERE n.oid IN (SELECT relnamespace FROM relation)
    UNION ALL SELECT 4, i.inhparent, i.inhrelid::bigint, i.xmin FROM pg_catalog.pg_inherits i
              WHERE i.inhparent = ANY(ARRAY(SELECT oid FROM relation UNION ALL SELECT relation FROM above))
    UNION ALL SELECT 5, a.attrelid, a.attnum, a.xmin FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = ANY(ARRAY(SELECT oid FROM relation UNION ALL SELECT typrelid FROM used))
              AND a.attnum > 0
    UNION ALL SELECT 6, oid, 0, xmin FROM truncating
    UNION ALL SELECT 7, k.oid, 0, k.xmin FROM pg_catalog.pg_constraint k
              WHERE k.conrelid = ANY(ARRAY(SELECT relation FROM root)) AND k.contype IN ('c', 'p')
    UNION ALL SELECT 8, x.indexrelid, 0, x.xmin FROM pg_catalog.pg_index x
              WHERE x.indrelid = ANY(ARRAY(SELECT oid FROM relation))
    UNION ALL SELECT 9, p.oid, 0, p.xmin FROM pg_catalog.pg_publication p WHERE p.pubname = %(publication)s
    UNION ALL SELECT 10, m.oid, 0, m.xmin FROM pg_catalog.pg_publication_rel m
              WHERE m.prpubid = (SELECT p.oid FROM pg_catalog.pg_publication p WHERE p.pubname = %(publication)s)
    UNION ALL SELECT 11, oid, 0, xmin FROM used
    UNION ALL SELECT 12, e.oid, 0, e.xmin FROM pg_catalog.pg_enum e WHERE e.enumtypid = ANY(%(types)s::oid[])
    UNION ALL SELECT 13, e.oid, ascii(e.evtenabled::text), e.xmin FROM pg_catalog.pg_event_trigger e
              WHERE e.evtname = ANY(%(event_triggers)s)
    UNION ALL SELECT 14, f.oid, 0, f.xmin FROM pg_catalog.pg_proc f
              WHERE f.oid = ANY(ARRAY(SELECT evtfoid FROM pg_catalog.pg_event_trigger
                                      WHERE evtname = ANY(%(event_triggers)s)
                                      UNION ALL SELECT tgfoid FROM truncating))
    {schemas})
SELECT md5(string_agg(concat_ws(' ', kind, id, number, xmin), ',' ORDER BY kind, id, number)) FROM version"""
_FIRST_SCHEMAS: Final = 150000  # the server version since which a publication may have schemas
_SCHEMAS_SQL: Final = """UNION ALL SELECT 15, s.oid, 0, s.xmin FROM pg_catalog.pg_publication_namespace s
              WHERE s.pnpubid = (SELECT p.oid FROM pg_catalog.pg_publication p WHERE p.pubname = %(publication)s)"""


class CapturedReader:
    """Describes the captured tables of one project, over one connection."""

    def __init__(self, connection: Connection, publication: str, tables: Iterable[TableName]) -> None:
        self._connection = connection
        self._tables = tuple(tables)
        self._parameters = {
            "event_triggers": list(EVENT_TRIGGERS),
            "publication": publication,
            "schema": SCHEMA,
            "service_tables": [name.table for name in SERVICE_TABLES],
            "types": list[int](),
        }
        has_schemas = connection.info.server_version >= _FIRST_SCHEMAS
        self._versions_sql = _VERSIONS_SQL.replace("{schemas}", _SCHEMAS_SQL if has_schemas else "")
        self._known: tuple[str, CapturedSet] | None = None

    def read(self) -> CapturedSet:
        """Return the captured tables of now; `event_triggers` is empty unless all of ours are ENABLE ALWAYS."""
        versions = self._versions()
        if self._known is not None and self._known[0] == versions:
            return self._known[1]
        before = self._describe()
        versions, after = self._versions(), self._describe()  # with the types that the first description found
        self._known = (versions, after) if after == before else None  # unequal: something is changing now
        return after

    def _versions(self) -> str:
        row: Any = self._connection.execute(self._versions_sql.encode(), self._parameters).fetchone()
        return str(row[0])

    def _describe(self) -> CapturedSet:
        row: Any = self._connection.execute(_DESCRIBE_SQL, self._parameters).fetchone()
        triggers, described = row[0] or {}, {TableName(schema, name): found for schema, name, found in row[1] or ()}
        self._parameters["types"] = row[2]
        return CapturedSet.model_validate({
            "event_triggers": triggers if triggers.keys() == EVENT_TRIGGERS.keys() else {},
            "tables": {str(table): described.get(table) for table in self._tables},
        })  # fmt: skip

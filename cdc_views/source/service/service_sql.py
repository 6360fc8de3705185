"""The SQL of the service schema, in a form that a DBA can read and run.

All projects of a database share the schema. Each row of `captured`, `ddl` and `truncates` names the publication of its
project, since a publication's name is unique in its database.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cdc_views.base.rendering import FRACTION, TIMES
from cdc_views.base.service_schema import SCHEMA, SERVICE_TABLES
from cdc_views.source.catalog import COLUMNS_SQL, KEY_SQL

TABLES: Final = f"""
CREATE SCHEMA IF NOT EXISTS cdc_views;

CREATE TABLE IF NOT EXISTS cdc_views.heartbeat (
    id text PRIMARY KEY, number bigint NOT NULL DEFAULT 0, writer text, system_identifier text,
    timeline integer, touched_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    times tstzmultirange NOT NULL DEFAULT '{TIMES}', fraction double precision NOT NULL DEFAULT {FRACTION!r});

CREATE TABLE IF NOT EXISTS cdc_views.ddl (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, publication text NOT NULL, schema_name text NOT NULL,
    table_name text NOT NULL, relation bigint NOT NULL, command text NOT NULL, description jsonb,
    at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE IF NOT EXISTS cdc_views.truncates (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, publication text NOT NULL, schema_name text NOT NULL,
    table_name text NOT NULL, relation bigint NOT NULL, truncated text NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE IF NOT EXISTS cdc_views.captured (
    publication text NOT NULL, relation oid NOT NULL, schema_name text NOT NULL, table_name text NOT NULL,
    PRIMARY KEY (publication, relation));

CREATE TABLE IF NOT EXISTS cdc_views.former_identities (
    relation oid PRIMARY KEY, identity text NOT NULL, index_relation oid);

CREATE TABLE IF NOT EXISTS cdc_views.adopting (relation oid PRIMARY KEY);
"""

# The replica identity; for USING INDEX, with the columns of the index.
_IDENTITY_SQL: Final = """
CASE WHEN r.relreplident <> 'i' THEN r.relreplident::text
     ELSE 'i ' || coalesce((SELECT string_agg(a.attname, ' ' ORDER BY a.attnum) FROM pg_index i
                            JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey::int2[])
                            WHERE i.indrelid = r.oid AND i.indisreplident), '') END"""

# How the publication has the table with the alias {table}. Where a table is published that it is a partition of, events
# have the name of that one.
_MEMBERSHIP_SQL: Final = """
(SELECT concat_ws(' ', p.oid, p.xmin, m.oid, m.xmin, (
            SELECT string_agg(concat_ws(' ', 'below', a.oid, a.xmin), ' ' ORDER BY a.oid)
            FROM pg_publication_rel a JOIN pg_partition_ancestors({table}.oid) t ON t.relid = a.prrelid
            WHERE a.prpubid = p.oid AND a.prrelid <> {table}.oid),
        CASE WHEN {table}.relispartition AND NOT EXISTS (
            SELECT FROM pg_get_publication_tables(p.pubname::text) t WHERE t.relid = {table}.oid)
        THEN 'by another name' END)
 FROM pg_publication p JOIN pg_publication_rel m ON m.prpubid = p.oid AND m.prrelid = {table}.oid
 WHERE p.pubname = describe.publication)"""
_SERVICE_NAMES: Final = ", ".join(f"'{name.table}'" for name in SERVICE_TABLES)

# describe: returns everything about a captured table that decides what its events mean and whether all of its rows have
# events (base/captured.py says which changes are harmless). The xmins show a change that was reverted since.
# relations_of: returns the table with its partitions and inheriting tables. used_types: returns the user-defined types
# (oids from 16384) that the table uses, through arrays, domains, composites and ranges: their labels and attributes
# decide how values print. adopt: makes a new partition like the others of its table, in the command that creates it. A
# row of `adopting`, which exists only meanwhile, keeps record_ddl from recording the commands that adopt runs. Users
# cannot write it, unlike a setting.
FUNCTIONS: Final = rf"""
CREATE OR REPLACE FUNCTION cdc_views.relations_of(root oid)
RETURNS TABLE (relation oid, parent oid, pending boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
WITH RECURSIVE tree(relation, parent, pending) AS (
    SELECT relations_of.root, NULL::oid, false
    UNION
    SELECT i.inhrelid, i.inhparent, i.inhdetachpending FROM tree JOIN pg_inherits i ON i.inhparent = tree.relation)
SELECT * FROM tree
$function$;

CREATE OR REPLACE FUNCTION cdc_views.used_types(root oid) RETURNS TABLE (type oid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
WITH RECURSIVE used(type) AS (
    SELECT a.atttypid FROM pg_attribute a
    WHERE a.attrelid = used_types.root AND a.attnum > 0 AND NOT a.attisdropped AND a.atttypid >= 16384
    UNION
    SELECT part.type FROM used JOIN pg_type t ON t.oid = used.type
    CROSS JOIN LATERAL (
        SELECT t.typelem UNION ALL SELECT t.typbasetype
        UNION ALL SELECT r.rngsubtype FROM pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
        UNION ALL SELECT a.atttypid FROM pg_attribute a
                  WHERE t.typtype = 'c' AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    ) AS part(type) WHERE part.type >= 16384)
SELECT * FROM used
$function$;

CREATE OR REPLACE FUNCTION cdc_views.describe(publication text, root oid) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
SELECT jsonb_build_object(
    'name', quote_ident(n.nspname) || '.' || quote_ident(c.relname),
    'membership', {_MEMBERSHIP_SQL.format(table="c")},
    'service', (SELECT string_agg(concat_ws(' ', s.relname, {_MEMBERSHIP_SQL.format(table="s")}), ', '
                                  ORDER BY s.relname)
                FROM pg_class s
                WHERE s.relnamespace = '{SCHEMA}'::regnamespace AND s.relname IN ({_SERVICE_NAMES})),
    'columns', (SELECT jsonb_object_agg(attnum, concat_ws(' ', quote_ident(name), type_name, typmod, element))
                FROM ({COLUMNS_SQL.format(relation="describe.root")}) AS described),
    'array_domains', (SELECT coalesce(jsonb_agg(a.attnum ORDER BY a.attnum), '[]')
                      FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
                      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                      AND t.typtype = 'd' AND t.typcategory = 'A'),
    'key', (SELECT string_agg(concat(quote_ident(parts.name), CASE WHEN parts.deferrable THEN ' deferrable' END), ', '
                              ORDER BY parts.place) || ' by constraint ' || coalesce(min(con.oid::bigint), 0)
            FROM ({KEY_SQL.format(relation="describe.root")}) AS parts
            LEFT JOIN pg_constraint con ON con.conrelid = describe.root AND con.contype = 'p'),
    'guards', (SELECT coalesce(jsonb_object_agg(con.conname, con.oid || ' ' || pg_get_constraintdef(con.oid)), '{{}}')
               FROM pg_constraint con
               WHERE con.conrelid = c.oid AND con.contype = 'c' AND con.conname ~ '^cdc_views_[0-9]+$'),
    'labels', (SELECT coalesce(jsonb_object_agg(e.oid, concat_ws(' ', quote_literal(e.enumlabel), 'of',
                                                                 quote_ident(t.typname))), '{{}}')
               FROM cdc_views.used_types(c.oid) u JOIN pg_type t ON t.oid = u.type
               JOIN pg_enum e ON e.enumtypid = t.oid),
    'attributes', (SELECT coalesce(jsonb_object_agg(concat_ws(' ', t.oid, a.attnum),
                                                    concat_ws(' ', quote_ident(t.typname), a.atttypid, a.atttypmod)),
                                   '{{}}')
                   FROM cdc_views.used_types(c.oid) u JOIN pg_type t ON t.oid = u.type AND t.typtype = 'c'
                   JOIN pg_attribute a ON a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped),
    'relations', (SELECT jsonb_object_agg(r.oid, jsonb_build_object(
                      'name', quote_ident(rn.nspname) || '.' || quote_ident(r.relname),
                      'kind', r.relkind, 'persistence', r.relpersistence, 'identity', {_IDENTITY_SQL},
                      'parent', concat(tree.parent, CASE WHEN tree.pending THEN ' detaching' END),
                      'storage', r.relfilenode::bigint,
                      'altered', (SELECT md5(string_agg(concat(a.attnum, ' ', a.xmin), ',' ORDER BY a.attnum))
                                  FROM pg_attribute a WHERE a.attrelid = r.oid AND a.attnum > 0),
                      'trigger', (SELECT concat(g.xmin, ' ', f.xmin)
                                  FROM pg_trigger g JOIN pg_proc f ON f.oid = g.tgfoid
                                  WHERE g.tgrelid = r.oid AND g.tgname = 'cdc_views_truncate'
                                  AND g.tgenabled = 'A')))
                  FROM cdc_views.relations_of(c.oid) tree JOIN pg_class r ON r.oid = tree.relation
                  JOIN pg_namespace rn ON rn.oid = r.relnamespace))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = describe.root AND c.relkind IN ('r', 'p')
$function$;

CREATE OR REPLACE FUNCTION cdc_views.record(captured cdc_views.captured, command text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
INSERT INTO cdc_views.ddl (publication, schema_name, table_name, relation, command, description)
VALUES (captured.publication, captured.schema_name, captured.table_name, captured.relation::bigint, command,
        cdc_views.describe(captured.publication, captured.relation))
RETURNING id
$function$;

CREATE OR REPLACE FUNCTION cdc_views.adopt(partition regclass, is_full boolean) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    INSERT INTO cdc_views.adopting VALUES (partition);
    EXECUTE format('CREATE OR REPLACE TRIGGER cdc_views_truncate AFTER TRUNCATE ON %1$s
                        FOR EACH STATEMENT EXECUTE FUNCTION cdc_views.record_truncate();
                    ALTER TABLE %1$s ENABLE ALWAYS TRIGGER cdc_views_truncate', partition);
    IF is_full THEN
        INSERT INTO cdc_views.former_identities (relation, identity)
        SELECT oid, relreplident FROM pg_class WHERE oid = partition ON CONFLICT (relation) DO NOTHING;
        EXECUTE format('ALTER TABLE %s REPLICA IDENTITY FULL', partition);
    END IF;
    DELETE FROM cdc_views.adopting WHERE relation = partition;
EXCEPTION WHEN OTHERS THEN  -- most likely a missing right; the partition of a user is created all the same
    RAISE WARNING 'cdc_views cannot alter partition %, which stops its table: %', partition, SQLERRM;
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    PERFORM cdc_views.adopt(p.oid, bool_or(leaf.relreplident = 'f'))
    FROM pg_event_trigger_ddl_commands() d JOIN pg_class p ON d.classid = 'pg_class'::regclass AND p.oid = d.objid
    CROSS JOIN cdc_views.captured c CROSS JOIN cdc_views.relations_of(c.relation) tree
    JOIN pg_class leaf ON leaf.oid = tree.relation
    WHERE d.command_tag = 'CREATE TABLE' AND p.relispartition AND p.relkind IN ('r', 'p') AND p.relpersistence = 'p'
    GROUP BY p.oid, c.publication, c.relation HAVING bool_or(leaf.oid = p.oid);
    PERFORM cdc_views.record(c, CASE tg_tag WHEN 'CREATE SCHEMA' THEN 'CREATE TABLE' ELSE tg_tag END)
    FROM cdc_views.captured c JOIN pg_class t ON t.oid = c.relation
    WHERE EXISTS (
        SELECT FROM pg_event_trigger_ddl_commands() d
        LEFT JOIN pg_trigger g ON d.classid = 'pg_trigger'::regclass AND g.oid = d.objid
        WHERE d.schema_name IS DISTINCT FROM 'pg_temp'
          AND coalesce(g.tgrelid, d.objid) NOT IN (SELECT relation FROM cdc_views.adopting)
          AND CASE d.classid
            WHEN 'pg_namespace'::regclass THEN d.objid = t.relnamespace
            WHEN 'pg_class'::regclass THEN
                d.objid IN (SELECT relation FROM cdc_views.relations_of(c.relation)
                            UNION ALL SELECT relid FROM pg_partition_ancestors(c.relation))
                OR t.relhassubclass AND tg_tag LIKE 'ALTER%'
                OR d.objid IN (SELECT u.typrelid FROM cdc_views.used_types(c.relation) JOIN pg_type u ON u.oid = type)
            WHEN 'pg_type'::regclass THEN d.objid IN (SELECT type FROM cdc_views.used_types(c.relation))
            WHEN 'pg_trigger'::regclass THEN
                g.tgrelid IN (SELECT relation FROM cdc_views.relations_of(c.relation))
        END);
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_publication() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    recorded bigint[];
BEGIN
    recorded := ARRAY(
        SELECT cdc_views.record(c, tg_tag) FROM cdc_views.captured c JOIN pg_publication p ON p.pubname = c.publication
        WHERE tg_tag = 'ALTER PUBLICATION' OR EXISTS (
            SELECT FROM pg_event_trigger_ddl_commands() d
            WHERE d.classid = 'pg_publication'::regclass AND d.objid = p.oid));
    -- The same as an UPDATE, in case the publication has no INSERT. The description is made again, since an event lacks
    -- a value that is stored out of line and did not change.
    UPDATE cdc_views.ddl SET description = CASE
        WHEN tg_tag <> 'CREATE PUBLICATION' OR NOT EXISTS (
            SELECT FROM pg_replication_slots s WHERE s.database = current_database())
        THEN cdc_views.describe(publication, relation::oid) END
    WHERE id = ANY(recorded);
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    PERFORM cdc_views.record(c, tg_tag)
    FROM cdc_views.captured c LEFT JOIN pg_class t ON t.oid = c.relation
    WHERE EXISTS (
        SELECT FROM pg_event_trigger_dropped_objects() d
        WHERE d.classid = 'pg_class'::regclass
                  AND d.objid IN (SELECT c.relation UNION SELECT relation FROM cdc_views.relations_of(c.relation))
           OR d.object_type IN ('table', 'foreign table') AND NOT d.is_temporary AND t.relhassubclass
           OR d.object_type = 'trigger' AND d.object_identity LIKE 'cdc\_views\_truncate on %'
           OR d.object_type = 'table constraint' AND d.object_identity ~ '^cdc_views_[0-9]+ on ');
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_rewrite() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    IF pg_event_trigger_table_rewrite_reason() = 8 THEN  -- another access method: the same rows
        RETURN;
    END IF;
    INSERT INTO cdc_views.ddl (publication, schema_name, table_name, relation, command)
    SELECT c.publication, c.schema_name, c.table_name, c.relation::bigint, tg_tag || ' (rewrite)'
    FROM cdc_views.captured c
    WHERE pg_event_trigger_table_rewrite_oid() IN (SELECT relation FROM cdc_views.relations_of(c.relation));
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    INSERT INTO cdc_views.truncates (publication, schema_name, table_name, relation, truncated)
    WITH RECURSIVE ancestors(relation) AS (
        -- The function, unlike a query, also knows a partition that is newer than the transaction's snapshot.
        (SELECT tg_relid UNION SELECT relid FROM pg_partition_ancestors(tg_relid))
        UNION
        SELECT i.inhparent FROM ancestors a JOIN pg_inherits i ON i.inhrelid = a.relation)
    SELECT c.publication, c.schema_name, c.table_name, c.relation::bigint,
           quote_ident(tg_table_schema) || '.' || quote_ident(tg_table_name)
    FROM cdc_views.captured c JOIN ancestors a ON a.relation = c.relation;
    RETURN NULL;
END $function$;
"""

VERSION: Final = f"cdc_views service schema {hashlib.sha256((TABLES + FUNCTIONS).encode()).hexdigest()[:16]}"
MARK_VERSION: Final = f"COMMENT ON SCHEMA cdc_views IS '{VERSION}';\n"

# ENABLE ALWAYS: they also fire in sessions with session_replication_role = replica.
EVENT_TRIGGERS: Final = {
    "cdc_views_ddl": """
CREATE EVENT TRIGGER cdc_views_ddl ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE', 'ALTER SCHEMA', 'ALTER TYPE', 'ALTER FOREIGN TABLE', 'CREATE TABLE',
                 'CREATE FOREIGN TABLE', 'CREATE TRIGGER', 'CREATE SCHEMA',
                 'ALTER INDEX', 'ALTER VIEW', 'ALTER MATERIALIZED VIEW')  -- which also rename tables and their columns
    EXECUTE FUNCTION cdc_views.record_ddl();
ALTER EVENT TRIGGER cdc_views_ddl ENABLE ALWAYS;
""",
    "cdc_views_publication": """
CREATE EVENT TRIGGER cdc_views_publication ON ddl_command_end
    WHEN TAG IN ('CREATE PUBLICATION', 'ALTER PUBLICATION') EXECUTE FUNCTION cdc_views.record_publication();
ALTER EVENT TRIGGER cdc_views_publication ENABLE ALWAYS;
""",
    "cdc_views_drop": """
CREATE EVENT TRIGGER cdc_views_drop ON sql_drop EXECUTE FUNCTION cdc_views.record_drop();
ALTER EVENT TRIGGER cdc_views_drop ENABLE ALWAYS;
""",
    "cdc_views_rewrite": """
CREATE EVENT TRIGGER cdc_views_rewrite ON table_rewrite EXECUTE FUNCTION cdc_views.record_rewrite();
ALTER EVENT TRIGGER cdc_views_rewrite ENABLE ALWAYS;
""",
}

# Without a superuser, as in managed services, the markers' descriptions show what event triggers would have recorded.
EVENT_TRIGGERS_REFUSED: Final = """\
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'no event triggers (%): changes of tables are seen at the next marker', SQLERRM;
"""

TRUNCATE_TRIGGER: Final = """
CREATE OR REPLACE TRIGGER cdc_views_truncate AFTER TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION cdc_views.record_truncate();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER cdc_views_truncate;
"""

CAPTURE: Final = """
INSERT INTO cdc_views.captured (publication, relation, schema_name, table_name)
VALUES ({publication}, {relation}::regclass, {schema}, {name})
ON CONFLICT (publication, relation) DO UPDATE SET schema_name = EXCLUDED.schema_name,
                                                  table_name = EXCLUDED.table_name;
"""

# Removes tables that the project no longer captures, or that were dropped or renamed.
FORGET: Final = """
DELETE FROM cdc_views.captured WHERE publication = {publication}
    AND ((schema_name, table_name) NOT IN (SELECT * FROM unnest({schemas}::text[], {names}::text[]))
         OR NOT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                        WHERE c.oid = relation AND (n.nspname, c.relname) = (schema_name, table_name)));
"""

# Records the replica identity that the table, and tables that inherit from it, had when the table was first captured.
# `destroy` restores it.
FORMER_IDENTITY: Final = """
INSERT INTO cdc_views.former_identities (relation, identity, index_relation)
WITH RECURSIVE family(relation) AS (
    SELECT {relation}::regclass::oid
    UNION SELECT i.inhrelid FROM family JOIN pg_inherits i ON i.inhparent = family.relation)
SELECT t.oid, t.relreplident::text, (SELECT x.indexrelid FROM pg_index x WHERE x.indrelid = t.oid AND x.indisreplident)
FROM family JOIN pg_class t ON t.oid = family.relation
ON CONFLICT (relation) DO NOTHING;
"""

GRANTS: Final = """
GRANT USAGE ON SCHEMA cdc_views TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA cdc_views TO {role};
GRANT INSERT, UPDATE ON cdc_views.heartbeat TO {role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA cdc_views TO {role};
"""

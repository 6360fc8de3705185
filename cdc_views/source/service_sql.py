"""The SQL of the service schema, as a DBA can read and run it."""

from __future__ import annotations

from typing import Final

from cdc_views.source.catalog import COLUMNS_SQL, KEY_SQL

TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS cdc_views;

CREATE TABLE IF NOT EXISTS cdc_views.heartbeat (
    id text PRIMARY KEY, number bigint NOT NULL DEFAULT 0, writer text, system_identifier text,
    timeline integer, fingerprint text, touched_at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE IF NOT EXISTS cdc_views.ddl (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, schema_name text NOT NULL, table_name text NOT NULL,
    relation bigint NOT NULL, command text NOT NULL, columns jsonb, fingerprint text,
    at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE IF NOT EXISTS cdc_views.truncates (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, schema_name text NOT NULL, table_name text NOT NULL,
    relation bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TABLE IF NOT EXISTS cdc_views.signal (
    id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048));

CREATE TABLE IF NOT EXISTS cdc_views.captured (
    relation oid PRIMARY KEY, schema_name text NOT NULL, table_name text NOT NULL, publication text NOT NULL);
"""

# record_type: an enum's new label changes no row, but a renamed one changes what every row prints. A trigger is not
# told which of the two it was, so whatever is not plainly the first counts as the second.
# record_publication: one without inserts still publishes the update of the row that tells so. One that is new lacks
# what was changed before it; without a slot nobody was reading.
# chr(31) and chr(30) are the separators of SourceTable.fingerprint. A partitioned table has no
# fingerprint: rows come and go with its partitions, and no ALTER of it is known to be harmless.
FUNCTIONS: Final = rf"""
CREATE OR REPLACE FUNCTION cdc_views.columns_of(relation oid) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
SELECT jsonb_agg(jsonb_build_object('name', name, 'attnum', attnum, 'type_name', type_name, 'typmod', typmod,
                                    'element', element, 'not_null', not_null) ORDER BY attnum)
FROM ({COLUMNS_SQL.format(relation="columns_of.relation")}) AS described
$function$;

CREATE OR REPLACE FUNCTION cdc_views.fingerprint_of(relation oid) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
SELECT encode(sha256(convert_to(concat_ws(chr(30),
    n.nspname || chr(31) || t.relname,
    (SELECT string_agg(concat_ws(chr(31), attnum, name, type_name, typmod, coalesce(element, '')), chr(30)
                       ORDER BY attnum)
     FROM ({COLUMNS_SQL.format(relation="fingerprint_of.relation")}) AS described),
    coalesce((SELECT string_agg(name, chr(31) ORDER BY place)
              FROM ({KEY_SQL.format(relation="fingerprint_of.relation")}) AS parts), '')
), 'UTF8')), 'hex')
FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE t.oid = fingerprint_of.relation AND t.relkind = 'r'
$function$;

CREATE OR REPLACE FUNCTION cdc_views.record_ddl() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    INSERT INTO cdc_views.ddl (schema_name, table_name, relation, command, columns, fingerprint)
    SELECT c.schema_name, c.table_name, c.relation::bigint, tg_tag,
           cdc_views.columns_of(c.relation), cdc_views.fingerprint_of(c.relation)
    FROM cdc_views.captured c JOIN pg_class t ON t.oid = c.relation
    WHERE EXISTS (SELECT FROM pg_event_trigger_ddl_commands() d
                  WHERE (d.classid = 'pg_class'::regclass AND d.objid = t.oid)
                     OR (d.classid = 'pg_namespace'::regclass AND d.objid = t.relnamespace));
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_type() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    IF current_query() ~* '\madd\s+value\M' AND current_query() !~* '\mrename\M' THEN
        RETURN;
    END IF;
    INSERT INTO cdc_views.ddl (schema_name, table_name, relation, command)
    SELECT c.schema_name, c.table_name, c.relation::bigint, tg_tag FROM cdc_views.captured c
    WHERE EXISTS (
        WITH RECURSIVE used(type) AS (
            SELECT a.atttypid FROM pg_attribute a
            WHERE a.attrelid = c.relation AND a.attnum > 0 AND NOT a.attisdropped
            UNION
            SELECT part.type FROM used JOIN pg_type t ON t.oid = used.type
            CROSS JOIN LATERAL (VALUES (t.typelem), (t.typbasetype)) AS part(type) WHERE part.type <> 0)
        SELECT FROM used JOIN pg_event_trigger_ddl_commands() d ON d.objid = used.type
        WHERE d.classid = 'pg_type'::regclass);
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_publication() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    recorded bigint;
BEGIN
    FOR recorded IN
        INSERT INTO cdc_views.ddl (schema_name, table_name, relation, command)
        SELECT c.schema_name, c.table_name, c.relation::bigint, tg_tag
        FROM cdc_views.captured c JOIN pg_publication p ON p.pubname = c.publication
        WHERE CASE WHEN tg_tag = 'CREATE PUBLICATION' THEN
                  EXISTS (SELECT FROM pg_event_trigger_ddl_commands() d
                          WHERE d.classid = 'pg_publication'::regclass AND d.objid = p.oid)
                  AND EXISTS (SELECT FROM pg_replication_slots s WHERE s.database = current_database())
              ELSE
                  NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubviaroot)
                  OR NOT EXISTS (SELECT FROM pg_publication_tables o WHERE o.pubname = p.pubname
                                 AND o.schemaname = c.schema_name AND o.tablename = c.table_name)
                  OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.relation
                             AND (to_jsonb(r) ->> 'prqual' IS NOT NULL OR to_jsonb(r) ->> 'prattrs' IS NOT NULL))
              END
        RETURNING id
    LOOP
        UPDATE cdc_views.ddl SET at = clock_timestamp() WHERE id = recorded;
    END LOOP;
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_drop() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    INSERT INTO cdc_views.ddl (schema_name, table_name, relation, command, columns, fingerprint)
    SELECT c.schema_name, c.table_name, c.relation::bigint, tg_tag,
           cdc_views.columns_of(c.relation), cdc_views.fingerprint_of(c.relation)
    FROM cdc_views.captured c
    WHERE EXISTS (SELECT FROM pg_event_trigger_dropped_objects() d
                  WHERE d.classid = 'pg_class'::regclass AND d.objid = c.relation);
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_rewrite() RETURNS event_trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    INSERT INTO cdc_views.ddl (schema_name, table_name, relation, command)
    SELECT c.schema_name, c.table_name, c.relation::bigint, tg_tag || ' (rewrite)'
    FROM cdc_views.captured c WHERE c.relation = pg_event_trigger_table_rewrite_oid();
END $function$;

CREATE OR REPLACE FUNCTION cdc_views.record_truncate() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    INSERT INTO cdc_views.truncates (schema_name, table_name, relation)
    VALUES (tg_table_schema, tg_table_name, tg_relid::bigint);
    RETURN NULL;
END $function$;
"""

# ENABLE ALWAYS: also in sessions with session_replication_role = replica.
EVENT_TRIGGERS: Final = {
    "cdc_views_ddl": """
CREATE EVENT TRIGGER cdc_views_ddl ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE', 'ALTER SCHEMA') EXECUTE FUNCTION cdc_views.record_ddl();
ALTER EVENT TRIGGER cdc_views_ddl ENABLE ALWAYS;
""",
    "cdc_views_type": """
CREATE EVENT TRIGGER cdc_views_type ON ddl_command_end
    WHEN TAG IN ('ALTER TYPE') EXECUTE FUNCTION cdc_views.record_type();
ALTER EVENT TRIGGER cdc_views_type ENABLE ALWAYS;
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

TRUNCATE_TRIGGER: Final = """
CREATE OR REPLACE TRIGGER cdc_views_truncate AFTER TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION cdc_views.record_truncate();
ALTER TABLE {table} ENABLE ALWAYS TRIGGER cdc_views_truncate;
"""

CAPTURE: Final = """
INSERT INTO cdc_views.captured (relation, schema_name, table_name, publication)
VALUES ({relation}::regclass, {schema}, {name}, {publication})
ON CONFLICT (relation) DO UPDATE SET schema_name = EXCLUDED.schema_name, table_name = EXCLUDED.table_name,
                                     publication = EXCLUDED.publication;
"""

GRANTS: Final = """
GRANT USAGE ON SCHEMA cdc_views TO {role};
GRANT SELECT ON ALL TABLES IN SCHEMA cdc_views TO {role};
GRANT INSERT, UPDATE ON cdc_views.heartbeat TO {role};
"""

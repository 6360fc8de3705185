-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, note FROM orders WHERE status <> 'open';
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT note FROM orders;
-- strategy: KEYS: the rows of affected (note) are looked up, computed again, and compared
--   a change of public.orders affects (note)
--   the rows of affected (note) are computed again from
--     public.orders by (note) from (note) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT upper(note) AS note FROM orders;
-- strategy: FULL: the whole query is run and compared with the stored rows: its result has no column, unchanged from a table, by which its rows can be looked up

-- view
CREATE MATERIALIZED VIEW v AS
SELECT tags FROM posts;
-- strategy: FULL: the whole query is run and compared with the stored rows: its result has no column, unchanged from a table, by which its rows can be looked up

-- view
CREATE MATERIALIZED VIEW v AS
SELECT 1 AS one FROM orders;
-- strategy: FULL: the whole query is run and compared with the stored rows: its result has no column, unchanged from a table, by which its rows can be looked up

-- view
CREATE MATERIALIZED VIEW v AS
WITH c AS (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id) SELECT a.user_id, b.n FROM c a JOIN c b ON a.user_id = b.user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders in a affects (user_id)
--   a change of public.orders in b affects (user_id)
--     look up public.orders in a by (user_id) from (user_id) of public.orders in b
--   the rows of affected (user_id) are computed again from
--     public.orders in a by (user_id) from (user_id) of the affected keys, NULL matches NULL
--     public.orders in b by (user_id) from (user_id) of public.orders in a

-- view
CREATE MATERIALIZED VIEW v AS
WITH RECURSIVE c AS (SELECT id FROM users UNION ALL SELECT id FROM c) SELECT id FROM c;
-- strategy: FULL: the whole query is run and compared with the stored rows: a recursive query: each change may change all of its rows

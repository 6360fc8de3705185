-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, note FROM orders UNION ALL SELECT id, body FROM posts;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--   a change of public.posts affects (id)
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.posts by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id FROM orders INTERSECT SELECT author_id FROM posts;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   a change of public.posts affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL
--     public.posts by (author_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users EXCEPT SELECT user_id FROM orders;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users UNION ALL SELECT 0 AS id;
-- strategy: FULL: the whole query is run and compared with the stored rows: table "public.users" would be read whole

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users UNION ALL SELECT id + 1 FROM orders;
-- strategy: FULL: the whole query is run and compared with the stored rows: table "public.users" would be read whole

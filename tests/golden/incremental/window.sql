-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, user_id, row_number() OVER (PARTITION BY user_id ORDER BY ordered_at, id) AS place FROM orders;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, rank() OVER (ORDER BY ordered_at) AS place FROM orders;
-- strategy: FULL: the whole query is run and compared with the stored rows: a window over all rows, or partitioned by computed values: each change may change all of its rows

-- view
CREATE MATERIALIZED VIEW v AS
SELECT q.user_id, q.id, u.name FROM (SELECT id, user_id, status, rank() OVER (PARTITION BY user_id ORDER BY ordered_at) AS place FROM orders) q LEFT JOIN users u ON u.name = q.status;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   a change of public.users affects (user_id)
--     look up public.orders by (status) from (name) of public.users
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL
--     public.users by (name) from (status) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, user_id, status, rank() OVER (PARTITION BY user_id ORDER BY id) AS a, rank() OVER (PARTITION BY status ORDER BY id) AS b FROM orders;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.orders by (status) from (status) of public.orders, NULL matches NULL
--     look up public.orders by (user_id) from (user_id) of public.orders, NULL matches NULL
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.orders by (user_id) from (user_id) of public.orders, NULL matches NULL
--     public.orders by (status) from (status) of public.orders, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, rank() OVER (PARTITION BY user_id ORDER BY ordered_at) AS place FROM orders;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.orders by (user_id) from (user_id) of public.orders, NULL matches NULL
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.orders by (user_id) from (user_id) of public.orders, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, count(*) OVER (PARTITION BY u.country) AS n FROM orders o JOIN users u ON u.id = o.user_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--     look up public.users by (country) from (country) of public.users, NULL matches NULL
--     look up public.orders by (user_id) from (id) of public.users
--   a change of public.users affects (id)
--     look up public.users by (country) from (country) of public.users, NULL matches NULL
--     look up public.orders by (user_id) from (id) of public.users
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.users by (id) from (user_id) of public.orders
--     public.users by (country) from (country) of public.users, NULL matches NULL
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id AS note, rank() OVER (PARTITION BY user_id ORDER BY user_id) AS r FROM orders GROUP BY user_id QUALIFY r > 0 AND EXISTS (SELECT 1 FROM posts p WHERE p.body = note);
-- strategy: FULL: the whole query is run and compared with the stored rows: a subquery in QUALIFY of groups

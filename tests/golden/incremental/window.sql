-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, user_id, row_number() OVER (PARTITION BY user_id ORDER BY ordered_at, id) AS place FROM orders;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (affected keys 1.user_id)

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
--     look up public.orders by (status) from (public.users.name)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (affected keys 1.user_id)
--     public.users by (name) from (public.orders.status)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, user_id, status, rank() OVER (PARTITION BY user_id ORDER BY id) AS a, rank() OVER (PARTITION BY status ORDER BY id) AS b FROM orders;
-- strategy: FULL: the whole query is run and compared with the stored rows: a window over all rows, or partitioned by computed values: each change may change all of its rows

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, rank() OVER (PARTITION BY user_id ORDER BY ordered_at) AS place FROM orders;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.orders by (user_id) from (public.orders.user_id)
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (affected keys 1.id)
--     public.orders by (user_id) from (public.orders.user_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, count(*) OVER (PARTITION BY u.country) AS n FROM orders o JOIN users u ON u.id = o.user_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.users by (id) from (public.orders.user_id)
--     look up public.users by (country) from (public.users.country)
--     look up public.orders by (user_id) from (public.users.id)
--   a change of public.users affects (id)
--     look up public.users by (country) from (public.users.country)
--     look up public.orders by (user_id) from (public.users.id)
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (affected keys 1.id)
--     public.users by (id) from (public.orders.user_id)
--     public.users by (country) from (public.users.country)
--     public.orders by (user_id) from (public.users.id)

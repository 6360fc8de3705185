-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (public.orders.user_id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (affected keys 1.id)
--     public.orders by (user_id) from (public.users.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE id IN (SELECT user_id FROM orders);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (public.orders.user_id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (affected keys 1.id)
--     public.orders by (user_id) from (public.users.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM orders);
-- strategy: FULL: the whole query is run and compared with the stored rows: NOT IN, or IN outside of WHERE: one NULL of the subquery changes all rows; use EXISTS

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, (SELECT max(o.ordered_at) FROM orders o WHERE o.user_id = u.id) AS latest FROM users u;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.users by (id) from (public.orders.user_id)
--   a change of public.users affects (id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (affected keys 1.id)
--     public.orders by (user_id) from (public.users.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, (SELECT max(ordered_at) FROM orders) AS latest FROM users;
-- strategy: FULL: the whole query is run and compared with the stored rows: a subquery without an equality of columns with the query around it

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, l.note FROM users u CROSS JOIN LATERAL (SELECT o.note FROM orders o WHERE o.user_id = u.id ORDER BY o.id LIMIT 1) l;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (public.orders.user_id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (affected keys 1.id)
--     public.orders by (user_id) from (public.users.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, o.id AS order_id FROM users u FULL JOIN orders o ON o.user_id = u.id;
-- strategy: KEYS: the rows of affected (id, order_id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--     look up public.orders by (user_id) from (public.users.id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (public.orders.user_id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (affected keys 1.id)
--     public.orders by (user_id) from (public.users.id)
--   a change of public.users affects (order_id)
--     look up public.orders by (user_id) from (public.users.id)
--   a change of public.orders affects (order_id)
--     look up public.users by (id) from (public.orders.user_id)
--   the rows of affected (order_id) are computed again from
--     public.orders by (id) from (affected keys 1.order_id)
--     public.users by (id) from (public.orders.user_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, u.name, p.sku FROM users u FULL JOIN products p USING (id);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--     look up public.products by (id) from (public.users.id)
--   a change of public.products affects (id)
--     look up public.users by (id) from (public.products.id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (affected keys 1.id)
--     public.products by (id) from (affected keys 1.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, p.sku FROM users u FULL JOIN products p USING (id);
-- strategy: FULL: the whole query is run and compared with the stored rows: its result has no column, unchanged from a table, by which its rows can be looked up

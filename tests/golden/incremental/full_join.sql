-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, o.id AS order_id FROM users u FULL JOIN orders o ON o.user_id = u.id;
-- strategy: KEYS: the rows of affected (id, order_id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--     look up public.orders by (user_id) from (id) of public.users
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users
--   a change of public.users affects (order_id)
--     look up public.orders by (user_id) from (id) of public.users
--   a change of public.orders affects (order_id)
--     look up public.users by (id) from (user_id) of public.orders
--   the rows of affected (order_id) are computed again from
--     public.orders by (id) from (order_id) of the affected keys
--     public.users by (id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, u.name, p.sku FROM users u FULL JOIN products p USING (id);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--     look up public.products by (id) from (id) of public.users
--   a change of public.products affects (id)
--     look up public.users by (id) from (id) of public.products
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.products by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, p.sku FROM users u FULL JOIN products p USING (id);
-- strategy: FULL: the whole query is run and compared with the stored rows: its result has no column, unchanged from a table, by which its rows can be looked up

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, u.name FROM orders o LEFT JOIN users u ON u.id = o.user_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--   a change of public.users affects (id)
--     look up public.orders by (user_id) from (id) of public.users
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.users by (id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, o.id AS order_id FROM orders o RIGHT JOIN users u ON u.id = o.user_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   a change of public.users affects (id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.country, count(*) AS orders FROM orders o LEFT JOIN users u ON u.id = o.user_id GROUP BY u.country;
-- strategy: ADD: for each (country), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders affects (id)
--   a change of public.users affects (id)
--     look up public.orders by (user_id) from (id) of public.users
--   the totals over the rows of affected (id), before and after, are computed from
--     public.orders by (id) from (id) of the affected keys
--     public.users by (id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, u.name FROM orders o LEFT JOIN users u ON u.id <> o.user_id;
-- strategy: FULL: the whole query is run and compared with the stored rows: an outer, semi or anti join without an equality of columns

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, u.name FROM orders o LEFT JOIN users u ON u.id = o.user_id AND o.id IN (SELECT order_id FROM order_items);
-- strategy: FULL: the whole query is run and compared with the stored rows: a subquery in the condition of an outer join

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, o.id AS order_id, i.line FROM users u LEFT JOIN (orders o JOIN order_items i ON i.order_id = o.id) ON o.user_id = u.id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   a change of public.order_items affects (id)
--     look up public.orders by (id) from (order_id) of public.order_items
--     look up public.users by (id) from (user_id) of public.orders
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users
--     public.order_items by (order_id) from (id) of public.orders

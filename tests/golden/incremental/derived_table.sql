-- view
CREATE MATERIALIZED VIEW v AS
SELECT m.product_id, i.order_id, i.line, i.quantity
FROM (SELECT product_id, max(order_id) AS latest FROM order_items GROUP BY product_id) m
JOIN order_items i ON i.order_id = m.latest;
-- strategy: KEYS: the rows of affected (product_id, order_id, line) are looked up, computed again, and compared
--   _cv_v_1: SELECT product_id, max(order_id) AS latest FROM order_items GROUP BY product_id
--   a change of _cv_v_1 affects (product_id, order_id, line)
--     look up public.order_items by (order_id) from (_cv_v_1.latest)
--   a change of public.order_items affects (product_id, order_id, line)
--     look up _cv_v_1 by (latest) from (public.order_items.order_id)
--   the rows of affected (product_id, order_id, line) are computed again from
--     _cv_v_1 by (product_id) from (affected keys 1.product_id)
--     public.order_items by (order_id, line) from (affected keys 2.order_id, affected keys 2.line)

-- view
CREATE MATERIALIZED VIEW v AS
WITH first_orders(customer, first) AS (SELECT user_id, min(id) AS least FROM orders WHERE status = 'paid' GROUP BY user_id)
SELECT i.order_id, i.line, f.customer FROM order_items i LEFT JOIN first_orders f ON f.first = i.order_id;
-- strategy: KEYS: the rows of affected (order_id, line) are looked up, computed again, and compared
--   _cv_v_1: SELECT user_id, min(id) AS least FROM orders WHERE status = 'paid' GROUP BY user_id
--   a change of public.order_items affects (order_id, line)
--   a change of _cv_v_1 affects (order_id, line)
--     look up public.order_items by (order_id) from (_cv_v_1.least)
--   the rows of affected (order_id, line) are computed again from
--     public.order_items by (order_id, line) from (affected keys 1.order_id, affected keys 1.line)
--     _cv_v_1 by (least) from (public.order_items.order_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, o.id AS order_id FROM users u JOIN orders o ON o.user_id = u.id
JOIN (SELECT user_id, min(id) AS first FROM orders GROUP BY user_id) f ON f.user_id = u.id AND f.first = o.id;
-- strategy: KEYS: the rows of affected (order_id) are looked up, computed again, and compared
--   a change of public.users affects (order_id)
--     look up public.orders by (user_id) from (public.users.id)
--   a change of public.orders affects (order_id)
--   a change of public.orders affects (order_id)
--     look up public.users by (id) from (public.orders.user_id)
--     look up public.orders by (user_id) from (public.users.id)
--   the rows of affected (order_id) are computed again from
--     public.orders by (id) from (affected keys 1.order_id)
--     public.users by (id) from (public.orders.user_id)
--     public.orders by (user_id) from (public.users.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT m.product_id, i.line FROM (SELECT product_id, avg(order_id) AS ratio FROM order_items GROUP BY product_id) m
JOIN order_items i ON i.order_id = m.ratio;
-- strategy: FULL: the whole query is run and compared with the stored rows: no equality of columns joins "public.order_items"

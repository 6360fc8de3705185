-- view
CREATE MATERIALIZED VIEW v AS
SELECT m.product_id, i.order_id, i.line, i.quantity
FROM (SELECT product_id, max(order_id) AS latest FROM order_items GROUP BY product_id) m
JOIN order_items i ON i.order_id = m.latest;
-- strategy: KEYS: the rows of affected (product_id, order_id, line) are looked up, computed again, and compared
--   _cv_v_1: SELECT product_id, max(order_id) AS latest FROM order_items GROUP BY product_id
--   a change of _cv_v_1 affects (product_id, order_id, line)
--     look up public.order_items by (order_id) from (latest) of _cv_v_1
--   a change of public.order_items affects (product_id, order_id, line)
--     look up _cv_v_1 by (latest) from (order_id) of public.order_items
--   the rows of affected (product_id, order_id, line) are computed again from
--     _cv_v_1 by (product_id) from (product_id) of the affected keys, NULL matches NULL
--     public.order_items by (order_id, line) from (order_id, line) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
WITH first_orders(customer, first) AS (SELECT user_id, min(id) AS least FROM orders WHERE status = 'paid' GROUP BY user_id)
SELECT i.order_id, i.line, f.customer FROM order_items i LEFT JOIN first_orders f ON f.first = i.order_id;
-- strategy: KEYS: the rows of affected (order_id, line) are looked up, computed again, and compared
--   _cv_v_1: SELECT user_id, min(id) AS least FROM orders WHERE status = 'paid' GROUP BY user_id
--   a change of public.order_items affects (order_id, line)
--   a change of _cv_v_1 affects (order_id, line)
--     look up public.order_items by (order_id) from (least) of _cv_v_1
--   the rows of affected (order_id, line) are computed again from
--     public.order_items by (order_id, line) from (order_id, line) of the affected keys
--     _cv_v_1 by (least) from (order_id) of public.order_items

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, o.id AS order_id FROM users u JOIN orders o ON o.user_id = u.id
JOIN (SELECT user_id, min(id) AS first FROM orders GROUP BY user_id) f ON f.user_id = u.id AND f.first = o.id;
-- strategy: KEYS: the rows of affected (order_id) are looked up, computed again, and compared
--   a change of public.users affects (order_id)
--     look up public.orders AS o by (user_id) from (id) of public.users
--   a change of public.orders AS o affects (order_id)
--   a change of public.orders affects (order_id)
--     look up public.users by (id) from (user_id) of public.orders
--     look up public.orders AS o by (user_id) from (id) of public.users
--   the rows of affected (order_id) are computed again from
--     public.orders AS o by (id) from (order_id) of the affected keys
--     public.users by (id) from (user_id) of public.orders AS o
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT m.product_id, i.line FROM (SELECT product_id, avg(order_id) AS ratio FROM order_items GROUP BY product_id) m
JOIN order_items i ON i.order_id = m.ratio;
-- strategy: FULL: the whole query is run and compared with the stored rows: no equality of columns joins "public.order_items"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT p.id, u.name FROM (SELECT id, author_id FROM posts ORDER BY created_at DESC LIMIT 100) p JOIN users u ON u.id = p.author_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   _cv_v_1: SELECT id, author_id FROM posts ORDER BY created_at DESC, id LIMIT 100
--   a change of _cv_v_1 affects (id)
--   a change of public.users affects (id)
--     look up _cv_v_1 by (author_id) from (id) of public.users
--   the rows of affected (id) are computed again from
--     _cv_v_1 by (id) from (id) of the affected keys, NULL matches NULL
--     public.users by (id) from (author_id) of _cv_v_1

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, name FROM users WHERE id IN (SELECT author_id FROM posts ORDER BY created_at DESC LIMIT 100);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   _cv_v_1: SELECT author_id, posts.id AS value_1 FROM posts ORDER BY created_at DESC, posts.id LIMIT 100
--   a change of public.users affects (id)
--   a change of _cv_v_1 affects (id)
--     look up public.users by (id) from (author_id) of _cv_v_1
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     _cv_v_1 by (author_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE id IN (SELECT user_id FROM orders);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM orders);
-- strategy: FULL: the whole query is run and compared with the stored rows: NOT IN with columns that may be NULL: one NULL of the subquery changes all rows; add IS NOT NULL on both sides, declare the columns NOT NULL, or use NOT EXISTS

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, name FROM users WHERE id NOT IN (SELECT follower_id FROM follows WHERE muted);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.follows affects (id)
--     look up public.users by (id) from (follower_id) of public.follows
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.follows by (follower_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE id NOT IN (SELECT user_id FROM orders WHERE user_id IS NOT NULL);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.id NOT IN (SELECT order_id FROM order_items);
-- strategy: FULL: the whole query is run and compared with the stored rows: NOT IN with columns that may be NULL: one NULL of the subquery changes all rows; add IS NOT NULL on both sides, declare the columns NOT NULL, or use NOT EXISTS

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE CASE WHEN id IN (SELECT follower_id FROM follows) THEN name = 'a' ELSE name = 'b' END;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.follows affects (id)
--     look up public.users by (id) from (follower_id) of public.follows
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.follows by (follower_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, (SELECT max(o.ordered_at) FROM orders o WHERE o.user_id = u.id) AS latest FROM users u;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   a change of public.users affects (id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, (SELECT max(ordered_at) FROM orders) AS latest FROM users;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as the values of its subqueries stay what they are
--   _cv_v_1: SELECT max(ordered_at) FROM orders
--   if the value of _cv_v_1 changes, the whole query is run
--   a change of public.users affects (id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, l.note FROM users u CROSS JOIN LATERAL (SELECT o.note FROM orders o WHERE o.user_id = u.id ORDER BY o.id LIMIT 1) l;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.orders affects (id)
--     look up public.users by (id) from (user_id) of public.orders
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.orders by (user_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, stock FROM products WHERE stock > (SELECT max(stock) AS most FROM products WHERE id < 10);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as the values of its subqueries stay what they are
--   _cv_v_1: SELECT max(stock) FROM products WHERE id < 10
--   if the value of _cv_v_1 changes, the whole query is run
--   a change of public.products affects (id)
--   the rows of affected (id) are computed again from
--     public.products by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, (SELECT sum(price) FROM products) AS total, (SELECT count(*) FROM users u WHERE u.country = 'NL') AS n
FROM orders o JOIN users u ON u.id = o.user_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as the values of its subqueries stay what they are
--   _cv_v_1: SELECT count(*) FROM users u WHERE u.country = 'NL'
--   _cv_v_2: SELECT sum(price), count(price) FROM products
--   if the value of _cv_v_1 changes, the whole query is run
--   if the value of _cv_v_2 changes, the whole query is run
--   a change of public.orders affects (id)
--   a change of public.users affects (id)
--     look up public.orders by (user_id) from (id) of public.users
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.users by (id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM products WHERE stock > (SELECT quantity FROM order_items WHERE order_id = 1 AND line = 1);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as the values of its subqueries stay what they are
--   _cv_v_1: SELECT quantity, line AS value_1, order_id AS value_2 FROM order_items WHERE order_id = 1 AND line = 1
--   if the value of _cv_v_1 changes, the whole query is run
--   a change of public.products affects (id)
--   the rows of affected (id) are computed again from
--     public.products by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT p.id, p.stock, q.most FROM products p CROSS JOIN (SELECT max(stock) AS most, sum(price) AS total, count(*) AS n FROM products) q WHERE p.stock < q.most;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as the values of its subqueries stay what they are
--   _cv_v_1: SELECT max(stock), sum(price), count(*), count(price) FROM products
--   if the value of _cv_v_1 changes, the whole query is run
--   a change of public.products affects (id)
--   the rows of affected (id) are computed again from
--     public.products by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
WITH q AS (SELECT max(stock) AS most FROM products) SELECT p.id, q.most FROM products p LEFT JOIN q ON p.stock = q.most;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as the values of its subqueries stay what they are
--   _cv_v_1: SELECT max(stock) FROM products
--   if the value of _cv_v_1 changes, the whole query is run
--   a change of public.products affects (id)
--   the rows of affected (id) are computed again from
--     public.products by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT p.id, q.most FROM products p RIGHT JOIN (SELECT max(stock) AS most FROM products) q ON p.stock = q.most;
-- strategy: FULL: the whole query is run and compared with the stored rows: an outer, semi or anti join without an equality of columns

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM products WHERE id NOT IN (SELECT product_id FROM order_items WHERE quantity > 9);
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as no row has NULL in public.order_items.product_id
--   a change of public.products affects (id)
--   a change of public.order_items affects (id)
--     look up public.products by (id) from (product_id) of public.order_items
--   the rows of affected (id) are computed again from
--     public.products by (id) from (id) of the affected keys
--     public.order_items by (product_id) from (id) of public.products

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE NOT EXISTS (SELECT 1 FROM orders WHERE status = 'stopped');
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared, as long as the values of its subqueries stay what they are
--   _cv_v_1: SELECT count(*) FROM orders WHERE status = 'stopped'
--   if the value of _cv_v_1 changes, the whole query is run
--   a change of public.users affects (id)
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT name FROM products WHERE EXISTS (SELECT 1 FROM (SELECT CAST(id AS BIGINT), user_id FROM orders) q WHERE user_id = id);
-- strategy: FULL: the whole query is run and compared with the stored rows: a subquery without an equality of columns with the query around it

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, count(*) AS orders FROM orders GROUP BY user_id;
-- strategy: ADD: for each (user_id), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (user_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS orders FROM orders;
-- strategy: ADD: the totals over the rows that are added are added, those over the rows that are removed are subtracted

-- view
CREATE MATERIALIZED VIEW v AS
SELECT upper(status) AS status, count(*) AS orders FROM orders GROUP BY 1;
-- strategy: ADD: for each (status), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (status)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT user_id, status FROM orders;
-- strategy: KEYS: the rows of affected (user_id, status) are looked up, computed again, and compared
--   a change of public.orders affects (user_id, status)
--   the rows of affected (user_id, status) are computed again from
--     public.orders by (user_id, status) from (user_id, status) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, count(*) AS orders FROM orders GROUP BY ROLLUP (user_id, status);
-- strategy: KEYS: the rows of affected (user_id, status) are looked up, computed again, and compared
--   _cv_v_1: SELECT user_id AS value_1, status AS value_2, grouping_id() AS value_3, count(*) AS value_4 FROM orders GROUP BY ROLLUP (user_id, status)
--   a change of _cv_v_1 affects (user_id, status)
--   the rows of affected (user_id, status) are computed again from
--     _cv_v_1 by (value_1, value_2) from (user_id, status) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders ORDER BY id LIMIT 3;
-- strategy: PATCH: the stored rows are merged with the rows that are added
--   the stored rows are merged from
--     public.orders by (id) from (id) of the stored rows
--   with the rows that are added to public.orders
--   where they no longer give the first 3, the whole query is run

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, max(ordered_at) AS latest FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.user_id, count(*) AS items, sum(i.quantity) AS pieces FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.user_id;
-- strategy: ADD: for each (user_id), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (user_id)
--     look up public.order_items by (order_id) from (id) of public.orders
--   a change of public.order_items changes the totals of its (user_id)
--     look up public.orders by (id) from (order_id) of public.order_items

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sum(id) AS pieces FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT weight, count(*) AS n FROM products GROUP BY weight;
-- strategy: KEYS: the rows of affected (weight) are looked up, computed again, and compared
--   a change of public.products affects (weight)
--   the rows of affected (weight) are computed again from
--     public.products by (weight) from (weight) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, count(*) AS orders, max(ordered_at) AS latest FROM orders GROUP BY user_id;
-- strategy: ADD: for each (user_id), the totals over the rows that are added are added, those over the rows that are removed are subtracted; extremes are compared with those over the rows that are added and removed
--   a change of public.orders changes the totals of its (user_id)
--   if the value of (latest) is removed, (user_id) is computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.user_id, i.product_id, count(*) AS orders, min(i.quantity) AS least
FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.user_id, i.product_id;
-- strategy: ADD: for each (user_id, product_id), the totals over the rows that are added are added, those over the rows that are removed are subtracted; extremes are compared with those over the rows that are added and removed
--   a change of public.orders changes the totals of its (user_id, product_id)
--     look up public.order_items by (order_id) from (id) of public.orders
--   a change of public.order_items changes the totals of its (user_id, product_id)
--     look up public.orders by (id) from (order_id) of public.order_items
--   if the value of (least) is removed, (user_id, product_id) is computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL
--     public.order_items by (product_id) from (product_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT max(q.id) AS m FROM (SELECT id, status AS `all` FROM orders) q GROUP BY ALL;
-- strategy: FULL: the whole query is run and compared with the stored rows: GROUP BY ALL, which may mean a column "all"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, mean(id) AS m, count(*) AS n FROM orders GROUP BY ALL;
-- strategy: FULL: the whole query is run and compared with the stored rows: GROUP BY ALL beside a function that may be an aggregate

-- view
CREATE MATERIALIZED VIEW v AS
SELECT q.k, count(*) AS n FROM (SELECT 1 AS k, mean(stock) AS m FROM products) q GROUP BY q.k;
-- strategy: FULL: the whole query is run and compared with the stored rows: GROUP BY over computed values only: each change may change all of its rows

-- view
CREATE MATERIALIZED VIEW v AS
SELECT q.m, count(*) AS n FROM (SELECT system.builtin.max(stock) AS m FROM products) q GROUP BY q.m;
-- strategy: FULL: the whole query is run and compared with the stored rows: GROUP BY over computed values only: each change may change all of its rows

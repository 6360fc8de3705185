-- view
CREATE MATERIALIZED VIEW v AS
SELECT CAST(sum(money) AS DECIMAL(20, 2)) AS amount, count(*) AS places
FROM (SELECT amount AS money FROM sales.orders UNION ALL SELECT price FROM products WHERE stock > 0) q;
-- strategy: ADD: the totals over the rows that are added are added, those over the rows that are removed are subtracted

-- view
CREATE MATERIALIZED VIEW v AS
WITH paid AS (SELECT id FROM orders WHERE status = 'paid')
SELECT count(id) FILTER (WHERE id > 9) AS recent, count(*) AS paid FROM paid;
-- strategy: ADD: the totals over the rows that are added are added, those over the rows that are removed are subtracted

-- view
CREATE MATERIALIZED VIEW v AS
SELECT sum(price) AS total, sum(stock) AS pieces FROM products;
-- strategy: ADD: the totals over the rows that are added are added, those over the rows that are removed are subtracted

-- view
CREATE MATERIALIZED VIEW v AS
SELECT sum(CAST(stock AS DOUBLE)) AS ratio FROM products;
-- strategy: FULL: the whole query is run and compared with the stored rows: an aggregate over all rows that cannot be added up: column "ratio" is a sum of type double, neither whole numbers nor decimals

-- view
CREATE MATERIALIZED VIEW v AS
SELECT CAST(sum(price / 3) AS DECIMAL(20, 2)) AS amount FROM products;
-- strategy: KEYS: its row is computed again from the stored totals, and compared
--   _cv_v_1: SELECT sum(price / 3) AS value_1, count(price / 3) AS value_2, count(*) AS value_3 FROM products
--   if _cv_v_1 changes, its row is read

-- view
CREATE MATERIALIZED VIEW v AS
SELECT CAST(sum(price) AS BIGINT) AS pieces FROM products;
-- strategy: KEYS: its row is computed again from the stored totals, and compared
--   _cv_v_1: SELECT sum(price) AS value_1, count(price) AS value_2, count(*) AS value_3 FROM products
--   if _cv_v_1 changes, its row is read

-- view
CREATE MATERIALIZED VIEW v AS
SELECT max(price) AS dearest, count(*) AS products FROM products;
-- strategy: ADD: the totals over the rows that are added are added, those over the rows that are removed are subtracted; extremes are compared with those over the rows that are added and removed
--   if the value of (dearest) is removed, the next one is searched for in public.products.price

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS items FROM orders o JOIN order_items i ON i.order_id = o.id;
-- strategy: ADD: the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals
--     look up public.order_items by (order_id) from (id) of public.orders
--   a change of public.order_items changes the totals
--     look up public.orders by (id) from (order_id) of public.order_items

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS users FROM (SELECT DISTINCT user_id FROM orders) q;
-- strategy: ADD: of affected (user_id), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders affects (user_id)
--   the totals over the rows of affected (user_id), before and after, are computed from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS ids FROM (SELECT id FROM orders UNION SELECT id FROM posts) q;
-- strategy: ADD: of affected (id), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders affects (id)
--   a change of public.posts affects (id)
--   the totals over the rows of affected (id), before and after, are computed from
--     public.orders by (id) from (id) of the affected keys
--     public.posts by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS silent FROM users u WHERE NOT EXISTS (SELECT 1 FROM posts p WHERE p.author_id = u.id);
-- strategy: ADD: of affected (id), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.users affects (id)
--   a change of public.posts affects (id)
--     look up public.users by (id) from (author_id) of public.posts
--   the totals over the rows of affected (id), before and after, are computed from
--     public.users by (id) from (id) of the affected keys
--     public.posts by (author_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS orders FROM orders HAVING count(*) > 9;
-- strategy: KEYS: its row is computed again from the stored totals, and compared
--   _cv_v_1: SELECT count(*) AS value_1 FROM orders
--   if _cv_v_1 changes, its row is read

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(DISTINCT user_id) AS users, max(ordered_at) AS newest FROM orders;
-- strategy: ADD: extremes are compared with those over the rows that are added and removed; different values are counted again if a changed row has them
--   if the value of (newest) is removed, the next one is searched for in public.orders.ordered_at
--   (users) is counted again for the values of changed rows, before and after
--     look up public.orders by (user_id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(DISTINCT author) AS authors FROM (SELECT user_id AS author FROM orders UNION ALL SELECT author_id FROM posts) q;
-- strategy: ADD: different values are counted again if a changed row has them
--   (authors) is counted again for the values of changed rows, before and after
--     look up public.orders by (user_id) from (user_id) of public.orders or (author_id) of public.posts
--     look up public.posts by (author_id) from (user_id) of public.orders or (author_id) of public.posts

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(DISTINCT lower(name)) AS names FROM users;
-- strategy: FULL: the whole query is run and compared with the stored rows: an aggregate over all rows that cannot be added up: column "names" counts different values that are not those of a column of each table

-- view
CREATE MATERIALIZED VIEW v AS
SELECT max(p.price) AS dearest, count(DISTINCT o.user_id) AS users
FROM orders o JOIN order_items i ON i.order_id = o.id JOIN products p ON p.id = i.product_id WHERE o.status = 'paid';
-- strategy: ADD: extremes are compared with those over the rows that are added and removed; different values are counted again if a changed row has them
--   a change of public.orders changes the totals
--     look up public.order_items by (order_id) from (id) of public.orders
--     look up public.products by (id) from (product_id) of public.order_items
--   a change of public.order_items changes the totals
--     look up public.orders by (id) from (order_id) of public.order_items
--     look up public.products by (id) from (product_id) of public.order_items
--   a change of public.products changes the totals
--     look up public.order_items by (product_id) from (id) of public.products
--     look up public.orders by (id) from (order_id) of public.order_items
--   if the value of (dearest) is removed, the next one is searched for in public.products.price
--   (users) is counted again for the values of changed rows, before and after
--     look up public.orders by (user_id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT max(price / 2) AS half FROM products;
-- strategy: ADD: extremes are compared with those over the rows that are added and removed
--   if the value of (half) is removed, the whole query is run

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS items FROM orders o LEFT JOIN order_items i ON i.order_id = o.id;
-- strategy: ADD: of affected (id), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders affects (id)
--   a change of public.order_items affects (id)
--     look up public.orders by (id) from (order_id) of public.order_items
--   the totals over the rows of affected (id), before and after, are computed from
--     public.orders by (id) from (id) of the affected keys
--     public.order_items by (order_id) from (id) of public.orders

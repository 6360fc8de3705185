-- view
CREATE MATERIALIZED VIEW v AS
SELECT * FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT * FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.*, 1 AS one FROM public.orders o WHERE o.status <> 'cancelled';
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT o.*, 1 AS one FROM _cv_input_0 o WHERE o.status <> 'cancelled'

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, ID AS order_id FROM Orders;
-- key: (order_id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT user_id, ID AS order_id FROM _cv_input_0 AS Orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status FROM orders;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT user_id, status FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id + 0 AS id FROM orders;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT id + 0 AS id FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT line, order_id, sum(quantity) OVER (PARTITION BY product_id ORDER BY order_id, line) AS running FROM order_items;
-- key: (order_id, line): the key of "public.order_items"
-- inputs: public.order_items
-- query
SELECT line, order_id, sum(quantity) OVER (PARTITION BY product_id ORDER BY order_id, line) AS running FROM _cv_input_0 AS order_items

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM (SELECT id, note FROM orders ORDER BY id LIMIT 10) newest;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id FROM (SELECT id, note FROM _cv_input_0 AS orders ORDER BY id LIMIT 10) newest

-- view
CREATE MATERIALIZED VIEW v (a, b) AS SELECT id, note FROM orders -- the end
-- key: (a): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT * FROM (
SELECT id, note FROM _cv_input_0 AS orders
) AS _cv_view(`a`, `b`)

-- view
CREATE MATERIALIZED VIEW v (`the id`, b) AS
WITH x AS (SELECT id, note FROM orders)
SELECT * FROM x;
-- key: (the id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT * FROM (
WITH x AS (SELECT id, note FROM _cv_input_0 AS orders)
SELECT * FROM x
) AS _cv_view(`the id`, `b`)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT * EXCEPT (note) FROM orders;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT * EXCEPT (note) FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT orders.id FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT orders.id FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT public.orders.id, orders.note FROM public.orders WHERE public.orders.status = 'public.orders' -- public.orders
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT orders.id, orders.note FROM _cv_input_0 AS orders WHERE orders.status = 'public.orders'

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id FROM sales.orders o JOIN orders ON orders.id = o.id;
-- key: (id): the keys of the joined tables
-- inputs: sales.orders, public.orders
-- query
SELECT o.id FROM _cv_input_0 o JOIN _cv_input_1 AS orders ON orders.id = o.id

-- view
CREATE MATERIALIZED VIEW v AS
WITH orders AS (SELECT id FROM orders WHERE status = 'x') SELECT orders.id FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
WITH orders AS (SELECT id FROM _cv_input_0 AS orders WHERE status = 'x') SELECT orders.id FROM orders

-- view
CREATE MATERIALIZED VIEW v AS
WITH a AS (SELECT id FROM users), b AS (SELECT id FROM a) SELECT id FROM b WHERE id IN (SELECT user_id FROM orders);
-- key: (id): the key of "public.users"
-- inputs: public.users, public.orders
-- query
WITH a AS (SELECT id FROM _cv_input_0 AS users), b AS (SELECT id FROM a) SELECT id FROM b WHERE id IN (SELECT user_id FROM _cv_input_1 AS orders)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT /*+ BROADCAST(users) */ users.id FROM users JOIN orders ON orders.user_id = users.id;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.users, public.orders
-- query
SELECT /*+ BROADCAST(users) */ users.id FROM _cv_input_0 AS users JOIN _cv_input_1 AS orders ON orders.user_id = users.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT 'é orders' AS x, id FROM /* the orders */ orders -- orders
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT 'é orders' AS x, id FROM /* the orders */ _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT a.id AS a, b.id AS b FROM orders a JOIN orders b ON b.user_id = a.id;
-- key: (b): the keys of the joined tables
-- inputs: public.orders
-- query
SELECT a.id AS a, b.id AS b FROM _cv_input_0 a JOIN _cv_input_0 b ON b.user_id = a.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id AS user FROM orders o;
-- key: (user): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT o.id AS user FROM _cv_input_0 o

-- view
CREATE MATERIALIZED VIEW v AS
WITH RECURSIVE r AS (SELECT id, 0 AS n FROM orders UNION ALL SELECT id, n + 1 FROM r WHERE n < 3) SELECT * FROM r;
-- key: none: a recursive query has no key
-- inputs: public.orders
-- query
WITH RECURSIVE r AS (SELECT id, 0 AS n FROM _cv_input_0 AS orders UNION ALL SELECT id, n + 1 FROM r WHERE n < 3) SELECT * FROM r

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user.id, u.name, user.n FROM users u JOIN (SELECT id, count(*) AS n FROM orders GROUP BY id) user ON user.id = u.id;
-- key: (id): the keys of the joined tables
-- inputs: public.users, public.orders
-- query
SELECT user.id, u.name, user.n FROM _cv_input_0 u JOIN (SELECT id, count(*) AS n FROM _cv_input_1 AS orders GROUP BY id) user ON user.id = u.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT `Order Items`.id, `my.schema`.`Order Items`.amount FROM `my.schema`.`Order Items`;
-- key: (id): the key of ""my.schema".Order Items"
-- inputs: "my.schema".Order Items
-- query
SELECT `Order Items`.id, `Order Items`.amount FROM _cv_input_0 AS `Order Items`

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.id FROM `My.Schema`.`order items` AS i JOIN `a``b` ON i.id = `a``b`.id JOIN public.`Orders` o ON o.id = i.id;
-- key: (id): the keys of the joined tables
-- inputs: "my.schema".Order Items, public.a`b, public.orders
-- query
SELECT i.id FROM _cv_input_0 AS i JOIN _cv_input_1 AS `a``b` ON i.id = `a``b`.id JOIN _cv_input_2 o ON o.id = i.id

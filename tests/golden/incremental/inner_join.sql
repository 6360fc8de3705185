-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--   a change of public.users affects (id)
--     look up public.orders by (user_id) from (id) of public.users
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.users by (id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, i.line, p.sku FROM orders o, order_items i, products p WHERE i.order_id = o.id AND p.id = i.product_id;
-- strategy: KEYS: the rows of affected (id, line) are looked up, computed again, and compared
--   a change of public.orders affects (id, line)
--     look up public.order_items by (order_id) from (id) of public.orders
--   a change of public.order_items affects (id, line)
--   a change of public.products affects (id, line)
--     look up public.order_items by (product_id) from (id) of public.products
--   the rows of affected (id, line) are computed again from
--     public.order_items by (order_id, line) from (id, line) of the affected keys
--     public.orders by (id) from (order_id) of public.order_items
--     public.products by (id) from (product_id) of public.order_items

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, u.id AS other FROM orders o JOIN users u ON u.id > o.user_id;
-- strategy: FULL: the whole query is run and compared with the stored rows: no equality of columns joins "public.users"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.order_id, i.line, p.id FROM order_items i JOIN products p ON p.id = i.sku;
-- strategy: FULL: the whole query is run and compared with the stored rows: no equality of columns joins "public.products"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT f.follower_id, g.followee_id FROM follows f JOIN follows g ON g.follower_id = f.followee_id;
-- strategy: KEYS: the rows of affected (follower_id, followee_id) are looked up, computed again, and compared
--   a change of public.follows AS f affects (follower_id, followee_id)
--     look up public.follows AS g by (follower_id) from (followee_id) of public.follows AS f
--   a change of public.follows AS g affects (follower_id, followee_id)
--     look up public.follows AS f by (followee_id) from (follower_id) of public.follows AS g
--   the rows of affected (follower_id, followee_id) are computed again from
--     public.follows AS f by (follower_id) from (follower_id) of the affected keys
--     public.follows AS g by (followee_id) from (followee_id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT a.id, b.id AS other FROM products a JOIN products b ON a.weight = b.weight;
-- strategy: KEYS: the rows of affected (id, other) are looked up, computed again, and compared
--   a change of public.products AS a affects (id, other)
--     look up public.products AS b by (weight) from (weight) of public.products AS a
--   a change of public.products AS b affects (id, other)
--     look up public.products AS a by (weight) from (weight) of public.products AS b
--   the rows of affected (id, other) are computed again from
--     public.products AS a by (id) from (id) of the affected keys
--     public.products AS b by (id) from (other) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, p.id AS product FROM orders o JOIN products p ON o.note <=> p.sku;
-- strategy: KEYS: the rows of affected (id, product) are looked up, computed again, and compared
--   a change of public.orders affects (id, product)
--     look up public.products by (sku) from (note) of public.orders, NULL matches NULL
--   a change of public.products affects (id, product)
--     look up public.orders by (note) from (sku) of public.products, NULL matches NULL
--   the rows of affected (id, product) are computed again from
--     public.orders by (id) from (id) of the affected keys
--     public.products by (id) from (product) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, p.id AS product FROM users u LEFT JOIN orders o ON o.user_id = u.id JOIN products p ON o.note <=> p.sku;
-- strategy: FULL: the whole query is run and compared with the stored rows: no equality of columns joins "public.products" to the rest

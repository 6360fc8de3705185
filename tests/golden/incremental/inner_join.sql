-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, u.name FROM orders o JOIN users u ON u.id = o.user_id;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.orders affects (id)
--   a change of public.users affects (id)
--     look up public.orders by (user_id) from (public.users.id)
--   the rows of affected (id) are computed again from
--     public.orders by (id) from (affected keys 1.id)
--     public.users by (id) from (public.orders.user_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, i.line, p.sku FROM orders o, order_items i, products p WHERE i.order_id = o.id AND p.id = i.product_id;
-- strategy: KEYS: the rows of affected (id, line) are looked up, computed again, and compared
--   a change of public.orders affects (id, line)
--     look up public.order_items by (order_id) from (public.orders.id)
--   a change of public.order_items affects (id, line)
--   a change of public.products affects (id, line)
--     look up public.order_items by (product_id) from (public.products.id)
--   the rows of affected (id, line) are computed again from
--     public.order_items by (order_id, line) from (affected keys 1.id, affected keys 1.line)
--     public.orders by (id) from (public.order_items.order_id)
--     public.products by (id) from (public.order_items.product_id)

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
--   a change of public.follows affects (follower_id, followee_id)
--     look up public.follows by (follower_id) from (public.follows.followee_id)
--   a change of public.follows affects (follower_id, followee_id)
--     look up public.follows by (followee_id) from (public.follows.follower_id)
--   the rows of affected (follower_id, followee_id) are computed again from
--     public.follows by (follower_id) from (affected keys 1.follower_id)
--     public.follows by (followee_id) from (affected keys 2.followee_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT a.id, b.id AS other FROM products a JOIN products b ON a.weight = b.weight;
-- strategy: KEYS: the rows of affected (id, other) are looked up, computed again, and compared
--   a change of public.products affects (id, other)
--     look up public.products by (weight) from (public.products.weight)
--   a change of public.products affects (id, other)
--     look up public.products by (weight) from (public.products.weight)
--   the rows of affected (id, other) are computed again from
--     public.products by (id) from (affected keys 1.id)
--     public.products by (id) from (affected keys 2.other)

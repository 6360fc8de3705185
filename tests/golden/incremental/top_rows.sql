-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, place, post_id, author_id FROM (SELECT f.follower_id AS user_id, p.id AS post_id, p.author_id, row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, p.id DESC) AS place FROM follows f JOIN posts p ON p.author_id = f.followee_id WHERE NOT f.muted) ranked WHERE place <= 100;
-- strategy: PATCH: the stored rows of affected (user_id) are merged with the rows that are added
--   a change of public.follows affects (user_id)
--   a change of public.posts affects (user_id)
--     look up public.follows by (followee_id) from (author_id) of public.posts
--   the stored rows of affected (user_id) are merged from
--     public.follows by (follower_id, followee_id) from (user_id, author_id) of the stored rows
--     public.posts by (id) from (post_id) of the stored rows
--   with the rows that are added to public.follows
--     and public.posts by (author_id) from (followee_id) of public.follows
--   with the rows that are added to public.posts
--     and public.follows by (followee_id) from (author_id) of public.posts
--   where they no longer give the first 100, (user_id) is computed again from
--     public.follows by (follower_id) from (user_id) of the affected keys
--     public.posts by (author_id) from (followee_id) of public.follows

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, id FROM orders QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY ordered_at DESC) = 1;
-- strategy: PATCH: the stored rows of affected (user_id) are merged with the rows that are added
--   a change of public.orders affects (user_id)
--   the stored rows of affected (user_id) are merged from
--     public.orders by (id) from (id) of the stored rows
--   with the rows that are added to public.orders
--   where they no longer give the first 1, (user_id) is computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, id FROM (SELECT user_id, id, row_number() OVER (PARTITION BY user_id ORDER BY ordered_at) AS place FROM orders) q WHERE place <= 3 AND id > 7;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, id FROM (SELECT o.user_id, o.id, row_number() OVER (PARTITION BY o.user_id ORDER BY o.id) AS place FROM orders o LEFT JOIN users u ON u.id = o.user_id) q WHERE place <= 3;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   a change of public.users affects (user_id)
--     look up public.orders by (user_id) from (id) of public.users
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL
--     public.users by (id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, price FROM products ORDER BY price DESC LIMIT 10;
-- strategy: PATCH: the stored rows are merged with the rows that are added
--   the stored rows are merged from
--     public.products by (id) from (id) of the stored rows
--   with the rows that are added to public.products
--   where they no longer give the first 10, the whole query is run

-- view
CREATE MATERIALIZED VIEW v AS
SELECT price FROM products ORDER BY price DESC LIMIT 10;
-- strategy: PATCH: the first rows are searched for
--   _cv_v_1: SELECT price FROM products
--   the first 10 are searched for in _cv_v_1.price
--   where they are not found, all rows are read

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.order_id, i.line, p.price FROM order_items i JOIN products p ON p.id = i.product_id ORDER BY p.price DESC LIMIT 10 OFFSET 20;
-- strategy: PATCH: the first rows are searched for
--   the first 10 after 20 others are searched for in public.products.price
--     and look up public.order_items by (product_id) from (id) of public.products
--   where they are not found, the whole query is run

-- view
CREATE MATERIALIZED VIEW v AS
SELECT 'order' AS kind, id, ordered_at AS at FROM orders UNION ALL SELECT 'post', id, created_at FROM posts ORDER BY at DESC LIMIT 10;
-- strategy: PATCH: the first rows are searched for
--   _cv_v_1: SELECT 'order' AS kind, id, ordered_at AS at FROM orders UNION ALL SELECT 'post', id, created_at FROM posts
--   the first 10 are searched for in _cv_v_1.at
--   where they are not found, all rows are read

-- view
CREATE MATERIALIZED VIEW v AS
WITH ranked AS (SELECT author_id, id, created_at, row_number() OVER (PARTITION BY author_id ORDER BY created_at DESC, id) AS place FROM posts)
SELECT author_id, id, created_at FROM ranked WHERE place <= 3;
-- strategy: PATCH: the stored rows of affected (author_id) are merged with the rows that are added
--   a change of public.posts affects (author_id)
--   the stored rows of affected (author_id) are merged from
--     public.posts by (id) from (id) of the stored rows
--   with the rows that are added to public.posts
--   where they no longer give the first 3, (author_id) is computed again from
--     public.posts by (author_id) from (author_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id AS order_id, i.line, i.quantity FROM orders o JOIN order_items i ON i.order_id = o.id;
-- key: (order_id, line): the keys of the joined tables
-- inputs: public.orders, public.order_items
-- query
SELECT o.id AS order_id, i.line, i.quantity FROM _cv_input_0 o JOIN _cv_input_1 i ON i.order_id = o.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.order_id, i.line, o.status FROM order_items i JOIN orders o ON o.id = i.order_id;
-- key: (order_id, line): the keys of the joined tables
-- inputs: public.order_items, public.orders
-- query
SELECT i.order_id, i.line, o.status FROM _cv_input_0 i JOIN _cv_input_1 o ON o.id = i.order_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.*, o.status FROM order_items i LEFT JOIN orders o ON i.order_id = o.id AND o.status <> 'x';
-- key: (order_id, line): the keys of the joined tables
-- inputs: public.order_items, public.orders
-- query
SELECT i.*, o.status FROM _cv_input_0 i LEFT JOIN _cv_input_1 o ON i.order_id = o.id AND o.status <> 'x'

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id AS u, o.id AS o FROM users u LEFT JOIN orders o ON o.user_id = u.id;
-- key: (u, o): the keys of the joined tables
-- inputs: public.users, public.orders
-- query
SELECT u.id AS u, o.id AS o FROM _cv_input_0 u LEFT JOIN _cv_input_1 o ON o.user_id = u.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id AS u, p.id AS p FROM users u, products p;
-- key: (u, p): the keys of the joined tables
-- inputs: public.users, public.products
-- query
SELECT u.id AS u, p.id AS p FROM _cv_input_0 u, _cv_input_1 p

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id AS u, p.id AS p FROM users u FULL JOIN products p ON p.stock = u.id;
-- key: (u, p): the keys of the joined tables
-- inputs: public.users, public.products
-- query
SELECT u.id AS u, p.id AS p FROM _cv_input_0 u FULL JOIN _cv_input_1 p ON p.stock = u.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id FROM orders o RIGHT JOIN users u ON u.id = o.user_id;
-- key: none: column "id" of the key of "u" is not selected unchanged
-- inputs: public.orders, public.users
-- query
SELECT o.id FROM _cv_input_0 o RIGHT JOIN _cv_input_1 u ON u.id = o.user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id FROM orders o LEFT SEMI JOIN order_items i ON i.order_id = o.id;
-- key: (id): the keys of the joined tables
-- inputs: public.orders, public.order_items
-- query
SELECT o.id FROM _cv_input_0 o LEFT SEMI JOIN _cv_input_1 i ON i.order_id = o.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, note FROM orders o WHERE NOT EXISTS (SELECT 1 FROM order_items WHERE order_items.order_id = o.id);
-- key: (id): the key of "public.orders"
-- inputs: public.orders, public.order_items
-- query
SELECT id, note FROM _cv_input_0 o WHERE NOT EXISTS (SELECT 1 FROM _cv_input_1 AS order_items WHERE order_items.order_id = o.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.line, i.order_id FROM order_items i JOIN products p ON p.sku = i.sku;
-- key: none: column "id" of the key of "p" is not selected unchanged
-- inputs: public.order_items, public.products
-- query
SELECT i.line, i.order_id FROM _cv_input_0 i JOIN _cv_input_1 p ON p.sku = i.sku

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.line, i.order_id, u.name FROM order_items i JOIN users u ON u.name = i.order_id;
-- key: none: column "id" of the key of "u" is not selected unchanged
-- inputs: public.order_items, public.users
-- query
SELECT i.line, i.order_id, u.name FROM _cv_input_0 i JOIN _cv_input_1 u ON u.name = i.order_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.line, i.order_id FROM order_items i JOIN users u ON u.id = i.sku;
-- key: none: column "id" of the key of "u" is not selected unchanged
-- inputs: public.order_items, public.users
-- query
SELECT i.line, i.order_id FROM _cv_input_0 i JOIN _cv_input_1 u ON u.id = i.sku

-- view
CREATE MATERIALIZED VIEW v AS
SELECT order_id, line, n FROM order_items i LEFT JOIN (SELECT product_id, count(*) AS n FROM order_items GROUP BY product_id) s ON s.product_id = i.product_id;
-- key: (order_id, line): the keys of the joined tables
-- inputs: public.order_items
-- query
SELECT order_id, line, n FROM _cv_input_0 i LEFT JOIN (SELECT product_id, count(*) AS n FROM _cv_input_0 AS order_items GROUP BY product_id) s ON s.product_id = i.product_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT i.order_id, line, n, s.k FROM order_items i LEFT JOIN (SELECT quantity AS k, sku, count(*) AS n FROM order_items GROUP BY quantity, sku) s ON s.k <=> i.product_id;
-- key: none: the key of the outer-joined side may be NULL in the join with "s"
-- inputs: public.order_items
-- query
SELECT i.order_id, line, n, s.k FROM _cv_input_0 i LEFT JOIN (SELECT quantity AS k, sku, count(*) AS n FROM _cv_input_0 AS order_items GROUP BY quantity, sku) s ON s.k <=> i.product_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, n FROM orders JOIN (SELECT order_id AS id, count(*) AS n FROM order_items GROUP BY 1) c USING (id);
-- key: (id): the keys of the joined tables
-- inputs: public.orders, public.order_items
-- query
SELECT id, n FROM _cv_input_0 AS orders JOIN (SELECT order_id AS id, count(*) AS n FROM _cv_input_1 AS order_items GROUP BY 1) c USING (id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT a.id FROM orders a, users b, products c WHERE b.id = c.stock AND a.user_id = b.id;
-- key: none: column "id" of the key of "c" is not selected unchanged
-- inputs: public.orders, public.users, public.products
-- query
SELECT a.id FROM _cv_input_0 a, _cv_input_1 b, _cv_input_2 c WHERE b.id = c.stock AND a.user_id = b.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, rank, post_id, author_id FROM (
    SELECT f.follower_id AS user_id,
        row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, p.id DESC) AS rank,
        p.id AS post_id, p.author_id
    FROM follows f JOIN posts p ON p.author_id = f.followee_id JOIN users a ON a.id = p.author_id
) ranked WHERE rank <= 100;
-- key: (user_id, author_id, post_id): the keys of the joined tables
-- inputs: public.follows, public.posts, public.users
-- query
SELECT user_id, rank, post_id, author_id FROM (
    SELECT f.follower_id AS user_id,
        row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, p.id DESC) AS rank,
        p.id AS post_id, p.author_id
    FROM _cv_input_0 f JOIN _cv_input_1 p ON p.author_id = f.followee_id JOIN _cv_input_2 a ON a.id = p.author_id
) ranked WHERE rank <= 100

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, status FROM orders ORDER BY ordered_at DESC NULLS LAST -- newest
LIMIT 3;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, status FROM _cv_input_0 AS orders ORDER BY ordered_at DESC NULLS LAST, id -- newest
LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT status FROM orders ORDER BY ordered_at LIMIT 3 OFFSET 2;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT status FROM _cv_input_0 AS orders ORDER BY ordered_at, orders.id LIMIT 3 OFFSET 2

-- view
CREATE MATERIALIZED VIEW v AS
SELECT status FROM orders ORDER BY status LIMIT 3;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT status FROM _cv_input_0 AS orders ORDER BY status LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT status AS s, note FROM orders ORDER BY 1, orders.id LIMIT 3;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT status AS s, note FROM _cv_input_0 AS orders ORDER BY 1, orders.id LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT status, note FROM orders ORDER BY status LIMIT 3;
-- key: (status, note): all columns of DISTINCT
-- inputs: public.orders
-- query
SELECT DISTINCT status, note FROM _cv_input_0 AS orders ORDER BY status, note LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, count(*) AS n FROM orders GROUP BY user_id ORDER BY n DESC LIMIT 10;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, count(*) AS n FROM _cv_input_0 AS orders GROUP BY user_id ORDER BY n DESC, user_id LIMIT 10

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM orders GROUP BY user_id, lower(status) ORDER BY n DESC, lower(status) LIMIT 10;
-- key: none: the group expression "user_id" is not selected unchanged
-- inputs: public.orders
-- query
SELECT count(*) AS n FROM _cv_input_0 AS orders GROUP BY user_id, lower(status) ORDER BY n DESC, lower(status) LIMIT 10

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, note FROM orders UNION ALL SELECT id, name FROM users ORDER BY note LIMIT 3;
-- key: none: UNION ALL may return a row twice
-- inputs: public.orders, public.users
-- query
SELECT id, note FROM _cv_input_0 AS orders UNION ALL SELECT id, name FROM _cv_input_1 AS users ORDER BY note, id LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, (SELECT o.status FROM orders o WHERE o.user_id = u.id ORDER BY o.ordered_at DESC LIMIT 1) AS last FROM users u WHERE id IN (SELECT user_id FROM orders ORDER BY ordered_at LIMIT 5);
-- key: (id): the key of "public.users"
-- inputs: public.orders, public.users
-- query
SELECT id, (SELECT o.status FROM _cv_input_0 o WHERE o.user_id = u.id ORDER BY o.ordered_at DESC, o.id LIMIT 1) AS last FROM _cv_input_1 u WHERE id IN (SELECT user_id FROM _cv_input_0 AS orders ORDER BY ordered_at, orders.id LIMIT 5)

-- view
CREATE MATERIALIZED VIEW v AS
WITH top AS (SELECT id, name FROM users ORDER BY name LIMIT 5) SELECT * FROM top ORDER BY name LIMIT 2;
-- key: (id): the key of "public.users"
-- inputs: public.users
-- query
WITH top AS (SELECT id, name FROM _cv_input_0 AS users ORDER BY name, id LIMIT 5) SELECT * FROM top ORDER BY name, id LIMIT 2

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, x.note FROM users u, LATERAL (SELECT note FROM orders o WHERE o.user_id = u.id ORDER BY ordered_at LIMIT 1) x;
-- key: none: "x" has no key: an item of FROM that is neither a table nor a query has no key
-- inputs: public.users, public.orders
-- query
SELECT u.id, x.note FROM _cv_input_0 u, LATERAL (SELECT note FROM _cv_input_1 o WHERE o.user_id = u.id ORDER BY ordered_at, o.id LIMIT 1) x

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY ordered_at DESC) AS n FROM orders QUALIFY n <= 3;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, row_number() OVER (PARTITION BY user_id ORDER BY ordered_at DESC, orders.id) AS n FROM _cv_input_0 AS orders QUALIFY n <= 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT f.follower_id, p.id, row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, p.id DESC) AS n FROM follows f JOIN posts p ON p.author_id = f.followee_id JOIN users u ON u.id = p.author_id;
-- key: none: column "followee_id" of the key of "f" is not selected unchanged
-- inputs: public.follows, public.posts, public.users
-- query
SELECT f.follower_id, p.id, row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, p.id DESC) AS n FROM _cv_input_0 f JOIN _cv_input_1 p ON p.author_id = f.followee_id JOIN _cv_input_2 u ON u.id = p.author_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT f.follower_id, p.id, row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC) AS n FROM follows f LEFT JOIN posts p ON p.author_id = f.followee_id;
-- key: none: column "followee_id" of the key of "f" is not selected unchanged
-- inputs: public.follows, public.posts
-- query
SELECT f.follower_id, p.id, row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, f.followee_id, p.id) AS n FROM _cv_input_0 f LEFT JOIN _cv_input_1 p ON p.author_id = f.followee_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, lag(status) OVER w AS a, lead(status, 2) IGNORE NULLS OVER w AS b, ntile(4) OVER w AS c, first_value(status) OVER w AS d FROM orders WINDOW w AS (PARTITION BY user_id ORDER BY ordered_at);
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, lag(status) OVER w AS a, lead(status, 2) IGNORE NULLS OVER w AS b, ntile(4) OVER w AS c, first_value(status) OVER w AS d FROM _cv_input_0 AS orders WINDOW w AS (PARTITION BY user_id ORDER BY ordered_at, orders.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, rank() OVER (ORDER BY ordered_at) AS a, dense_rank() OVER (ORDER BY ordered_at) AS b, percent_rank() OVER (ORDER BY ordered_at) AS e, cume_dist() OVER (ORDER BY ordered_at) AS f, sum(id) OVER (ORDER BY ordered_at) AS c, count(*) OVER (PARTITION BY user_id) AS d FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, rank() OVER (ORDER BY ordered_at) AS a, dense_rank() OVER (ORDER BY ordered_at) AS b, percent_rank() OVER (ORDER BY ordered_at) AS e, cume_dist() OVER (ORDER BY ordered_at) AS f, sum(id) OVER (ORDER BY ordered_at) AS c, count(*) OVER (PARTITION BY user_id) AS d FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, sum(id) OVER (ORDER BY ordered_at ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, last_value(status) OVER (ORDER BY ordered_at ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS b, nth_value(status, 2) OVER (ORDER BY ordered_at RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS c FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, sum(id) OVER (ORDER BY ordered_at, orders.id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, last_value(status) OVER (ORDER BY ordered_at, orders.id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS b, nth_value(status, 2) OVER (ORDER BY ordered_at, orders.id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS c FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, row_number() OVER (ORDER BY count(*) DESC) AS n FROM orders GROUP BY user_id;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, row_number() OVER (ORDER BY count(*) DESC, orders.user_id) AS n FROM _cv_input_0 AS orders GROUP BY user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, listagg(note, ',') WITHIN GROUP (ORDER BY status) AS a, listagg(note) WITHIN GROUP (ORDER BY note) AS b, listagg(DISTINCT note) WITHIN GROUP (ORDER BY note) AS c, mode() WITHIN GROUP (ORDER BY note) AS d FROM orders GROUP BY user_id;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, listagg(note, ',') WITHIN GROUP (ORDER BY status, orders.id) AS a, listagg(note) WITHIN GROUP (ORDER BY note) AS b, listagg(DISTINCT note) WITHIN GROUP (ORDER BY note) AS c, mode() WITHIN GROUP (ORDER BY note) AS d FROM _cv_input_0 AS orders GROUP BY user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, `row_number`() OVER (ORDER BY ordered_at) AS a, system.builtin.lag(status) OVER (ORDER BY ordered_at) AS b FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, `row_number`() OVER (ORDER BY ordered_at, orders.id) AS a, system.builtin.lag(status) OVER (ORDER BY ordered_at, orders.id) AS b FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT tag, row_number() OVER (ORDER BY tag) AS n FROM (SELECT explode(tags) AS tag FROM posts) t;
-- key: none: a function that returns several rows has no key
-- inputs: public.posts
-- query
SELECT tag, row_number() OVER (ORDER BY tag) AS n FROM (SELECT explode(tags) AS tag FROM _cv_input_0 AS posts) t

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM orders ORDER BY n LIMIT 1;
-- key: (): an aggregate without GROUP BY has one row
-- inputs: public.orders
-- query
SELECT count(*) AS n FROM _cv_input_0 AS orders ORDER BY n LIMIT 1

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders ORDER BY status LIMIT ALL;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id FROM _cv_input_0 AS orders ORDER BY status LIMIT ALL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT name COLLATE UTF8_LCASE AS n FROM users ORDER BY n LIMIT 3;
-- key: none: column "id" of the key of "users" is not selected unchanged
-- inputs: public.users
-- query
SELECT name COLLATE UTF8_LCASE AS n FROM _cv_input_0 AS users ORDER BY n, users.id LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT from_json(name, 'n STRING COLLATE UTF8_LCASE').n AS n FROM users ORDER BY n LIMIT 3;
-- key: none: column "id" of the key of "users" is not selected unchanged
-- inputs: public.users
-- query
SELECT from_json(name, 'n STRING COLLATE UTF8_LCASE').n AS n FROM _cv_input_0 AS users ORDER BY n, users.id LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
SELECT listagg(name) WITHIN GROUP (ORDER BY name COLLATE UTF8_LCASE) AS n FROM users;
-- key: (): an aggregate without GROUP BY has one row
-- inputs: public.users
-- query
SELECT listagg(name) WITHIN GROUP (ORDER BY name COLLATE UTF8_LCASE, users.id) AS n FROM _cv_input_0 AS users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT CAST(id AS FLOAT), status FROM orders ORDER BY id LIMIT 2;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT * FROM (
SELECT CAST(id AS FLOAT), status FROM _cv_input_0 AS orders ORDER BY id, orders.id LIMIT 2
) AS _cv_view(`id`, `status`)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT (user_id), id AS number FROM orders ORDER BY user_id LIMIT 2;
-- key: (number): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT * FROM (
SELECT (user_id), id AS number FROM _cv_input_0 AS orders ORDER BY user_id, `number` LIMIT 2
) AS _cv_view(`user_id`, `number`)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT stock AS id, id + 1 AS z FROM products ORDER BY 1, id + 1 LIMIT 2;
-- key: none: column "id" of the key of "products" is not selected unchanged
-- inputs: public.products
-- query
SELECT stock AS id, id + 1 AS z FROM _cv_input_0 AS products ORDER BY 1, id + 1, products.id LIMIT 2

-- view
CREATE MATERIALIZED VIEW v AS
SELECT stock, named_struct('id', stock).id AS products FROM products ORDER BY products.id LIMIT 2;
-- key: none: column "id" of the key of "products" is not selected unchanged
-- inputs: public.products
-- query
SELECT stock, named_struct('id', stock).id AS products FROM _cv_input_0 AS products ORDER BY products.id, stock, products LIMIT 2

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, row_number() OVER (PARTITION BY user_id ORDER BY status = 'B') AS r FROM orders GROUP BY user_id, status = 'b', status = 'B';
-- error: v.sql:2:57: row_number() depends on the order of rows that tie
-- hint: end ORDER BY with columns that identify a row

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, to_char(id, '9') AS m FROM orders ORDER BY to_char(id, '99'), user_id LIMIT 2;
-- key: none: column "id" of the key of "orders" is not selected unchanged
-- inputs: public.orders
-- query
SELECT user_id, to_char(id, '9') AS m FROM _cv_input_0 AS orders ORDER BY to_char(id, '99'), user_id, orders.id LIMIT 2

-- view
CREATE MATERIALIZED VIEW v AS
SELECT tag, p, row_number() OVER (PARTITION BY p ORDER BY tag) AS n FROM (SELECT id AS p, author_id, explode(tags) AS tag FROM posts) t WHERE author_id > 3;
-- error: v.sql:2:50: row_number() depends on the order of rows that tie
-- hint: end ORDER BY with columns that identify a row

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, last_value(status) OVER (ORDER BY ordered_at) AS s FROM orders;
-- error: v.sql:2:37: last_value() over a RANGE frame returns any of the rows that tie
-- hint: end ORDER BY with orders.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, first_value(status) OVER (ORDER BY ordered_at RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) AS s FROM orders;
-- error: v.sql:2:38: first_value() over a RANGE frame returns any of the rows that tie
-- hint: end ORDER BY with orders.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, row_number() OVER w AS n, rank() OVER w AS r FROM orders WINDOW w AS (ORDER BY ordered_at);
-- error: v.sql:2:82: row_number() needs an order without ties, rank() over the same window one with ties
-- hint: end ORDER BY with orders.id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, sum(id) OVER (PARTITION BY user_id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM orders;
-- error: v.sql:2:12: sum() over a ROWS frame depends on the order of rows
-- hint: add ORDER BY with columns that identify a row

-- view
CREATE MATERIALIZED VIEW v AS
SELECT * FROM (SELECT *, explode(tags) FROM posts) ORDER BY created_at LIMIT 3;
-- error: v.sql:2:52: LIMIT returns any of the rows that tie
-- hint: end ORDER BY with columns that identify a row

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, row_number() OVER (ORDER BY count(*)) AS n FROM orders GROUP BY ROLLUP (user_id);
-- error: v.sql:2:36: row_number() depends on the order of rows that tie
-- hint: end ORDER BY with columns that identify a row

-- view
CREATE MATERIALIZED VIEW v AS
SELECT listagg(tag) WITHIN GROUP (ORDER BY p) AS l FROM (SELECT id AS p, explode(tags) AS tag FROM posts) t;
-- error: v.sql:2:35: the order of a list depends on rows that tie
-- hint: end ORDER BY with columns that identify a row

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders ORDER BY row_number() OVER (ORDER BY status) LIMIT 3;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id FROM _cv_input_0 AS orders ORDER BY row_number() OVER (ORDER BY status, orders.id), id LIMIT 3

-- view
CREATE MATERIALIZED VIEW v AS
WITH RECURSIVE r AS (SELECT id, row_number() OVER (ORDER BY status) AS n FROM orders UNION ALL SELECT id, n + 1 FROM r WHERE n < 3) SELECT * FROM r;
-- error: v.sql:2:52: row_number() depends on the order of rows that tie
-- hint: end ORDER BY with columns that identify a row

-- view
CREATE MATERIALIZED VIEW v AS
SELECT tag COLLATE UTF8_LCASE AS t FROM (SELECT explode(tags) AS tag FROM posts) p ORDER BY t LIMIT 3;
-- error: v.sql:2:84: LIMIT returns any of the rows that tie
-- hint: end ORDER BY with columns that identify a row

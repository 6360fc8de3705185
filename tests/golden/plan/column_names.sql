-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*), sum(id), user_id, string(max(note)), coalesce(max(note), 'a') FROM orders GROUP BY user_id;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT * FROM (
SELECT count(*), sum(id), user_id, string(max(note)), coalesce(max(note), 'a') FROM _cv_input_0 AS orders GROUP BY user_id
) AS _cv_view(`count`, `sum`, `user_id`, `max`, `coalesce`)

-- view
CREATE MATERIALIZED VIEW v AS
WITH o AS (SELECT id, note FROM orders) (SELECT /*+ COALESCE(1) */ DISTINCT CAST(upper(note) AS STRING), id FROM o);
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT * FROM (
WITH o AS (SELECT id, note FROM _cv_input_0 AS orders) (SELECT /*+ COALESCE(1) */ DISTINCT CAST(upper(note) AS STRING), id FROM o)
) AS _cv_view(`upper`, `id`)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, row_number() OVER (ORDER BY id), CASE WHEN id > 1 THEN note END, CASE WHEN id > 1 THEN 'a' ELSE note END, (SELECT max(id) FROM users), EXISTS (SELECT 1 FROM users), extract(year FROM ordered_at), date_add(ordered_at, 1) FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.users, public.orders
-- query
SELECT * FROM (
SELECT id, row_number() OVER (ORDER BY id), CASE WHEN id > 1 THEN note END, CASE WHEN id > 1 THEN 'a' ELSE note END, (SELECT max(id) FROM _cv_input_0 AS users), EXISTS (SELECT 1 FROM _cv_input_0 AS users), extract(year FROM ordered_at), date_add(ordered_at, 1) FROM _cv_input_1 AS orders
) AS _cv_view(`id`, `row_number`, `case`, `note`, `max`, `exists`, `extract`, `date_add`)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) FILTER (WHERE id > 1) FROM orders UNION ALL SELECT 1 AS one FROM users;
-- key: none: UNION ALL may return a row twice
-- inputs: public.orders, public.users
-- query
SELECT * FROM (
SELECT count(*) FILTER (WHERE id > 1) FROM _cv_input_0 AS orders UNION ALL SELECT 1 AS one FROM _cv_input_1 AS users
) AS _cv_view(`count`)

-- view
CREATE MATERIALIZED VIEW v (a, b) AS
SELECT id, count(*) FROM orders GROUP BY id;
-- key: (a): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT * FROM (
SELECT id, count(*) FROM _cv_input_0 AS orders GROUP BY id
) AS _cv_view(`a`, `b`)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, id + 1 FROM orders;
-- error: v.sql:2:12: a column without a name
-- hint: give it a name with AS

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, upper(concat(note, ',')),
  'a' FROM orders;
-- error: v.sql:3:3: a column without a name
-- hint: give it a name with AS

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, explode(tags) FROM posts;
-- key: none: a function that returns several rows has no key
-- inputs: public.posts
-- query
SELECT id, explode(tags) FROM _cv_input_0 AS posts

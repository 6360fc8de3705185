-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(id)) AS ids FROM orders GROUP BY user_id;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, sort_array(collect_list(id)) AS ids FROM _cv_input_0 AS orders GROUP BY user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, transform(array_sort(collect_list(struct(ordered_at, id))), x -> x.id) AS ids FROM orders GROUP BY user_id;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, transform(array_sort(collect_list(struct(ordered_at, id))), x -> x.id) AS ids FROM _cv_input_0 AS orders GROUP BY user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, listagg(status, ',') WITHIN GROUP (ORDER BY id) AS s FROM orders GROUP BY user_id;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, listagg(status, ',') WITHIN GROUP (ORDER BY id) AS s FROM _cv_input_0 AS orders GROUP BY user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, first_value(status) OVER (PARTITION BY user_id ORDER BY id) AS s FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, first_value(status) OVER (PARTITION BY user_id ORDER BY id) AS s FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, last(note) IGNORE NULLS OVER w AS s FROM orders WINDOW w AS (PARTITION BY user_id ORDER BY id);
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT id, last(note) IGNORE NULLS OVER w AS s FROM _cv_input_0 AS orders WINDOW w AS (PARTITION BY user_id ORDER BY id)

-- view
CREATE MATERIALIZED VIEW v AS
(SELECT id FROM orders ORDER BY id LIMIT 3) UNION ALL (SELECT id FROM users ORDER BY id LIMIT 3 OFFSET 1);
-- key: none: UNION ALL may return a row twice
-- inputs: public.orders, public.users
-- query
(SELECT id FROM _cv_input_0 AS orders ORDER BY id LIMIT 3) UNION ALL (SELECT id FROM _cv_input_1 AS users ORDER BY id LIMIT 3 OFFSET 1)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT unix_timestamp(ordered_at) AS s, 'now' AS word, id FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT unix_timestamp(ordered_at) AS s, 'now' AS word, id FROM _cv_input_0 AS orders

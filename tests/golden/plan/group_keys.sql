-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, count(*) AS n FROM orders GROUP BY user_id;
-- key: (user_id): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, count(*) AS n FROM _cv_input_0 AS orders GROUP BY user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n, lower(status) AS status2 FROM orders GROUP BY lower(status);
-- key: (status2): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT count(*) AS n, lower(status) AS status2 FROM _cv_input_0 AS orders GROUP BY lower(status)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT lower(status) AS status, count(*) AS n FROM orders GROUP BY status;
-- key: none: the group expression "status" is not selected unchanged
-- inputs: public.orders
-- query
SELECT lower(status) AS status, count(*) AS n FROM _cv_input_0 AS orders GROUP BY status

-- view
CREATE MATERIALIZED VIEW v AS
SELECT lower(note) AS n2, count(*) AS n FROM orders GROUP BY n2;
-- key: (n2): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT lower(note) AS n2, count(*) AS n FROM _cv_input_0 AS orders GROUP BY n2

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id AS u, date_trunc('day', ordered_at) AS day, count(*) AS n FROM orders GROUP BY 1, 2 HAVING count(*) > 1;
-- key: (u, day): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id AS u, date_trunc('day', ordered_at) AS day, count(*) AS n FROM _cv_input_0 AS orders GROUP BY 1, 2 HAVING count(*) > 1

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n FROM orders GROUP BY user_id;
-- key: none: the group expression "user_id" is not selected unchanged
-- inputs: public.orders
-- query
SELECT count(*) AS n FROM _cv_input_0 AS orders GROUP BY user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, count(*) AS n FROM orders GROUP BY ALL;
-- key: (user_id, status): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, status, count(*) AS n FROM _cv_input_0 AS orders GROUP BY ALL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, count(*) AS n FROM orders GROUP BY user_id, status WITH ROLLUP;
-- key: none: grouping sets may return a row twice
-- inputs: public.orders
-- query
SELECT user_id, status, count(*) AS n FROM _cv_input_0 AS orders GROUP BY user_id, status WITH ROLLUP

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, count(*) AS n FROM orders GROUP BY GROUPING SETS ((user_id), ());
-- key: none: grouping sets may return a row twice
-- inputs: public.orders
-- query
SELECT user_id, count(*) AS n FROM _cv_input_0 AS orders GROUP BY GROUPING SETS ((user_id), ())

-- view
CREATE MATERIALIZED VIEW v AS
SELECT count(*) AS n, sum(quantity) AS q FROM order_items;
-- key: (): an aggregate without GROUP BY has one row
-- inputs: public.order_items
-- query
SELECT count(*) AS n, sum(quantity) AS q FROM _cv_input_0 AS order_items

-- view
CREATE MATERIALIZED VIEW v AS
SELECT sum(n) AS total FROM (SELECT count(*) AS n FROM orders UNION ALL SELECT count(*) AS n FROM users) x;
-- key: (): an aggregate without GROUP BY has one row
-- inputs: public.orders, public.users
-- query
SELECT sum(n) AS total FROM (SELECT count(*) AS n FROM _cv_input_0 AS orders UNION ALL SELECT count(*) AS n FROM _cv_input_1 AS users) x

-- view
CREATE MATERIALIZED VIEW v AS
SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM users) AS n;
-- key: (): a SELECT without FROM has one row
-- inputs: public.orders, public.users
-- query
SELECT (SELECT count(*) FROM _cv_input_0 AS orders) + (SELECT count(*) FROM _cv_input_1 AS users) AS n

-- view
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT user_id, status FROM orders;
-- key: (user_id, status): all columns of DISTINCT
-- inputs: public.orders
-- query
SELECT DISTINCT user_id, status FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT user_id, lower(status) FROM orders;
-- key: none: not all columns have a known name
-- inputs: public.orders
-- query
SELECT * FROM (
SELECT DISTINCT user_id, lower(status) FROM _cv_input_0 AS orders
) AS _cv_view(`user_id`, `lower`)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT * FROM orders;
-- key: (id): the key of "public.orders"
-- inputs: public.orders
-- query
SELECT DISTINCT * FROM _cv_input_0 AS orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders UNION SELECT id FROM users;
-- key: (id): all columns of a set operation
-- inputs: public.orders, public.users
-- query
SELECT id FROM _cv_input_0 AS orders UNION SELECT id FROM _cv_input_1 AS users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders UNION ALL SELECT id FROM users;
-- key: none: UNION ALL may return a row twice
-- inputs: public.orders, public.users
-- query
SELECT id FROM _cv_input_0 AS orders UNION ALL SELECT id FROM _cv_input_1 AS users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, status FROM orders EXCEPT SELECT id, name FROM users;
-- key: (id, status): all columns of a set operation
-- inputs: public.orders, public.users
-- query
SELECT id, status FROM _cv_input_0 AS orders EXCEPT SELECT id, name FROM _cv_input_1 AS users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT status FROM orders INTERSECT ALL SELECT name FROM users;
-- key: none: INTERSECT ALL may return a row twice
-- inputs: public.orders, public.users
-- query
SELECT status FROM _cv_input_0 AS orders INTERSECT ALL SELECT name FROM _cv_input_1 AS users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT status AS s, u.country, grouping_id() AS level, count(*) AS n
FROM orders o JOIN users u ON u.id = o.user_id GROUP BY ROLLUP (u.country, status);
-- key: (country, s, level): the columns of the grouping sets, and grouping_id()
-- inputs: public.orders, public.users
-- query
SELECT status AS s, u.country, grouping_id() AS level, count(*) AS n
FROM _cv_input_0 o JOIN _cv_input_1 u ON u.id = o.user_id GROUP BY ROLLUP (u.country, status)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, grouping_id() AS level, count(*) AS n FROM orders GROUP BY GROUPING SETS ((user_id), user_id);
-- key: none: grouping sets may return a row twice
-- inputs: public.orders
-- query
SELECT user_id, grouping_id() AS level, count(*) AS n FROM _cv_input_0 AS orders GROUP BY GROUPING SETS ((user_id), user_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, grouping_id() AS level, count(*) AS n FROM orders GROUP BY CUBE (user_id, status);
-- key: none: grouping sets may return a row twice
-- inputs: public.orders
-- query
SELECT user_id, grouping_id() AS level, count(*) AS n FROM _cv_input_0 AS orders GROUP BY CUBE (user_id, status)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT order_id, line, count(*) AS n FROM order_items GROUP BY ROLLUP (order_id, line);
-- key: (order_id, line): the columns of the grouping sets, which are NULL only in sets that lack them
-- inputs: public.order_items
-- query
SELECT order_id, line, count(*) AS n FROM _cv_input_0 AS order_items GROUP BY ROLLUP (order_id, line)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, count(*) AS n FROM orders WHERE user_id IS NOT NULL GROUP BY ROLLUP (user_id, status);
-- key: none: grouping sets may return a row twice
-- inputs: public.orders
-- query
SELECT user_id, status, count(*) AS n FROM _cv_input_0 AS orders WHERE user_id IS NOT NULL GROUP BY ROLLUP (user_id, status)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, count(*) AS n FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY ROLLUP (o.id);
-- key: none: grouping sets may return a row twice
-- inputs: public.users, public.orders
-- query
SELECT o.id, count(*) AS n FROM _cv_input_0 u LEFT JOIN _cv_input_1 o ON o.user_id = u.id GROUP BY ROLLUP (o.id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, date_format(ordered_at, 'MM') AS a, date_format(ordered_at, 'mm') AS b, count(*) AS n FROM orders GROUP BY ALL;
-- key: (user_id, a, b): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT user_id, date_format(ordered_at, 'MM') AS a, date_format(ordered_at, 'mm') AS b, count(*) AS n FROM _cv_input_0 AS orders GROUP BY ALL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT to_char(id, '9') AS y, to_char(id, '99') AS m, count(*) AS n FROM orders GROUP BY to_char(id, '9'), to_char(id, '99');
-- key: (y, m): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT to_char(id, '9') AS y, to_char(id, '99') AS m, count(*) AS n FROM _cv_input_0 AS orders GROUP BY to_char(id, '9'), to_char(id, '99')

-- view
CREATE MATERIALIZED VIEW v AS
SELECT to_char(id, '9') AS y, count(*) AS n FROM orders GROUP BY to_char(id, '99');
-- key: none: the group expression "to_char(id, '99')" is not selected unchanged
-- inputs: public.orders
-- query
SELECT to_char(id, '9') AS y, count(*) AS n FROM _cv_input_0 AS orders GROUP BY to_char(id, '99')

-- view
CREATE MATERIALIZED VIEW v AS
SELECT regexp_replace(status, 'a') AS q, count(*) AS n FROM orders GROUP BY ALL;
-- key: (q): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT regexp_replace(status, 'a') AS q, count(*) AS n FROM _cv_input_0 AS orders GROUP BY ALL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT Upper(Status) AS u, count(*) AS n FROM orders GROUP BY upper(STATUS);
-- key: (u): the columns of GROUP BY
-- inputs: public.orders
-- query
SELECT Upper(Status) AS u, count(*) AS n FROM _cv_input_0 AS orders GROUP BY upper(STATUS)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT max(q.id) AS m FROM (SELECT id, status AS `all` FROM orders) q GROUP BY ALL;
-- key: none: GROUP BY ALL may mean a column "all"
-- inputs: public.orders
-- query
SELECT max(q.id) AS m FROM (SELECT id, status AS `all` FROM _cv_input_0 AS orders) q GROUP BY ALL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, mean(id) AS m, count(*) AS n FROM orders GROUP BY ALL;
-- key: none: GROUP BY ALL beside a function that may be an aggregate
-- inputs: public.orders
-- query
SELECT user_id, mean(id) AS m, count(*) AS n FROM _cv_input_0 AS orders GROUP BY ALL

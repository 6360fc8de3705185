-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.country, o.status, grouping_id() AS level, count(*) AS n, sum(length(o.note)) AS characters
FROM users u JOIN orders o ON o.user_id = u.id GROUP BY ROLLUP (u.country, o.status);
-- strategy: ADD: for each (country, status, level), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.users changes the totals of its (country, status, level)
--     look up public.orders by (user_id) from (id) of public.users
--   a change of public.orders changes the totals of its (country, status, level)
--     look up public.users by (id) from (user_id) of public.orders

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, grouping(user_id) AS is_total, grouping_id() AS level, count(*) AS n
FROM orders GROUP BY GROUPING SETS ((user_id, status), (status), ());
-- strategy: ADD: for each (user_id, status, level), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (user_id, status, level)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, grouping_id() AS level, count(*) AS n FROM orders GROUP BY CUBE (user_id);
-- strategy: ADD: for each (user_id, level), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (user_id, level)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, grouping_id() AS level, count(*) AS n FROM orders GROUP BY user_id, ROLLUP (status);
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, grouping_id() AS level, count(*) AS n FROM orders GROUP BY user_id, status WITH ROLLUP;
-- strategy: ADD: for each (user_id, status, level), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (user_id, status, level)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, grouping_id() AS level, count(*) AS n FROM orders GROUP BY GROUPING SETS ((user_id), (user_id), ());
-- strategy: FULL: the whole query is run and compared with the stored rows: grouping sets that cannot be added up: wanted all of their groups, which are columns of tables or function calls over these, and grouping_id() in SELECT, and no set twice; or in place of grouping_id() columns without NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT weight, grouping_id() AS level, count(*) AS n FROM products GROUP BY ROLLUP (weight);
-- strategy: FULL: the whole query is run and compared with the stored rows: grouping sets that cannot be added up: groups of floating-point values, or of values of a nested type

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, grouping_id() AS level, max(ordered_at) AS last, count(*) AS n FROM orders GROUP BY ROLLUP (user_id);
-- strategy: ADD: for each (user_id, level), the totals over the rows that are added are added, those over the rows that are removed are subtracted; extremes are compared with those over the rows that are added and removed
--   a change of public.orders changes the totals of its (user_id, level)
--   if the value of (last) is removed, the whole query is run

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, count(*) AS n FROM orders WHERE user_id IS NOT NULL AND status IS NOT NULL GROUP BY CUBE (user_id, status);
-- strategy: ADD: for each (user_id, status), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (user_id, status)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, grouping_id() AS level, count(*) AS n FROM orders GROUP BY user_id, status WITH CUBE;
-- strategy: ADD: for each (user_id, status, level), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the totals of its (user_id, status, level)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, count(*) AS n FROM orders
GROUP BY user_id, status GROUPING SETS ((status, user_id), user_id) HAVING count(*) > 1;
-- strategy: KEYS: the rows of affected (user_id, status) are looked up, computed again, and compared
--   _cv_v_1: SELECT status AS value_1, user_id AS value_2, grouping_id() AS value_3, count(*) AS value_4 FROM orders
GROUP BY user_id, status GROUPING SETS ((status, user_id), user_id)
--   a change of _cv_v_1 affects (user_id, status)
--   the rows of affected (user_id, status) are computed again from
--     _cv_v_1 by (value_2, value_1) from (user_id, status) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, status, grouping_id() AS level, count(*) AS n FROM orders GROUP BY user_id, status GROUPING SETS (user_id, ());
-- strategy: FULL: the whole query is run and compared with the stored rows: grouping sets that cannot be added up: wanted all of their groups, which are columns of tables or function calls over these, and grouping_id() in SELECT, and no set twice; or in place of grouping_id() columns without NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, grouping_id() AS level, count(*) AS n FROM orders GROUP BY user_id, user_id WITH ROLLUP;
-- strategy: FULL: the whole query is run and compared with the stored rows: grouping sets that cannot be added up: wanted all of their groups, which are columns of tables or function calls over these, and grouping_id() in SELECT, and no set twice; or in place of grouping_id() columns without NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT date_trunc('MONTH', ordered_at) AS month, status, count(*) AS n FROM orders GROUP BY ROLLUP (month, status);
-- strategy: KEYS: the rows of affected (month, status) are looked up, computed again, and compared
--   _cv_v_1: SELECT date_trunc('MONTH', ordered_at) AS value_1, status AS value_2, grouping_id() AS value_3, count(*) AS value_4 FROM orders GROUP BY ROLLUP (date_trunc('MONTH', ordered_at), status)
--   a change of _cv_v_1 affects (month, status)
--   the rows of affected (month, status) are computed again from
--     _cv_v_1 by (value_1, value_2) from (month, status) of the affected keys, NULL matches NULL

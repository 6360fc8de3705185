-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(struct(ordered_at, id, status))) AS list FROM orders GROUP BY user_id;
-- strategy: PATCH: for each (user_id), the values over the rows that are added and removed are merged into the stored lists
--   a change of public.orders changes the lists of its (user_id)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, slice(sort_array(array_agg(id) FILTER (WHERE status = 'paid'), false), 1, 3) AS latest, count(*) AS orders FROM orders GROUP BY user_id;
-- strategy: PATCH: for each (user_id), the values over the rows that are added and removed are merged into the stored lists; the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the lists and totals of its (user_id)
--   where the first 3 of (latest) do not follow, (user_id) is computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.user_id, array_sort(collect_list(i.quantity * 2)) AS list, sum(i.quantity) AS pieces FROM orders o JOIN order_items i ON i.order_id = o.id GROUP BY o.user_id;
-- strategy: PATCH: for each (user_id), the values over the rows that are added and removed are merged into the stored lists; the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.orders changes the lists and totals of its (user_id)
--     look up public.order_items by (order_id) from (id) of public.orders
--   a change of public.order_items changes the lists and totals of its (user_id)
--     look up public.orders by (id) from (order_id) of public.order_items

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(lower(status))) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(status COLLATE UTF8_LCASE)) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(DISTINCT status)) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_set(status)) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(struct(id, struct(status)))) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(CAST(id AS DOUBLE))) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, slice(sort_array(collect_list(id)), 2, 3) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, transform(array_sort(collect_list(struct(ordered_at, id))), x -> x.id) AS ids FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, listagg(status, ',') WITHIN GROUP (ORDER BY status) AS list FROM orders GROUP BY user_id;
-- strategy: KEYS: the rows of affected (user_id) are looked up, computed again, and compared
--   a change of public.orders affects (user_id)
--   the rows of affected (user_id) are computed again from
--     public.orders by (user_id) from (user_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, sort_array(collect_list(id)) AS list FROM orders GROUP BY ROLLUP (user_id);
-- strategy: FULL: the whole query is run and compared with the stored rows: grouping sets that cannot be added up: wanted all of their groups, which are columns of tables or function calls over these, and grouping_id() in SELECT, and no set twice; or in place of grouping_id() columns without NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT sort_array(collect_list(id)) AS list FROM orders;
-- strategy: FULL: the whole query is run and compared with the stored rows: an aggregate over all rows that cannot be added up: column "list" is neither count(*) nor the count or the sum of one value of each row

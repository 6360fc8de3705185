-- view
CREATE MATERIALIZED VIEW v AS
SELECT DISTINCT ON (user_id) user_id, id FROM orders ORDER BY user_id, id;
-- error: v.sql:2:8: DISTINCT ON is Postgres's, not Spark's
-- hint: write SELECT ... FROM (SELECT *, row_number() OVER (PARTITION BY a ORDER BY b, id) AS n FROM t) WHERE n = 1

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders ORDER BY id FETCH FIRST 3 ROWS ONLY;
-- error: v.sql:2:35: FETCH FIRST is Postgres's, not Spark's
-- hint: write LIMIT n

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id::text AS t FROM orders;
-- error: v.sql:2:12: type text is Postgres's, not Spark's
-- hint: write STRING

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id::double precision AS t FROM orders;
-- error: v.sql:2:12: type double precision is Postgres's, not Spark's
-- hint: write DOUBLE

-- view
CREATE MATERIALIZED VIEW v AS
SELECT CAST(id AS jsonb) AS t FROM orders;
-- error: v.sql:2:19: type jsonb is Postgres's, not Spark's
-- hint: write STRING

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE note ~ 'a';
-- error: v.sql:2:34: a match by ~ is Postgres's, not Spark's
-- hint: write text RLIKE 'pattern', or RLIKE '(?i)pattern' to ignore case

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE note ~* 'a';
-- error: v.sql:2:34: a match by ~ is Postgres's, not Spark's
-- hint: write text RLIKE 'pattern', or RLIKE '(?i)pattern' to ignore case

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE note !~ 'a';
-- error: v.sql:2:34: a match by ~ is Postgres's, not Spark's
-- hint: write text RLIKE 'pattern', or RLIKE '(?i)pattern' to ignore case

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE note SIMILAR TO 'a';
-- error: v.sql:2:34: SIMILAR TO is Postgres's, not Spark's
-- hint: write text RLIKE '^(pattern)$'

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders ORDER BY id OFFSET 3 ROWS;
-- error: v.sql:2:35: OFFSET ... ROWS is Postgres's, not Spark's
-- hint: write OFFSET n

-- view
CREATE MATERIALIZED VIEW v AS
SELECT n FROM generate_series(1, 3) AS t(n);
-- error: v.sql:2:15: generate_series() is Postgres's, not Spark's
-- hint: write explode(sequence(first, last)), or FROM range(first, last + 1)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT string_agg(note, ',' ORDER BY id) AS s FROM orders;
-- error: v.sql:2:8: ORDER BY inside the aggregate is Postgres's, not Spark's
-- hint: write listagg(text, ',') WITHIN GROUP (ORDER BY ...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT array_agg(id ORDER BY id) AS s FROM orders;
-- error: v.sql:2:8: ORDER BY inside the aggregate is Postgres's, not Spark's
-- hint: write sort_array(collect_list(struct(order, value))).value

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, ARRAY[1,2] AS a FROM orders;
-- error: v.sql:2:12: ARRAY[...] is Postgres's, not Spark's
-- hint: write array(...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, extract(epoch FROM ordered_at) AS e FROM orders;
-- error: v.sql:2:12: EXTRACT(EPOCH ...) is Postgres's, not Spark's
-- hint: write unix_timestamp(time), or unix_micros(time) / 1000000

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, age(ordered_at) AS e FROM orders;
-- error: v.sql:2:12: age() is Postgres's, not Spark's
-- hint: write datediff(a, b), months_between(a, b), or a - b

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, note ->> 'a' AS e FROM orders;
-- error: v.sql:2:17: a JSON operator is Postgres's, not Spark's
-- hint: write get_json_object(column, '$.field')

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE note = ANY(ARRAY['a']);
-- error: v.sql:2:34: = ANY (...) is Postgres's, not Spark's
-- hint: write IN (...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, ordered_at AT TIME ZONE 'UTC' AS a FROM orders;
-- error: v.sql:2:23: AT TIME ZONE is Postgres's, not Spark's
-- hint: write from_utc_timestamp(time, zone) or to_utc_timestamp(time, zone)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders FOR UPDATE;
-- error: v.sql:2:23: FOR UPDATE is Postgres's, not Spark's
-- hint: remove it: a view locks no rows

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id INTO x FROM orders;
-- error: v.sql:2:11: SELECT INTO is Postgres's, not Spark's
-- hint: leave INTO out: a view is stored by its name

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, json_build_object('a', id) AS j FROM orders;
-- error: v.sql:2:12: json_build_object() is Postgres's, not Spark's
-- hint: write to_json(named_struct('name', value, ...))

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, unnest(tags) AS t FROM posts;
-- error: v.sql:2:12: unnest() is Postgres's, not Spark's
-- hint: write explode(array) in the SELECT, or LATERAL explode(array) AS t(value) in FROM

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, E'a\nb' AS t FROM posts;
-- error: v.sql:2:12: E'...' is Postgres's, not Spark's
-- hint: omit the E: Spark reads backslashes in every text

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, B'101' AS t FROM posts;
-- error: v.sql:2:12: B'...' is Postgres's, not Spark's
-- hint: write a number, as 5

-- view
CREATE MATERIALIZED VIEW v AS
WITH x AS MATERIALIZED (SELECT id FROM orders) SELECT id FROM x;
-- error: v.sql:2:8: MATERIALIZED is Postgres's, not Spark's
-- hint: remove it: it changes no result

-- view
CREATE MATERIALIZED VIEW v AS
WITH x AS (DELETE FROM orders RETURNING id) SELECT id FROM x;
-- error: v.sql:2:8: a CTE that changes rows is Postgres's, not Spark's
-- hint: a view only reads: write a SELECT

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, rank FROM (SELECT id, rank() OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS rank FROM orders) r;
-- error: v.sql:2:100: EXCLUDE in a window is Postgres's, not Spark's
-- hint: leave rows out by a CASE in the aggregate

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE id BETWEEN SYMMETRIC 3 AND 1;
-- error: v.sql:2:32: BETWEEN SYMMETRIC is Postgres's, not Spark's
-- hint: write BETWEEN least(a, b) AND greatest(a, b)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, gen_random_uuid() AS t FROM orders;
-- error: v.sql:2:12: gen_random_uuid() is Postgres's, not Spark's
-- hint: a view must be a function of its tables; compute it there

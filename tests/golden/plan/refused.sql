-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, rand() AS r FROM orders;
-- error: v.sql:2:12: rand() returns another result each time
-- hint: a view must be a function of its tables; compute it there

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id,
  uuid() AS r FROM orders;
-- error: v.sql:3:3: uuid() returns another result each time
-- hint: a view must be a function of its tables; compute it there

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE ordered_at > now() - INTERVAL 1 DAY;
-- error: v.sql:2:42: now() depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE ordered_at > current_timestamp;
-- error: v.sql:2:42: current_timestamp depends on the time at which it runs
-- hint: keep times in a table, or filter when reading; for a column of that name write "table.current_timestamp"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, current_date() AS d FROM orders;
-- error: v.sql:2:12: current_date() depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, unix_timestamp() AS d FROM orders;
-- error: v.sql:2:12: unix_timestamp() depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, timestamp 'now' AS d FROM orders;
-- error: v.sql:2:22: 'now' as a time depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, CAST('today' AS date) AS d FROM orders;
-- error: v.sql:2:17: 'today' as a time depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, to_timestamp('now') AS d FROM orders;
-- error: v.sql:2:25: 'now' as a time depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, user AS u FROM orders;
-- error: v.sql:2:12: user depends on the session that runs it
-- hint: write the value itself; for a column of that name write "table.user"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT monotonically_increasing_id() AS n, id FROM orders;
-- error: v.sql:2:8: monotonically_increasing_id() depends on how the rows are stored
-- hint: use row_number() OVER (... ORDER BY ...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, first(status) AS s FROM orders GROUP BY user_id;
-- error: v.sql:2:17: first() returns an arbitrary row of its group
-- hint: use min(), max() or row_number() OVER (... ORDER BY ...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, any_value(status) AS s FROM orders GROUP BY user_id;
-- error: v.sql:2:17: any_value() returns an arbitrary row of its group
-- hint: use min(), max() or row_number() OVER (... ORDER BY ...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, first_value(status) OVER (PARTITION BY user_id) AS s FROM orders;
-- error: v.sql:2:12: first_value() returns an arbitrary row of its window
-- hint: add ORDER BY to the window

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, last_value(status) OVER w AS s FROM orders WINDOW w AS (PARTITION BY user_id);
-- error: v.sql:2:12: last_value() returns an arbitrary row of its window
-- hint: add ORDER BY to the window

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, max_by(status, id) AS s FROM orders GROUP BY user_id;
-- error: v.sql:2:17: max_by() returns any of the rows that tie
-- hint: use max(struct(order, value)).value, or min(...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, collect_list(id) AS ids FROM orders GROUP BY user_id;
-- error: v.sql:2:17: collect_list() depends on the order of rows
-- hint: write sort_array(collect_list(...)), or array_sort(...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, array_agg(id) AS ids FROM orders GROUP BY user_id;
-- error: v.sql:2:17: array_agg() depends on the order of rows
-- hint: write sort_array(collect_list(...)), or array_sort(...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, string_agg(status, ',') AS ids FROM orders GROUP BY user_id;
-- error: v.sql:2:17: string_agg() depends on the order of rows
-- hint: add WITHIN GROUP (ORDER BY ...)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT approx_count_distinct(id) AS n FROM orders;
-- error: v.sql:2:8: approx_count_distinct() is not exact
-- hint: use the exact function, as count(DISTINCT ...) or percentile()

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders
LIMIT 10;
-- error: v.sql:3:1: LIMIT without ORDER BY returns arbitrary rows
-- hint: add an ORDER BY in which no two rows tie

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE id IN (SELECT id FROM users LIMIT 1) ORDER BY id;
-- error: v.sql:2:57: LIMIT without ORDER BY returns arbitrary rows
-- hint: add an ORDER BY in which no two rows tie

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, row_number() OVER (ORDER BY id) AS n FROM orders OFFSET 3;
-- error: v.sql:2:61: OFFSET without ORDER BY returns arbitrary rows
-- hint: add an ORDER BY in which no two rows tie

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders TABLESAMPLE (10 PERCENT);
-- error: v.sql:2:23: TABLESAMPLE returns other rows each time
-- hint: filter by a column

-- view
CREATE MATERIALIZED VIEW v AS
SELECT TRANSFORM(id) USING 'cat' AS (id) FROM orders;
-- error: v.sql:2:8: TRANSFORM runs code that may return another result each time
-- hint: use functions of Spark SQL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT java_method('java.util.UUID', 'randomUUID') AS u FROM orders;
-- error: v.sql:2:8: java_method() runs code that may return another result each time
-- hint: use functions of Spark SQL

-- view
CREATE MATERIALIZED VIEW v AS
WITH _cv_input_0 AS (SELECT 1 AS id) SELECT id FROM orders;
-- error: v.sql:2:6: name "_cv_input_0" begins with "_cv_", which is reserved
-- hint: choose another name

-- view
CREATE MATERIALIZED VIEW v AS
SELECT aes_encrypt(note, '0000111122223333') AS e FROM orders;
-- error: v.sql:2:8: aes_encrypt() returns another result each time
-- hint: a view must be a function of its tables; compute it there

-- view
CREATE MATERIALIZED VIEW v AS
INSERT INTO orders SELECT 1;
-- error: v.sql:2:1: found "INSERT", wanted a SELECT
-- hint: none

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM parquet.`/x`;
-- error: v.sql:2:16: unknown table "parquet./x"
-- hint: a view reads the tables in the settings under source.tables, and other views

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM my.schema.`Order Items`;
-- error: v.sql:2:16: table name "my.schema.Order Items" has 3 parts, wanted schema.table
-- hint: write a name that holds a dot in backticks: `my.schema`.`my.table`

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM ordrs;
-- error: v.sql:2:16: unknown table "ordrs"
-- hint: did you mean "orders"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FRM orders o p;
-- error: v.sql:2:15: syntax error at or near "orders"
-- hint: the language of views is Spark SQL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, array_sort(collect_list(id), (a, b) -> 0) AS ids FROM orders GROUP BY user_id;
-- error: v.sql:2:28: collect_list() with its own comparison leaves the order of elements that tie open
-- hint: sort structs by their fields: array_sort(collect_list(struct(order, key, value)))

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, localtimestamp AS n FROM orders;
-- error: v.sql:2:12: localtimestamp depends on the time at which it runs
-- hint: keep times in a table, or filter when reading; for a column of that name write "table.localtimestamp"

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE ordered_at > timestamp '12:00';
-- error: v.sql:2:52: '12:00' as a time depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE ordered_at > timestamp '\u006eow';
-- error: v.sql:2:52: 'now' as a time depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM orders WHERE ordered_at > timestamp '	Now UTC';
-- error: v.sql:2:52: 'Now UTC' as a time depends on the time at which it runs
-- hint: keep times in a table, or filter when reading

-- view
CREATE MATERIALIZED VIEW v AS
SELECT "id" FROM orders;
-- error: v.sql:2:8: "id" is a text in Spark SQL, and the name of a column
-- hint: for the column write id or `id`, for the text 'id'

-- view
CREATE MATERIALIZED VIEW v AS
SELECT user_id, count(*) AS n FROM orders GROUP BY user_id |> WHERE n > 1;
-- error: v.sql:2:60: "|>" is not supported
-- hint: write a subquery for each step

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, user_id FROM orders
|> ORDER BY user_id, id |> LIMIT 2;
-- error: v.sql:3:1: "|>" is not supported
-- hint: write a subquery for each step

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, explode(tags) AS tag FROM posts;
-- key: none: a function that returns several rows has no key
-- inputs: public.posts
-- query
SELECT id, explode(tags) AS tag FROM _cv_input_0 AS posts

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, tag FROM posts LATERAL VIEW explode(tags) t AS tag;
-- key: none: LATERAL VIEW multiplies rows
-- inputs: public.posts
-- query
SELECT id, tag FROM _cv_input_0 AS posts LATERAL VIEW explode(tags) t AS tag

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, tag, count(*) AS n FROM posts LATERAL VIEW explode(tags) t AS tag GROUP BY id, tag;
-- key: (id, tag): the columns of GROUP BY
-- inputs: public.posts
-- query
SELECT id, tag, count(*) AS n FROM _cv_input_0 AS posts LATERAL VIEW explode(tags) t AS tag GROUP BY id, tag

-- view
CREATE MATERIALIZED VIEW v AS
SELECT term, post_id, count(*) AS n
FROM (SELECT id AS post_id, explode(split(lower(body), '[^a-z0-9]+')) AS term FROM posts) terms
WHERE term <> '' GROUP BY term, post_id;
-- key: (term, post_id): the columns of GROUP BY
-- inputs: public.posts
-- query
SELECT term, post_id, count(*) AS n
FROM (SELECT id AS post_id, explode(split(lower(body), '[^a-z0-9]+')) AS term FROM _cv_input_0 AS posts) terms
WHERE term <> '' GROUP BY term, post_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT p.id, t.tag FROM posts p, LATERAL explode(p.tags) AS t(tag);
-- key: none: "t" has no key: an item of FROM that is neither a table nor a query has no key
-- inputs: public.posts
-- query
SELECT p.id, t.tag FROM _cv_input_0 p, LATERAL explode(p.tags) AS t(tag)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM range(10);
-- key: none: a function in FROM has no key
-- inputs: none
-- query
SELECT id FROM range(10)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT a FROM VALUES (1), (2) AS t(a);
-- key: none: an item of FROM that is neither a table nor a query has no key
-- inputs: none
-- query
SELECT a FROM VALUES (1), (2) AS t(a)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, window(created_at, '1 hour', '30 minutes').start AS start FROM users;
-- key: none: a time window that slides multiplies rows
-- inputs: public.users
-- query
SELECT id, window(created_at, '1 hour', '30 minutes').start AS start FROM _cv_input_0 AS users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id FROM users WHERE window(created_at, '1 hour', '30 minutes').start > TIMESTAMP '2026-01-01';
-- key: none: a time window that slides multiplies rows
-- inputs: public.users
-- query
SELECT id FROM _cv_input_0 AS users WHERE window(created_at, '1 hour', '30 minutes').start > TIMESTAMP '2026-01-01'

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, window(created_at, '1 hour').start AS start FROM users;
-- key: (id): the key of "public.users"
-- inputs: public.users
-- query
SELECT id, window(created_at, '1 hour').start AS start FROM _cv_input_0 AS users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT window(created_at, '1 hour', '30 minutes') AS period, count(*) AS users FROM users
GROUP BY `window`(created_at, '1 hour', '30 minutes');
-- key: none: the group expression "`window`(created_at, '1 hour', '30 minutes')" is not selected unchanged
-- inputs: public.users
-- query
SELECT window(created_at, '1 hour', '30 minutes') AS period, count(*) AS users FROM _cv_input_0 AS users
GROUP BY `window`(created_at, '1 hour', '30 minutes')

-- view
CREATE MATERIALIZED VIEW v AS
SELECT o.id, w.start FROM orders o
JOIN (SELECT id, window(created_at, '1 hour', '30 minutes').start AS start FROM users) w ON w.id = o.user_id;
-- key: none: "w" has no key: a time window that slides multiplies rows
-- inputs: public.orders, public.users
-- query
SELECT o.id, w.start FROM _cv_input_0 o
JOIN (SELECT id, window(created_at, '1 hour', '30 minutes').start AS start FROM _cv_input_1 AS users) w ON w.id = o.user_id

-- view
CREATE MATERIALIZED VIEW v AS
SELECT window(created_at, '1 hour', '30 minutes').start AS start, lag(id) OVER (ORDER BY id) AS before FROM users;
-- error: v.sql:2:81: lag() depends on the order of rows that tie
-- hint: end ORDER BY with columns that identify a row

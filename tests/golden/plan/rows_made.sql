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

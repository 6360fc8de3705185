-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, explode(tags) AS tag FROM posts;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.posts affects (id)
--   the rows of affected (id) are computed again from
--     public.posts by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT id, posexplode_outer(tags) AS (place, tag) FROM posts;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.posts affects (id)
--   the rows of affected (id) are computed again from
--     public.posts by (id) from (id) of the affected keys

-- view
CREATE MATERIALIZED VIEW v AS
SELECT p.author_id, t.place, t.tag FROM posts p LATERAL VIEW posexplode(p.tags) t AS place, tag;
-- strategy: KEYS: the rows of affected (author_id) are looked up, computed again, and compared
--   a change of public.posts affects (author_id)
--   the rows of affected (author_id) are computed again from
--     public.posts by (author_id) from (author_id) of the affected keys, NULL matches NULL

-- view
CREATE MATERIALIZED VIEW v AS
SELECT u.id, u.name, t.tag FROM users u LEFT JOIN posts p ON p.author_id = u.id LATERAL VIEW OUTER explode(p.tags) t AS tag;
-- strategy: KEYS: the rows of affected (id) are looked up, computed again, and compared
--   a change of public.users affects (id)
--   a change of public.posts affects (id)
--     look up public.users by (id) from (author_id) of public.posts
--   the rows of affected (id) are computed again from
--     public.users by (id) from (id) of the affected keys
--     public.posts by (author_id) from (id) of public.users

-- view
CREATE MATERIALIZED VIEW v AS
SELECT post_id, term, count(*) AS n FROM (SELECT id AS post_id, explode(split(body, ' ')) AS term FROM posts) q
GROUP BY post_id, term;
-- strategy: ADD: for each (post_id, term), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.posts changes the totals of its (post_id, term)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT tag, count(*) AS n FROM (SELECT explode(tags) AS tag FROM posts) q GROUP BY tag;
-- strategy: ADD: for each (tag), the totals over the rows that are added are added, those over the rows that are removed are subtracted
--   a change of public.posts changes the totals of its (tag)

-- view
CREATE MATERIALIZED VIEW v AS
SELECT t.tag, count(*) AS n, max(p.created_at) AS latest FROM posts p LATERAL VIEW explode(p.tags) t AS tag
GROUP BY t.tag;
-- strategy: ADD: for each (tag), the totals over the rows that are added are added, those over the rows that are removed are subtracted; extremes are compared with those over the rows that are added and removed
--   a change of public.posts changes the totals of its (tag)
--   if the value of (latest) is removed, the whole query is run

-- A left join of an aggregate: each user with the number of posts, which may be 0.
CREATE MATERIALIZED VIEW user_posts AS
SELECT u.id AS user_id, u.name, COALESCE(p.posts, 0) AS posts, p.last_posted_at
FROM users u
LEFT JOIN (
    SELECT author_id, COUNT(*) AS posts, MAX(created_at) AS last_posted_at
    FROM posts
    GROUP BY author_id
) p ON p.author_id = u.id;

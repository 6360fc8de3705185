CREATE MATERIALIZED VIEW home_timeline
WITH (kind = 'timeline', owner = 'user_id', order = 'created_at DESC, post_id DESC', limit = 100)
AS
SELECT f.follower_id AS user_id, p.id AS post_id, p.author_id, u.name AS author, p.title, p.created_at
FROM follows f
JOIN posts p ON p.author_id = f.followee_id
JOIN users u ON u.id = p.author_id;

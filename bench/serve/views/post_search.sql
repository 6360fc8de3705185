CREATE MATERIALIZED VIEW post_search
WITH (kind = 'search_index', key = 'post_id', text = 'title^2, body')
AS
SELECT p.id AS post_id, p.title, p.body, u.name AS author, p.created_at
FROM posts p
JOIN users u ON u.id = p.author_id;

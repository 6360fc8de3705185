-- Posts to search by their words: cdc-views search post_search 'honey -tea'
CREATE MATERIALIZED VIEW post_search
WITH (kind = 'search_index', key = 'post_id', text = 'body^2, author', language = 'english')
AS
SELECT p.id AS post_id, p.body, a.name AS author, p.author_id, p.likes, p.created_at
FROM posts p
JOIN users a ON a.id = p.author_id;

-- How often each term occurs in each post.
CREATE MATERIALIZED VIEW post_search AS
SELECT term, post_id, COUNT(*) AS occurrences
FROM (
    SELECT id AS post_id, explode(split(lower(body), '[^a-z0-9]+')) AS term
    FROM posts
) terms
WHERE term <> ''
GROUP BY term, post_id;

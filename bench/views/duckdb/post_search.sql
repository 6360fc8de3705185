SELECT term, post_id, COUNT(*) AS occurrences
FROM (
    SELECT id AS post_id, unnest(string_split_regex(lower(body), '[^a-z0-9]+')) AS term
    FROM posts
) terms
WHERE term <> ''
GROUP BY term, post_id;

SELECT user_id, rank, post_id, author_id, author, created_at
FROM (
    SELECT
        f.follower_id AS user_id,
        ROW_NUMBER() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, p.id DESC) AS rank,
        p.id AS post_id,
        p.author_id,
        a.name AS author,
        p.created_at
    FROM follows f
    JOIN posts p ON p.author_id = f.followee_id
    JOIN users a ON a.id = p.author_id
    WHERE NOT f.muted
) ranked
WHERE rank <= 100;

SELECT user_id, post_id, author_id, author, created_at
FROM (
    SELECT f.follower_id AS user_id, p.id AS post_id, p.author_id, a.name AS author, p.created_at,
        row_number() OVER (
            PARTITION BY f.follower_id ORDER BY p.created_at DESC NULLS LAST, p.id DESC NULLS LAST
        ) AS place
    FROM follows f
    JOIN posts p ON p.author_id = f.followee_id
    JOIN users a ON a.id = p.author_id
    WHERE NOT f.muted
) entries
WHERE place <= 100;

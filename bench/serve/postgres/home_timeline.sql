-- key: user_id, post_id
SELECT r.*
FROM (SELECT DISTINCT follower_id FROM public.follows) o
CROSS JOIN LATERAL (
    SELECT f.follower_id AS user_id, p.id AS post_id, p.author_id, u.name AS author, p.title, p.created_at
    FROM public.follows f, public.posts p, public.users u
    WHERE f.follower_id = o.follower_id AND p.author_id = f.followee_id AND u.id = f.followee_id
    ORDER BY p.created_at DESC, p.id DESC
    LIMIT 100
) r;

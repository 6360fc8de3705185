-- key: user_id, post_id
-- Written another way than the view: per follower, the newest 100.
SELECT r.user_id, r.post_id, r.author_id, r.author, r.created_at
FROM (SELECT DISTINCT follower_id FROM public.follows) u
CROSS JOIN LATERAL (
    SELECT f.follower_id AS user_id, p.id AS post_id, p.author_id, a.name AS author, p.created_at
    FROM public.follows f, public.posts p, public.users a
    WHERE f.follower_id = u.follower_id AND f.muted = false AND p.author_id = f.followee_id AND a.id = f.followee_id
    ORDER BY p.created_at DESC, p.id DESC
    LIMIT 100
) r;

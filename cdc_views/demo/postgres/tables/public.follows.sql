-- key: follower_id, followee_id
SELECT follower_id, followee_id, muted, since
FROM public.follows;

-- key: post_id
SELECT p.id AS post_id, p.body, a.name AS author, p.author_id, p.likes, p.created_at
FROM public.posts p
JOIN public.users a ON a.id = p.author_id;

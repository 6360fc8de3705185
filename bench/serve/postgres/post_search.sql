-- key: post_id
SELECT p.id AS post_id, p.title, p.body, u.name AS author, p.created_at
FROM public.posts p
JOIN public.users u ON u.id = p.author_id;

-- key: id
SELECT id, author_id, reply_to, body, tags, likes, meta::text AS meta, created_at, edited_at
FROM public.posts;

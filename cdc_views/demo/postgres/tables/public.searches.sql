-- key: id
SELECT id, user_id, query
FROM public.searches;

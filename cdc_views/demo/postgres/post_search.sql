-- key: term, post_id
SELECT m[1] AS term, p.id AS post_id, count(*) AS occurrences
FROM public.posts p
CROSS JOIN LATERAL regexp_matches(lower(p.body), '[a-z0-9]+', 'g') m
GROUP BY m[1], p.id;

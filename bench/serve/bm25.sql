-- The best documents for some words by BM25 from scratch: the formula of docs/search.md over the rows of the source.
WITH texts AS (
    SELECT id, 'title' AS field, 2.0::float8 AS weight, string_to_array(title, ' ') AS words FROM posts WHERE title <> ''
    UNION ALL
    SELECT id, 'body', 1.0::float8, string_to_array(body, ' ') FROM posts WHERE body <> ''
), totals AS (
    SELECT field, count(*)::float8 AS documents, avg(cardinality(words))::float8 AS mean_length FROM texts GROUP BY field
), hits AS (
    SELECT id, field, word, weight, cardinality(words)::float8 AS length,
           cardinality(array_positions(words, word))::float8 AS frequency
    FROM texts, unnest(%s::text[]) AS word
    WHERE words @> ARRAY[word]
), matching AS (
    SELECT field, word, count(*)::float8 AS matching FROM hits GROUP BY field, word
)
SELECT id, sum(weight * ln(1 + (documents - matching + 0.5) / (matching + 0.5)) * frequency * 2.2
           / (frequency + 1.2 * (0.25 + 0.75 * length / mean_length))) AS score
FROM hits JOIN totals USING (field) JOIN matching USING (field, word)
GROUP BY id
ORDER BY score DESC, id
LIMIT %s

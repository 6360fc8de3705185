-- What the open load of bench/load.py calls.
-- One transaction of `size` row changes; returns how many rows it changed. The posts of author 0 stay as they are.
CREATE FUNCTION bench.change(n bigint, size integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    made integer := 0;
    done integer;
    place bigint;
    author bigint;
BEGIN
    FOR step IN 1 .. size LOOP
        place := bench.draw(n, step * 2, 9007199254740992);
        author := 1 + place % {authors};
        CASE bench.draw(n, step * 2 + 1, 10)
        WHEN 0, 1, 2 THEN
            UPDATE posts SET body = bench.words(place, 100, 34) WHERE id =
                (SELECT id FROM posts WHERE id > 10 + place % ({documents} - 10) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
        WHEN 3, 4 THEN
            INSERT INTO posts (author_id, title, body, created_at)
            VALUES (author, bench.words(place, 0, 6), bench.words(place, 100, 34), clock_timestamp());
        WHEN 5 THEN
            DELETE FROM posts WHERE id =
                (SELECT id FROM posts WHERE id > 10 + place % ({documents} - 10) ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
        WHEN 6 THEN
            INSERT INTO follows VALUES (1 + place % {followers}, author) ON CONFLICT DO NOTHING;
        WHEN 7 THEN
            DELETE FROM follows WHERE (follower_id, followee_id) =
                (SELECT follower_id, followee_id FROM follows WHERE follower_id > place % {followers}
                 ORDER BY follower_id, followee_id DESC LIMIT 1 FOR UPDATE SKIP LOCKED);
        ELSE
            UPDATE products SET stock = stock + 1 WHERE id =
                (SELECT id FROM products WHERE id > place % {products} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
        END CASE;
        GET DIAGNOSTICS done = ROW_COUNT;
        made := made + done;
    END LOOP;
    RETURN made;
END $$;

-- Write this number into the document, the cached row and the timeline entry that a reader looks for, in one
-- transaction.
CREATE FUNCTION bench.probe(n bigint) RETURNS integer LANGUAGE sql AS $$
    UPDATE posts SET title = 'probe ' || n WHERE id = -1;
    UPDATE products SET stock = n WHERE id = -1;
    SELECT 2;
$$;

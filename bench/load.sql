-- What the open loop calls. A row is chosen by a place: the first row at or above a number that is drawn from the
-- transaction's own number. Rows that another transaction holds are passed over, so that nobody waits for anybody.
CREATE SCHEMA bench;

CREATE FUNCTION bench.draw(n bigint, salt integer, below bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT (hashint8extended(n, salt) & 9223372036854775807) % below $$;

-- Money from an account to a saving; returns the rows changed: 2, or 0 if others hold the rows.
CREATE FUNCTION bench.transfer(n bigint) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    payer bigint;
    payee bigint;
BEGIN
    SELECT id INTO payer FROM accounts WHERE id > bench.draw(n, 2, {accounts}) ORDER BY id LIMIT 1
        FOR UPDATE SKIP LOCKED;
    SELECT id INTO payee FROM savings WHERE id > bench.draw(n, 3, {accounts}) ORDER BY id LIMIT 1
        FOR UPDATE SKIP LOCKED;
    IF payer IS NULL OR payee IS NULL THEN RETURN 0; END IF;
    UPDATE accounts SET balance = balance - 1 WHERE id = payer;
    UPDATE savings SET balance = balance + 1, touched_at = clock_timestamp() WHERE id = payee;
    RETURN 2;
END $$;

-- One transaction of `size` row changes in one to five tables, three in ten with a transfer, the rest 60 % updates,
-- 30 % inserts, 10 % deletes; returns how many rows it changed.
CREATE FUNCTION bench.change(n bigint, size integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    made integer := 0;
    done integer;
    action bigint;
    place bigint;
BEGIN
    IF bench.draw(n, 1, 10) < 3 THEN made := bench.transfer(n); END IF;
    FOR step IN made + 1 .. size LOOP
        action := bench.draw(n, 10 + step * 3, 10);
        place := bench.draw(n, 11 + step * 3, 9007199254740992);
        CASE bench.draw(n, 12 + step * 3, 3)
        WHEN 0 THEN
            IF action < 6 THEN
                UPDATE posts SET likes = likes + 1, edited_at = clock_timestamp() WHERE id =
                    (SELECT id FROM posts WHERE id > place % {posts} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
            ELSIF action < 9 THEN
                INSERT INTO posts (author_id, body, likes, created_at)
                VALUES (1 + place % {users}, 'a new post, ' || md5(place::text), 0, clock_timestamp());
            ELSE
                DELETE FROM posts WHERE id =
                    (SELECT id FROM posts WHERE id > place % {posts} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
            END IF;
        WHEN 1 THEN
            IF action < 6 THEN
                UPDATE follows SET muted = NOT muted, since = clock_timestamp() WHERE (follower_id, followee_id) =
                    (SELECT follower_id, followee_id FROM follows WHERE follower_id > place % {users}
                     ORDER BY follower_id, followee_id LIMIT 1 FOR UPDATE SKIP LOCKED);
            ELSIF action < 9 THEN
                INSERT INTO follows VALUES (1 + place % {users}, 1 + place, false, clock_timestamp())
                ON CONFLICT DO NOTHING;
            ELSE
                DELETE FROM follows WHERE (follower_id, followee_id) =
                    (SELECT follower_id, followee_id FROM follows WHERE follower_id > place % {users}
                     ORDER BY follower_id, followee_id LIMIT 1 FOR UPDATE SKIP LOCKED);
            END IF;
        ELSE
            IF action < 6 THEN
                UPDATE orders SET status = (ARRAY['paid', 'shipped', 'cancelled'])[1 + place % 3], note = place::text
                WHERE id = (SELECT id FROM orders WHERE id > place % {orders} ORDER BY id LIMIT 1
                            FOR UPDATE SKIP LOCKED);
            ELSIF action < 9 THEN
                INSERT INTO orders (user_id, status, discount, ordered_at)
                VALUES (1 + place % {users}, 'new', (place % 9000) / 100.0, clock_timestamp());
            ELSE
                DELETE FROM orders WHERE id =
                    (SELECT id FROM orders WHERE id > place % {orders} ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED);
            END IF;
        END CASE;
        GET DIAGNOSTICS done = ROW_COUNT;
        made := made + done;
    END LOOP;
    RETURN made;
END $$;

-- A row of each table that the load leaves alone, with this number in it: what a reader looks for. One transaction
-- over five tables, so a reader that finds two numbers sees half of one.
CREATE FUNCTION bench.probe(n bigint) RETURNS integer LANGUAGE sql AS $$
    INSERT INTO posts (id, author_id, body, likes, created_at) VALUES (-1, -1, 'probe', n, now())
        ON CONFLICT (id) DO UPDATE SET likes = EXCLUDED.likes;
    INSERT INTO follows VALUES (-1, -1, true, to_timestamp(n))
        ON CONFLICT (follower_id, followee_id) DO UPDATE SET since = EXCLUDED.since;
    INSERT INTO orders (id, user_id, status, note, ordered_at) VALUES (-1, -1, 'cancelled', n, now())
        ON CONFLICT (id) DO UPDATE SET note = EXCLUDED.note;
    INSERT INTO accounts VALUES (-1, n, 0)
        ON CONFLICT (id) DO UPDATE SET owner = EXCLUDED.owner;
    INSERT INTO savings VALUES (-1, n, 0)
        ON CONFLICT (id) DO UPDATE SET account_id = EXCLUDED.account_id;
    SELECT 5;
$$;

-- The rows. Author 0 has every follower; the others have ten posts each.
INSERT INTO users SELECT i, 'user ' || i FROM generate_series(-1, {users}) i;

INSERT INTO follows SELECT i, 0 FROM generate_series(1, {followers}) i;
INSERT INTO follows SELECT i, 1 + bench.draw(i, place, {authors}) FROM generate_series(1, {followers}) i,
    generate_series(1, {follows}) place
ON CONFLICT DO NOTHING;
INSERT INTO follows VALUES (-1, -1);

INSERT INTO posts (id, author_id, title, body, created_at)
SELECT i, i / 10, bench.words(i, 0, 6), bench.words(i, 100, 34), timestamptz '2026-01-01Z' + i * interval '1 second'
FROM generate_series(1, {documents}) i;
INSERT INTO posts VALUES (-1, -1, 'probe 0', '', timestamptz '2026-01-01Z');
SELECT setval(pg_get_serial_sequence('posts', 'id'), {documents});

INSERT INTO products SELECT i, 'sku ' || i, bench.words(i, 200, 20), (1 + i % 10000) / 100.0, i % 100
FROM generate_series(1, {products}) i;
INSERT INTO products VALUES (-1, 'probe', '', 0, 0);

INSERT INTO bench.documents SELECT id, bench.indexed(title, body) FROM posts;
CREATE INDEX ON bench.documents USING gin (words);
CREATE TRIGGER keep_document AFTER INSERT OR UPDATE OR DELETE ON posts
    FOR EACH ROW EXECUTE FUNCTION bench.keep_document();

ALTER TABLE posts REPLICA IDENTITY FULL;
ALTER TABLE products REPLICA IDENTITY FULL;
ALTER TABLE users REPLICA IDENTITY FULL;

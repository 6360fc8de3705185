-- Names, types, keys and identities that a replay may stumble over. Statements are separated by empty lines.
CREATE SCHEMA "My Schema"; CREATE EXTENSION citext; CREATE EXTENSION hstore SCHEMA "My Schema"

CREATE TYPE "My Schema"."Mood[]: " AS ENUM ('sad', 'it''s ok', 'a] b')

CREATE DOMAIN positive AS numeric(9,3) CHECK (VALUE > 0)

CREATE TYPE pair AS (first positive, second "My Schema"."Mood[]: "[])

CREATE TYPE span AS RANGE (SUBTYPE = "My Schema"."Mood[]: ")

-- Long, and does not compress.
CREATE FUNCTION long_text() RETURNS text LANGUAGE sql AS
$$ SELECT string_agg(md5(i::text), ' ') FROM generate_series(1, 400) i $$

CREATE TABLE "My Schema"."T.x: %s" (
    id bigint GENERATED ALWAYS AS IDENTITY, "Key ""2""" text COLLATE "C" DEFAULT 'k', "100%" int UNIQUE,
    gone int, mood "My Schema"."Mood[]: ", moods "My Schema"."Mood[]: "[], dom positive, two pair, sp span,
    ci citext, hs "My Schema".hstore, txt text, vc varchar(9), ch char(6), small smallint, r real, d float8,
    n numeric, b boolean, bin bytea, bits bit(4), vbits varbit, arr text[][], ints int[], dt date, ts timestamp,
    tz timestamptz, tm time, ttz timetz, iv interval, js json, jb jsonb, uu uuid, ip inet, mac macaddr,
    rng int4range, mrng nummultirange, x xml, m money, pt point, cchar "char", nm name, tsv tsvector,
    twice int GENERATED ALWAYS AS (small * 2) STORED, thrice int GENERATED ALWAYS AS (small * 3) VIRTUAL,
    body text, PRIMARY KEY ("Key ""2""", id))

ALTER TABLE "My Schema"."T.x: %s" DROP COLUMN gone, ADD COLUMN late int DEFAULT 7

ALTER TABLE "My Schema"."T.x: %s" ALTER body SET STORAGE EXTERNAL

CREATE TABLE full_one (id int PRIMARY KEY, parent int REFERENCES full_one ON DELETE CASCADE, body text)

ALTER TABLE full_one REPLICA IDENTITY FULL, ALTER body SET STORAGE EXTERNAL

CREATE TABLE by_index (id int PRIMARY KEY, other int NOT NULL UNIQUE, note text)

ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_other_key

CREATE TABLE parts (id int, part text, n int, PRIMARY KEY (part, id)) PARTITION BY LIST (part)

CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a')

CREATE FUNCTION change_again() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN UPDATE by_index SET note = note || '!' WHERE other = NEW.other; RETURN NULL; END $$

CREATE TRIGGER again AFTER INSERT ON by_index FOR EACH ROW EXECUTE FUNCTION change_again()

INSERT INTO "My Schema"."T.x: %s" (small, txt, "100%") VALUES (1, 'first', 100)

INSERT INTO full_one VALUES (1, NULL, 'root')

-- the oracle starts

INSERT INTO "My Schema"."T.x: %s" VALUES (DEFAULT, 'a ''key'' [x]:1', 1, 'it''s ok', '{"a] b",NULL}', 0.125,
    ROW(1.5, '{sad}'), '[sad,"it''s ok"]', 'CiText', 'a=>"b, c"', E'quote '' dquote " \\ [x]:''y''\nnew-tuple: \t',
    'unchanged', 'pad', -1, 0.1, 'NaN', 1e-30, true, '\x00ff27', B'0101', B'1', '{{a,NULL},{"b \"c\"","{}"}}',
    '{1,NULL}', '0044-03-15 BC', 'infinity', '2026-01-02 03:04:05.678901+05:30', '24:00', '12:00:00+02',
    '-1 year 2 mons -3.5 sec', '{"a" : [1, "x" ]}', '{"b": null, "a": "é\"\\"}', gen_random_uuid(), '10.0.0.1/8',
    '08:00:2b:01:02:03', '[1,5)', '{[1.5,2),[3,)}', '<a b="c">x</a>', 12.34, '(1,2)', 'c', 'nm', 'a b:1',
    DEFAULT, DEFAULT, long_text())

UPDATE "My Schema"."T.x: %s" SET small = 5, txt = 'unchanged-toast-datum', "100%" = NULL WHERE "100%" = 1

-- The key, beside a long text that stays out of line.
UPDATE "My Schema"."T.x: %s" SET "Key ""2""" = 'null' WHERE small = 5

UPDATE "My Schema"."T.x: %s" SET body = long_text() || '!', late = 8, ci = NULL WHERE late = 7 AND small = 5

INSERT INTO full_one SELECT g, g - 1, long_text() FROM generate_series(2, 5) g

UPDATE full_one SET parent = NULL WHERE id = 3; UPDATE full_one SET id = 9 WHERE id = 5

-- And 4, and 9, by the foreign key.
DELETE FROM full_one WHERE id = 3

INSERT INTO by_index SELECT g, g + 100, 'n' FROM generate_series(1, 9) g

-- Of the first the old row is not in the WAL, of the second it is.
UPDATE by_index SET id = id + 1000 WHERE id < 4; UPDATE by_index SET other = -other WHERE id BETWEEN 7 AND 9

-- Two rows change places.
BEGIN; UPDATE by_index SET other = 0 WHERE id = 5; UPDATE by_index SET other = 105 WHERE id = 6;
UPDATE by_index SET other = 106 WHERE id = 5; COMMIT

BEGIN; INSERT INTO by_index VALUES (77, 77, 'no'); SAVEPOINT s; DELETE FROM by_index; ROLLBACK TO s; COMMIT

BEGIN; DELETE FROM by_index; ROLLBACK

INSERT INTO parts VALUES (1, 'a', 1), (2, 'a', 2)

CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b')

UPDATE parts SET part = 'b' WHERE id = 1; INSERT INTO parts VALUES (3, 'b', 3); DELETE FROM parts WHERE id = 2

SELECT pg_logical_emit_message(true, 'p', 'table public.parts: TRUNCATE: (no-flags)')

BEGIN; TRUNCATE by_index, full_one CASCADE; INSERT INTO by_index VALUES (1, 1, 'again'); COMMIT

TRUNCATE parts RESTART IDENTITY; DELETE FROM "My Schema"."T.x: %s" WHERE small = 1

INSERT INTO "My Schema"."T.x: %s" (small, d, r, iv, jb) VALUES (3, '-0', 'Infinity', 'P1Y2M', 'null'), (4, 1e300, 1e-40, '0', '[]')

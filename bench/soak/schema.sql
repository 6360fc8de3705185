-- Small tables of all kinds, so that every epoch changes most of them.
CREATE TABLE accounts (id integer PRIMARY KEY, balance numeric(12, 2) NOT NULL);
CREATE TABLE savings (id integer PRIMARY KEY, balance numeric(12, 2) NOT NULL);
CREATE TABLE items (shop integer, sku text, price numeric(8, 2), tags text[], PRIMARY KEY (shop, sku));
CREATE TABLE notes (id integer PRIMARY KEY, body text, seen integer NOT NULL);
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, account_id integer, amount numeric(8, 2),
                     at timestamptz NOT NULL DEFAULT clock_timestamp());
-- Many alike, of which each transaction changes a few.
DO $$ BEGIN
    FOR shelf IN 1 .. current_setting('soak.shelves')::integer LOOP
        EXECUTE format('CREATE TABLE shelf_%s (id integer PRIMARY KEY, kept text, changed timestamptz)', shelf);
        EXECUTE format('INSERT INTO shelf_%s SELECT g, md5(g::text), now() FROM generate_series(1, 100) g', shelf);
    END LOOP;
END $$;
-- One row a writer: the number of its last transaction, in the same transaction.
CREATE TABLE clock (writer integer PRIMARY KEY, n bigint NOT NULL);

INSERT INTO accounts SELECT g, 100 FROM generate_series(1, 200) g;
INSERT INTO savings SELECT g, 100 FROM generate_series(1, 200) g;
INSERT INTO items SELECT g % 10, 'sku ' || g, g, ARRAY['new', NULL, 'a "b"'] FROM generate_series(1, 300) g;
-- 4 KB that do not compress, so that they are stored out of line.
INSERT INTO notes SELECT g, (SELECT string_agg(md5(g::text || h), '') FROM generate_series(1, 128) h), 0
FROM generate_series(1, 40) g;
INSERT INTO orders (account_id, amount) SELECT g % 200 + 1, g FROM generate_series(1, 300) g;

"""The database of the demo: about 100,000 rows, which the server generates from a seed in a few seconds.

    CDC_VIEWS_DEMO_DSN=D python -m cdc_views.demo.data --seed 1

Every value is a hash of the row number, the column and the seed, so the same seed gives the same rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
import psycopg
from psycopg import sql

from cdc_views.demo.programs import dsn_option
from cdc_views.demo.traffic.vocabulary import ODDITIES, SEARCHES, WORDS

SCHEMA_FILE: Final = Path(__file__).with_name("schema.sql")

SIZES: Final = {
    "users": 5_000,
    "follows": 25_000,
    "posts": 12_000,
    "searches": 24,
    "products": 2_000,
    "orders": 20_000,
    "order_items": 33_000,
    "accounts": 1_500,
    "savings": 1_500,
}

MOST_WORDS: Final = 12

# Written so that the server inlines them (no aggregate, no subselect): a real call costs 100 times as much.
# In pg_temp, so that they disappear with the session. `pick` is uniform in 0..n-1; `skewed` is in 1..n and
# prefers small numbers, as popularity does; `chance` is true in `percent` of 100 rows.
_FUNCTIONS: Final = """
CREATE FUNCTION pg_temp.pick(i bigint, salt integer, n bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT (hashint8extended(i, {seed} * 1000003 + salt) & 9223372036854775807) % n $$;
CREATE FUNCTION pg_temp.skewed(i bigint, salt integer, n bigint, power float8) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT 1 + floor(n * power(pg_temp.pick(i, salt, 1000000) / 1000000.0, power))::bigint $$;
CREATE FUNCTION pg_temp.chance(i bigint, salt integer, percent integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_temp.pick(i, salt, 100) < percent $$;
CREATE FUNCTION pg_temp.word(i bigint, salt integer) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN pg_temp.chance(i, salt, 4) THEN pg_temp.pick(i, salt + 500, 3000)::text
               ELSE ({words}::text[])[pg_temp.skewed(i, salt + 700, {word_count}, 2)] END $$;
CREATE FUNCTION pg_temp.words(i bigint, salt integer, n bigint) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT concat_ws(' ', {each_word}) $$;
CREATE FUNCTION pg_temp.phrase(i bigint, salt integer, n bigint) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT initcap(pg_temp.word(i, salt)) || ' ' || pg_temp.words(i, salt + 1, n)
          || CASE WHEN pg_temp.chance(i, salt + 2, 5)
                  THEN ', ' || ({oddities}::text[])[1 + pg_temp.pick(i, salt + 900, {oddity_count})] ELSE '' END $$;
CREATE FUNCTION pg_temp.long_text(i bigint, salt integer) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT repeat(string_agg(pg_temp.word(i * 100 + w, salt), ' '), 30 + pg_temp.pick(i, salt, 25)::integer) || ' ' || i
   FROM generate_series(1, 60) w $$;
CREATE FUNCTION pg_temp.tags(i bigint, salt integer) RETURNS text[] LANGUAGE sql STABLE AS
$$ SELECT CASE pg_temp.pick(i, salt, 10) WHEN 0 THEN NULL WHEN 1 THEN '{{}}'::text[]
          WHEN 2 THEN ARRAY[pg_temp.word(i, salt + 1), NULL, 'a "tag", {{odd}}']
          ELSE string_to_array(pg_temp.words(i, salt + 1, 1 + pg_temp.pick(i, salt + 2, 3)), ' ') END $$;
CREATE FUNCTION pg_temp.moment(i bigint, salt integer) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS
$$ SELECT timestamptz '2024-01-01 00:00:00+00' + pg_temp.pick(i, salt, 63072000000000) * interval '1 microsecond' $$;
"""

_ROWS: Final = {
    "users": """
        INSERT INTO users SELECT i, pg_temp.phrase(i, 10, 1),
            CASE WHEN NOT pg_temp.chance(i, 13, 10) THEN 'user' || i || '@example.org' END,
            CASE WHEN pg_temp.chance(i, 14, 60) THEN pg_temp.phrase(i, 15, 8) END,
            CASE WHEN pg_temp.chance(i, 18, 80)
                THEN (ARRAY['NL', 'DE', 'BR', 'JP', ''])[1 + pg_temp.pick(i, 19, 5)] END,
            pg_temp.chance(i, 20, 15), CASE WHEN pg_temp.chance(i, 21, 90) THEN pg_temp.pick(i, 22, 5000) - 500 END,
            CASE WHEN pg_temp.chance(i, 23, 70) THEN date '1940-01-01' + pg_temp.pick(i, 24, 25000)::integer END,
            pg_temp.moment(i, 25),
            CASE WHEN pg_temp.chance(i, 26, 50) THEN jsonb_build_object('theme', pg_temp.word(i, 27),
                'mail', pg_temp.chance(i, 28, 50), 'zoom', pg_temp.pick(i, 29, 400) / 100.0, 'unset', NULL) END
        FROM generate_series(1, {size}) i""",
    # Draws more than needed: some repeat, and some users would follow themselves.
    "follows": """
        INSERT INTO follows SELECT follower, followee, pg_temp.chance(i, 40, 5), pg_temp.moment(i, 41)
        FROM (SELECT DISTINCT ON (follower, followee) * FROM (
                SELECT i, pg_temp.skewed(i, 42, {users}, 2.2) AS follower,
                    pg_temp.skewed(i, 43, {users}, 1.6) AS followee
                FROM generate_series(1, {size} * 11 / 10) i) drawn
              WHERE follower <> followee ORDER BY follower, followee, i) once
        ORDER BY i LIMIT {size}""",
    # One post in three has a time on the full hour, so that timelines have ties.
    "posts": """
        INSERT INTO posts SELECT i, pg_temp.skewed(i, 50, {users}, 1.3),
            CASE WHEN pg_temp.chance(i, 51, 20) THEN 1 + pg_temp.pick(i, 52, {size}) END,
            CASE WHEN pg_temp.chance(i, 53, 1) THEN pg_temp.long_text(i, 54)
                 ELSE pg_temp.phrase(i, 55, 2 + pg_temp.pick(i, 58, 7)) END,
            pg_temp.tags(i, 59), pg_temp.pick(i, 62, 300),
            CASE WHEN pg_temp.chance(i, 63, 30) THEN jsonb_build_object('device', pg_temp.word(i, 64),
                'place', jsonb_build_array(pg_temp.pick(i, 65, 180), -pg_temp.pick(i, 66, 90) / 7.0)) END,
            CASE WHEN i % 3 = 0 THEN date_trunc('hour', pg_temp.moment(i, 67), 'UTC') ELSE pg_temp.moment(i, 67) END,
            CASE WHEN pg_temp.chance(i, 68, 10) THEN pg_temp.moment(i, 67) + interval '1 hour' END
        FROM generate_series(1, {size}) i""",
    "searches": """
        INSERT INTO searches SELECT i, 1 + pg_temp.pick(i, 30, {users}),
            ({queries}::text[])[1 + (i - 1) % {query_count}]
        FROM generate_series(1, {size}) i""",
    "products": """
        INSERT INTO products SELECT i, 'SKU-' || lpad(i::text, 6, '0'), pg_temp.phrase(i, 70, 2),
            CASE WHEN pg_temp.chance(i, 73, 10) THEN pg_temp.long_text(i, 74)
                 WHEN pg_temp.chance(i, 75, 80) THEN pg_temp.phrase(i, 76, 12) END,
            pg_temp.pick(i, 79, 50000) / 100.0,
            CASE WHEN pg_temp.chance(i, 80, 75) THEN pg_temp.pick(i, 81, 90000) / 1000.0 END,
            pg_temp.pick(i, 82, 1000), pg_temp.chance(i, 83, 5), pg_temp.tags(i, 84),
            CASE WHEN pg_temp.chance(i, 87, 60) THEN jsonb_build_object('colour', pg_temp.word(i, 88),
                'sizes', jsonb_build_array('s', 'm', pg_temp.pick(i, 89, 60))) END,
            CASE WHEN pg_temp.chance(i, 90, 50) THEN date '2023-01-01' + pg_temp.pick(i, 91, 1500)::integer END,
            CASE WHEN pg_temp.chance(i, 92, 70) THEN pg_temp.moment(i, 93) END
        FROM generate_series(1, {size}) i""",
    "orders": """
        INSERT INTO orders SELECT i, 1 + pg_temp.pick(i, 100, {users}),
            (ARRAY['paid', 'shipped', 'new', 'cancelled'])[pg_temp.skewed(i, 101, 4, 1.5)],
            CASE WHEN pg_temp.chance(i, 102, 20) THEN pg_temp.pick(i, 103, 9000) / 100.0 END,
            CASE WHEN pg_temp.chance(i, 104, 40) THEN date '2024-01-05' + pg_temp.pick(i, 105, 730)::integer END,
            CASE WHEN pg_temp.chance(i, 106, 15) THEN pg_temp.phrase(i, 107, 5) END, pg_temp.moment(i, 110)
        FROM generate_series(1, {size}) i""",
    "order_items": """
        INSERT INTO order_items SELECT order_id, line, pg_temp.skewed(n, 120, {products}, 1.5),
            1 + pg_temp.pick(n, 121, 5), pg_temp.pick(n, 122, 50000) / 100.0,
            CASE WHEN pg_temp.chance(n, 123, 30) THEN pg_temp.chance(n, 124, 50) END
        FROM (SELECT order_id, line, order_id * 10 + line AS n FROM generate_series(1, {orders}) order_id,
              LATERAL generate_series(1, pg_temp.skewed(order_id, 125, 4, 2.5)) line
              ORDER BY order_id, line LIMIT {size}) lines""",
    "accounts": """
        INSERT INTO accounts SELECT i, pg_temp.phrase(i, 130, 1), pg_temp.pick(i, 133, 1000000) / 100.0,
            CASE WHEN pg_temp.chance(i, 134, 20) THEN pg_temp.chance(i, 135, 10) END,
            CASE WHEN pg_temp.chance(i, 136, 80) THEN date '2010-01-01' + pg_temp.pick(i, 137, 5000)::integer END
        FROM generate_series(1, {size}) i""",
    "savings": """
        INSERT INTO savings SELECT i, CASE WHEN pg_temp.chance(i, 140, 95) THEN i END,
            pg_temp.pick(i, 141, 5000000) / 100.0,
            CASE WHEN pg_temp.chance(i, 142, 85) THEN pg_temp.pick(i, 143, 50000) / 10000.0 END,
            CASE WHEN pg_temp.chance(i, 144, 50) THEN pg_temp.moment(i, 145) END
        FROM generate_series(1, {size}) i""",
}


_WITH_SEQUENCE: Final = tuple(table for table in SIZES if table not in ("follows", "order_items"))


def create(dsn: str, seed: int) -> dict[str, int]:
    """Create the tables and their rows in one transaction. The database must not have these tables.

    Returns the number of rows of each table.
    """
    with psycopg.connect(dsn) as connection:
        connection.execute("SET LOCAL search_path TO public")
        connection.execute(SCHEMA_FILE.read_text())
        connection.execute(_functions(seed))
        rows = {table: connection.execute(_insert(table)).rowcount for table in SIZES}
        for table in _WITH_SEQUENCE:
            connection.execute(
                sql.SQL("SELECT setval(pg_get_serial_sequence({}, 'id'), max(id)) FROM {}").format(
                    table, sql.Identifier(table)
                )
            )
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return rows


def _functions(seed: int) -> sql.Composed:
    return sql.SQL(_FUNCTIONS).format(
        seed=sql.Literal(seed),
        words=sql.Literal(list(WORDS)),
        word_count=sql.Literal(len(WORDS)),
        oddities=sql.Literal(list(ODDITIES)),
        oddity_count=sql.Literal(len(ODDITIES)),
        each_word=sql.SQL(", ").join(
            sql.SQL("CASE WHEN n >= {w} THEN pg_temp.word(i * 16 + {w}, salt) END").format(w=sql.Literal(word))
            for word in range(1, MOST_WORDS + 1)
        ),
    )


def _insert(table: str) -> sql.Composed:
    sizes = {name: sql.Literal(size) for name, size in SIZES.items()}
    return sql.SQL(_ROWS[table]).format(
        size=sizes[table], queries=sql.Literal(list(SEARCHES)), query_count=sql.Literal(len(SEARCHES)), **sizes
    )


def is_there(dsn: str) -> bool:
    """Whether the database has the demo's tables; they are created together."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT to_regclass('public.savings')").fetchone()
    return found is not None and found[0] is not None


@click.command()
@dsn_option
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same rows.")
def main(dsn: str, seed: int) -> None:
    """Create the demo's tables with their rows, unless they exist.

    Example: CDC_VIEWS_DEMO_DSN="$DSN" python -m cdc_views.demo.data
    """
    if not is_there(dsn):
        click.echo(f"made {sum(create(dsn, seed).values()):,} rows", err=True)


if __name__ == "__main__":
    main()

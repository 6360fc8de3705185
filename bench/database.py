"""The database of the benchmarks: the demo's schema, the wanted number of rows, and the functions of the load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from psycopg import sql

from cdc_views.demo import data

LOAD_FILE: Final = Path(__file__).with_name("load.sql")

# The demo's table and view of saved searches, which are not measured. The goals are for its five other views, and each
# baseline can compute these.
SEARCHES: Final = "searches"
ALERTS: Final = "post_alerts"

# The tables that the load changes. Without views, these are the mirrored tables.
CHANGED: Final = ("posts", "follows", "orders", "accounts", "savings")

_ROWS: Final = {
    "posts": "INSERT INTO posts (id, author_id, body, likes, created_at) SELECT i, 1 + i % {users}, "
    "'post ' || md5(i::text), i % 300, timestamptz '2025-01-01Z' + i * interval '1 second' "
    "FROM generate_series(1, {posts}) i",
    "follows": "INSERT INTO follows SELECT 1 + i % {users}, 1 + i / {users}, false, "
    "timestamptz '2025-01-01Z' + i * interval '1 second' FROM generate_series(0, {posts} - 1) i",
    "orders": "INSERT INTO orders (id, user_id, status, discount, ordered_at) SELECT i, 1 + i % {users}, 'paid', "
    "(i % 9000) / 100.0, timestamptz '2025-01-01Z' + i * interval '1 second' FROM generate_series(1, {orders}) i",
    "accounts": "INSERT INTO accounts SELECT i, 'owner ' || i, 1000, false, date '2025-01-01' "
    "FROM generate_series(1, {accounts}) i",
    "savings": "INSERT INTO savings SELECT i, i, 1000, 0.5, timestamptz '2025-01-01Z' "
    "FROM generate_series(1, {accounts}) i",
}
_SEQUENCES: Final = ("posts", "orders", "accounts", "savings")
_MOST_ACCOUNTS: Final = 1_000
_FOLLOWS_PER_USER: Final = 10


@dataclass(frozen=True)
class Contents:
    """What was created: the tables to mirror, and the number of rows in all of them."""

    tables: tuple[str, ...]
    rows: int


def create(dsn: str, rows: int) -> Contents:
    """Create the tables that the load changes: `rows` rows each in posts, follows and orders, fewer in the bank."""
    sizes = {
        "posts": rows,
        "orders": rows,
        "users": max(1, rows // _FOLLOWS_PER_USER),
        "accounts": min(rows, _MOST_ACCOUNTS),
    }
    literals = {name: sql.Literal(size) for name, size in sizes.items()}
    with psycopg.connect(dsn) as connection:
        connection.execute(sql.SQL(data.SCHEMA_FILE.read_text()))
        made = sum(connection.execute(sql.SQL(_ROWS[table]).format(**literals)).rowcount for table in CHANGED)
        for table in _SEQUENCES:
            connection.execute(
                sql.SQL("SELECT setval(pg_get_serial_sequence({}, 'id'), max(id)) FROM {}").format(
                    table, sql.Identifier(table)
                )
            )
    _prepare(dsn, CHANGED, sizes)
    return Contents(CHANGED, made)


def create_demo(dsn: str, seed: int = 1) -> Contents:
    """Create the tables of the demo with its rows; those to mirror are the eight below the measured views."""
    made = data.create(dsn, seed)
    tables = tuple(table for table in made if table != SEARCHES)
    _prepare(dsn, tables, data.SIZES)
    return Contents(tables, sum(made[table] for table in tables))


def _prepare(dsn: str, tables: tuple[str, ...], sizes: Mapping[str, int]) -> None:
    """Create the functions of the load, set REPLICA IDENTITY FULL as `check` requires, and analyze the tables."""
    literals = {name: sql.Literal(size) for name, size in sizes.items()}
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL(LOAD_FILE.read_text()).format(**literals))
        for table in tables:
            connection.execute(sql.SQL("ALTER TABLE {} REPLICA IDENTITY FULL").format(sql.Identifier(table)))
        connection.execute("ANALYZE")

"""The rows of the demo's tables as a function of their number: one SELECT of DuckDB for each table.

`n` is the number of a row, from 0. Groups have the same size however many rows there are: a user has the same number
of follows, posts and orders. Numbers above the size of a table are the rows that inserts add.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cdc_views.demo.traffic.vocabulary import WORDS

MACROS: Final = f"""
CREATE MACRO pick(n, salt, below) AS CAST(hash(n * 1000003 + salt) % below AS BIGINT);
CREATE MACRO word(n, salt) AS {list(WORDS)}[1 + pick(n, salt, {len(WORDS)})];
CREATE MACRO words(n, salt, length) AS
    array_to_string(list_transform(range(length), lambda w: word(n * 16 + w, salt)), ' ');
CREATE MACRO moment(n, salt) AS TIMESTAMP '2024-01-01' + to_microseconds(pick(n, salt, 63072000000000));
CREATE MACRO cents(n, salt, below) AS pick(n, salt, below) / 100;
"""
"""Functions of the SELECTs: `pick` is uniform in 0..below-1, `moment` is within two years, in UTC."""


@dataclass(frozen=True)
class RowsOf:
    """How rows of a table are made: `share` of 1,000 rows of all tables, the values, and the columns of an update.

    The names of tables in braces stand for their sizes.
    """

    share: int
    values: str
    updated: tuple[str, ...]


# In the order in which changes are spread over them: the first ones reach the most views.
TABLES: Final[Mapping[str, RowsOf]] = {
    "orders": RowsOf(
        200,
        """n + 1 AS id, 1 + n % {users} AS user_id,
        ['paid', 'paid', 'shipped', 'new', 'cancelled'][1 + pick(n, 101, 5)] AS status,
        CASE WHEN pick(n, 102, 5) = 0 THEN cents(n, 103, 9000) END AS discount,
        CASE WHEN pick(n, 104, 5) < 2 THEN DATE '2024-01-05' + CAST(pick(n, 105, 730) AS INTEGER) END AS ship_by,
        CASE WHEN pick(n, 106, 7) = 0 THEN words(n, 107, 6) END AS note, moment(n, 110) AS ordered_at""",
        ("status", "note"),
    ),
    "posts": RowsOf(
        120,
        """n + 1 AS id, 1 + n % {users} AS author_id,
        CASE WHEN pick(n, 51, 5) = 0 THEN 1 + pick(n, 52, {posts}) END AS reply_to,
        words(n, 55, 4 + pick(n, 58, 7)) AS body,
        CASE WHEN pick(n, 59, 10) > 0 THEN [word(n, 60), word(n, 61)] END AS tags, pick(n, 62, 300) AS likes,
        CASE WHEN pick(n, 63, 10) < 3 THEN concat('{{"device": "', word(n, 64), '"}}') END AS meta,
        CASE WHEN n % 3 = 0 THEN date_trunc('hour', moment(n, 67)) ELSE moment(n, 67) END AS created_at,
        CASE WHEN pick(n, 68, 10) = 0 THEN moment(n, 67) + INTERVAL 1 HOUR END AS edited_at""",
        ("body", "likes", "edited_at"),
    ),
    "order_items": RowsOf(
        330,
        """1 + n % {orders} AS order_id, 1 + n // {orders} AS line, 1 + pick(n, 120, {products}) AS product_id,
        1 + pick(n, 121, 5) AS quantity, cents(n, 122, 50000) AS unit_price,
        CASE WHEN pick(n, 123, 10) < 3 THEN pick(n, 124, 2) = 0 END AS gift""",
        ("quantity", "unit_price"),
    ),
    # A user has up to 13 follows, and no two of the same user.
    "follows": RowsOf(
        250,
        """1 + n % {users} AS follower_id,
        1 + (n % {users} * 31 + n // {users} * ({users} // 7 + 1)) % {users} AS followee_id,
        pick(n, 40, 5) = 0 AS muted, moment(n, 41) AS since""",
        ("muted", "since"),
    ),
    "users": RowsOf(
        50,
        """n + 1 AS id, words(n, 10, 2) AS name,
        CASE WHEN pick(n, 13, 10) > 0 THEN concat('user', n + 1, '@example.org') END AS email,
        CASE WHEN pick(n, 14, 10) < 6 THEN words(n, 15, 9) END AS bio,
        CASE WHEN pick(n, 18, 5) > 0 THEN ['NL', 'DE', 'BR', 'JP', ''][1 + pick(n, 19, 5)] END AS country,
        pick(n, 20, 7) = 0 AS verified, CASE WHEN pick(n, 21, 10) > 0 THEN pick(n, 22, 5000) - 500 END AS karma,
        CASE WHEN pick(n, 23, 10) < 7 THEN DATE '1940-01-01' + CAST(pick(n, 24, 25000) AS INTEGER) END AS born,
        moment(n, 25) AS joined_at,
        CASE WHEN pick(n, 26, 2) = 0 THEN concat('{{"theme": "', word(n, 27), '"}}') END AS settings""",
        ("name", "bio", "karma"),
    ),
    "products": RowsOf(
        20,
        """n + 1 AS id, concat('SKU-', n + 1) AS sku, words(n, 70, 3) AS name,
        CASE WHEN pick(n, 75, 5) > 0 THEN words(n, 76, 13) END AS description, cents(n, 79, 50000) AS price,
        CASE WHEN pick(n, 80, 4) > 0 THEN pick(n, 81, 90000) / 1000 END AS weight_kg, pick(n, 82, 1000) AS stock,
        pick(n, 83, 20) = 0 AS discontinued,
        CASE WHEN pick(n, 84, 10) > 0 THEN [word(n, 85), word(n, 86)] END AS tags,
        CASE WHEN pick(n, 87, 10) < 6 THEN concat('{{"colour": "', word(n, 88), '"}}') END AS attributes,
        CASE WHEN pick(n, 90, 2) = 0 THEN DATE '2023-01-01' + CAST(pick(n, 91, 1500) AS INTEGER) END AS available_from,
        CASE WHEN pick(n, 92, 10) < 7 THEN moment(n, 93) END AS updated_at""",
        ("price", "stock", "updated_at"),
    ),
    "accounts": RowsOf(
        15,
        """n + 1 AS id, words(n, 130, 2) AS owner, cents(n, 133, 1000000) AS balance,
        CASE WHEN pick(n, 134, 5) = 0 THEN pick(n, 135, 10) = 0 END AS frozen,
        CASE WHEN pick(n, 136, 5) > 0 THEN DATE '2010-01-01' + CAST(pick(n, 137, 5000) AS INTEGER) END AS opened_on""",
        ("balance",),
    ),
    "savings": RowsOf(
        15,
        """n + 1 AS id, CASE WHEN pick(n, 140, 20) > 0 THEN n + 1 END AS account_id,
        cents(n, 141, 5000000) AS balance,
        CASE WHEN pick(n, 142, 7) > 0 THEN pick(n, 143, 50000) / 10000 END AS interest,
        CASE WHEN pick(n, 144, 2) = 0 THEN moment(n, 145) END AS touched_at""",
        ("balance", "touched_at"),
    ),
}

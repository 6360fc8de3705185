"""Shapes of several levels: top-k, views over views, CTEs, and joins of derived tables.

A top-k takes 2 rows here, and not 100, so that a dozen rows fill it, overflow it and leave it incomplete.
"""

from __future__ import annotations

from typing import Final

from tests.view_shapes.shape import Shape, View, shape

_PLACE: Final = "row_number() OVER (PARTITION BY f.follower_id ORDER BY p.created_at DESC, p.id DESC)"
_FEED: Final = "follows f JOIN posts p ON p.author_id = f.followee_id"
_PAID: Final = "WITH paid AS (SELECT user_id, count(*) AS n FROM orders WHERE status = 'paid' GROUP BY user_id)"

NESTED: Final = (
    shape(
        28,
        "top_k_per_group",
        "SELECT follower_id, post_id, author_id, body, place FROM (SELECT f.follower_id, p.id AS post_id,"
        f" p.author_id, p.body, {_PLACE} AS place FROM {_FEED}) AS t WHERE place <= 2",
        "PATCH",
    ),
    Shape(
        29,
        "top_k_unranked",
        (
            View(
                "top_k_unranked",
                "SELECT follower_id, post_id, author_id FROM (SELECT f.follower_id, p.id AS post_id, p.author_id,"
                f" {_PLACE} AS place FROM {_FEED}) AS t WHERE place <= 2",
                "PATCH",
            ),
            View(
                "top_k_qualified",
                f"SELECT f.follower_id, p.id AS post_id, p.body FROM {_FEED} QUALIFY {_PLACE} <= 2",
                "PATCH",
            ),
        ),
    ),
    shape(33, "global_top_k", "SELECT id, name, price FROM products ORDER BY price DESC LIMIT 2", "PATCH"),
    Shape(
        38,
        "view_over_view",
        (
            View(
                "amounts",
                "SELECT user_id, count(*) AS n, max(amount) AS most FROM three_way GROUP BY user_id",
            ),
            View(
                "amounts_with_times",
                "SELECT a.user_id, a.most, m.latest FROM amounts a JOIN group_min_max m ON m.user_id = a.user_id",
            ),
        ),
    ),
    Shape(
        39,
        "diamond",
        (
            View("open_orders", "SELECT id, user_id, note FROM orders WHERE status = 'open'"),
            View("order_counts", "SELECT user_id, count(*) AS n FROM orders GROUP BY user_id"),
            View(
                "diamond",
                "SELECT o.id, o.note, c.n FROM open_orders o JOIN order_counts c ON c.user_id = o.user_id",
            ),
        ),
    ),
    shape(
        40,
        "join_on_aggregate",
        "SELECT m.category_id, p.id, p.name FROM (SELECT category_id, max(price) AS price FROM products"
        " GROUP BY category_id) m JOIN products p ON p.price = m.price",
    ),
    Shape(
        46,
        "cte_twice",
        (
            View(
                "cte_twice",
                f"{_PAID} SELECT user_id, n, 'self' AS kind FROM paid UNION ALL SELECT u.manager_id, p.n, 'team'"
                " FROM paid p JOIN users u ON u.id = p.user_id",
            ),
            View(
                "cte_joined_twice",
                f"{_PAID} SELECT u.id, a.n, b.n AS of_manager FROM users u JOIN paid a ON a.user_id = u.id"
                " LEFT JOIN paid b ON b.user_id = u.manager_id",
            ),
        ),
    ),
    shape(
        48,
        "nested_three",
        "SELECT country, user_id, n FROM (SELECT u.country, u.id AS user_id, t.n, row_number() OVER"
        " (PARTITION BY u.country ORDER BY t.n DESC, u.id) AS place FROM users u JOIN (SELECT o.user_id, count(*) AS n"
        " FROM orders o WHERE EXISTS (SELECT 1 FROM order_items i WHERE i.order_id = o.id AND i.quantity > 1)"
        " GROUP BY o.user_id) t ON t.user_id = u.id) AS r WHERE place <= 2",
    ),
    Shape(
        49,
        "as_of",
        (
            View(
                "as_of_window",
                "SELECT order_id, line, price FROM (SELECT i.order_id, i.line, p.price, row_number() OVER"
                " (PARTITION BY i.order_id, i.line ORDER BY p.since DESC) AS place FROM order_items i"
                " JOIN orders o ON o.id = i.order_id LEFT JOIN prices p ON p.product_id = i.product_id"
                " AND p.since <= o.ordered_at) AS t WHERE place = 1",
            ),
            View(
                "as_of_lateral",
                "SELECT i.order_id, i.line, l.latest.price AS price FROM order_items i JOIN orders o"
                " ON o.id = i.order_id JOIN LATERAL (SELECT max(struct(p.since, p.price)) AS latest FROM prices p"
                " WHERE p.product_id = i.product_id AND p.since <= o.ordered_at) l ON true",
            ),
        ),
    ),
    Shape(50, "hot_key", (), of=("inner_join", "group_sum_count", "top_k_per_group")),
)

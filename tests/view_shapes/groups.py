"""Shapes of groups: aggregates, windows of rows, and windows of time."""

from __future__ import annotations

from typing import Final

from tests.view_shapes.shape import Shape, View, shape

_ITEMS: Final = "orders o JOIN order_items i ON i.order_id = o.id"

GROUPS: Final = (
    shape(
        16,
        "group_sum_count",
        f"SELECT o.user_id, count(*) AS items, sum(i.quantity * i.unit_price) AS amount FROM {_ITEMS}"
        " GROUP BY o.user_id",
        "ADD",
    ),
    shape(
        17,
        "group_min_max",
        "SELECT user_id, min(ordered_at) AS earliest, max(ordered_at) AS latest FROM orders GROUP BY user_id",
    ),
    shape(
        18,
        "group_distinct",
        f"SELECT o.user_id, count(DISTINCT i.product_id) AS products FROM {_ITEMS} GROUP BY o.user_id",
    ),
    shape(19, "having", "SELECT user_id, count(*) AS n FROM events GROUP BY user_id HAVING count(*) > 3"),
    Shape(
        20,
        "group_expression",
        (
            View(
                "orders_by_day",
                "SELECT date_trunc('day', ordered_at) AS day, count(*) AS n, max(id) AS newest FROM orders"
                " GROUP BY date_trunc('day', ordered_at)",
            ),
            View(
                "users_by_lower_name",
                "SELECT lower(name) AS name, count(*) AS n, min(id) AS oldest FROM users GROUP BY lower(name)",
            ),
        ),
    ),
    # stddev adds floats, and is refused (test_view_shapes.py); it follows from a count, a sum and a sum of squares.
    shape(
        21,
        "aggregate_filter",
        "SELECT o.user_id, count(*) FILTER (WHERE o.status = 'paid') AS paid, avg(i.quantity) AS quantity,"
        " avg(i.unit_price) AS price, count(i.quantity) AS n, sum(i.quantity) AS total,"
        f" sum(i.quantity * i.quantity) AS squares FROM {_ITEMS} GROUP BY o.user_id",
    ),
    shape(
        22,
        "ordered_list",
        "SELECT author_id, sort_array(collect_list(struct(created_at, id, body))) AS posts FROM posts"
        " GROUP BY author_id",
        "PATCH",
    ),
    Shape(
        23,
        "null_group",
        (
            View("null_group", "SELECT weight, count(*) AS n, max(price) AS dearest FROM products GROUP BY weight"),
            View(
                "nan_group",
                "SELECT CASE WHEN sku = 's1' THEN CAST('NaN' AS DOUBLE) ELSE weight END AS weight, count(*) AS n"
                " FROM products GROUP BY CASE WHEN sku = 's1' THEN CAST('NaN' AS DOUBLE) ELSE weight END",
            ),
            View("null_groups", "SELECT country, name, count(*) AS n FROM users GROUP BY country, name"),
        ),
    ),
    shape(
        30,
        "rank_ties",
        "SELECT id, rank() OVER (PARTITION BY category_id ORDER BY price) AS place,"
        " dense_rank() OVER (PARTITION BY category_id ORDER BY price) AS dense FROM products",
    ),
    shape(
        31,
        "running_total",
        "SELECT i.order_id, i.line, o.user_id, sum(i.quantity) OVER (PARTITION BY o.user_id ORDER BY o.ordered_at)"
        f" AS total FROM {_ITEMS}",
    ),
    shape(
        32,
        "lag_lead",
        "SELECT id, user_id, lag(kind) OVER w AS before, lead(kind) OVER w AS after, first_value(kind) OVER w AS first,"
        " ntile(2) OVER w AS half, count(*) OVER (PARTITION BY user_id ORDER BY at ROWS BETWEEN 1 PRECEDING AND"
        " CURRENT ROW) AS n FROM events WINDOW w AS (PARTITION BY user_id ORDER BY at)",
    ),
    shape(
        41,
        "rollup",
        "SELECT u.country, o.status, grouping_id() AS level, count(*) AS n, sum(length(o.note)) AS characters"
        " FROM users u JOIN orders o ON o.user_id = u.id GROUP BY ROLLUP (u.country, o.status)",
        "ADD",
    ),
    shape(
        42,
        "global_sum",
        "SELECT count(*) AS n, sum(balance) AS total FROM (SELECT balance FROM accounts UNION ALL SELECT balance"
        " FROM savings) AS t",
        "ADD",
    ),
    Shape(
        43,
        "global_max",
        (
            View(
                "global_max",
                "SELECT min(price) AS least, max(price) AS most, count(DISTINCT category_id) AS categories"
                " FROM products",
                "ADD",
            ),
            View(
                "global_max_of_join",
                "SELECT count(*) AS n, sum(i.quantity) AS pieces, count(i.quantity) AS counted, max(p.price) AS most,"
                " count(DISTINCT p.category_id) AS categories FROM order_items i"
                " JOIN products p ON p.id = i.product_id",
                "ADD",
            ),
        ),
    ),
    Shape(
        44,
        "time_windows",
        (
            View(
                "tumbling",
                "SELECT `window`.start AS begin, count(*) AS n, max(id) AS newest FROM events"
                " GROUP BY `window`(at, '5 minutes')",
            ),
            View(
                "hopping",
                "SELECT `window`.start AS begin, count(*) AS n, max(id) AS newest FROM events"
                " GROUP BY `window`(at, '1 hour', '15 minutes')",
            ),
        ),
    ),
    shape(
        45,
        "session",
        "SELECT user_id, session_window.start AS begin, session_window.end AS finish, count(*) AS n FROM events"
        " GROUP BY user_id, session_window(at, '30 minutes')",
    ),
)

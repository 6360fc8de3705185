"""Shapes of joins: inner and outer, semi and anti, and subqueries used as values."""

from __future__ import annotations

from typing import Final

from tests.view_shapes.shape import Shape, View, shape

JOINS: Final = (
    shape(2, "inner_join", "SELECT o.id, o.status, u.name FROM orders o JOIN users u ON u.id = o.user_id"),
    shape(
        3,
        "many_to_many",
        "SELECT f.follower_id, f.followee_id, p.id AS post_id, p.body"
        " FROM follows f JOIN posts p ON p.author_id = f.followee_id",
    ),
    shape(
        4,
        "three_way",
        "SELECT i.order_id, i.line, o.user_id, p.name, i.quantity * i.unit_price AS amount FROM order_items i"
        " JOIN orders o ON o.id = i.order_id JOIN products p ON p.id = i.product_id",
    ),
    shape(
        5,
        "left_join",
        "SELECT u.id AS user_id, u.name, o.id AS order_id, o.status"
        " FROM users u LEFT JOIN orders o ON o.user_id = u.id",
    ),
    shape(
        6,
        "right_join",
        "SELECT u.id AS user_id, u.name, o.id AS order_id, o.status"
        " FROM orders o RIGHT JOIN users u ON o.user_id = u.id",
    ),
    shape(
        7,
        "full_join",
        "SELECT id, a.balance AS account, s.balance AS saved FROM accounts a FULL JOIN savings s USING (id)",
    ),
    shape(
        8,
        "left_join_filtered_on",
        "SELECT u.id AS user_id, o.id AS order_id, o.note"
        " FROM users u LEFT JOIN orders o ON o.user_id = u.id AND o.status = 'open'",
    ),
    Shape(
        9,
        "self_join",
        (
            View(
                "self_join",
                "SELECT u.id, u.name, m.name AS manager FROM users u JOIN users m ON m.id = u.manager_id",
            ),
            # 0.0 equals -0.0.
            View("float_join", "SELECT a.id, b.id AS other FROM products a JOIN products b ON a.weight = b.weight"),
        ),
    ),
    shape(
        10,
        "mutual",
        "SELECT a.follower_id AS one, a.followee_id AS other, b.muted FROM follows a JOIN follows b"
        " ON a.follower_id = b.followee_id AND a.followee_id = b.follower_id",
    ),
    shape(
        11,
        "equality_and_range",
        "SELECT a.id, b.id AS other, b.kind FROM events a JOIN events b"
        " ON a.user_id = b.user_id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR",
    ),
    shape(
        12,
        "semi",
        "SELECT id, name FROM users u WHERE EXISTS"
        " (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 'paid')",
    ),
    shape(
        13,
        "anti",
        "SELECT id, name FROM users u WHERE NOT EXISTS"
        " (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 'paid')",
    ),
    shape(
        14,
        "in_subquery",
        "SELECT id, country FROM users WHERE id IN (SELECT user_id FROM orders WHERE status = 'open')",
    ),
    Shape(
        15,
        "not_in",
        (
            View("not_in", "SELECT id, name FROM users WHERE id NOT IN (SELECT follower_id FROM follows WHERE muted)"),
            View(
                "not_in_nullable",
                "SELECT id, name FROM users WHERE id NOT IN (SELECT user_id FROM orders WHERE status = 'open')",
                "FULL",
                "not in",
            ),
        ),
    ),
    shape(
        36,
        "scalar_correlated",
        "SELECT u.id, (SELECT max(ordered_at) FROM orders o WHERE o.user_id = u.id) AS latest,"
        " (SELECT count(*) FROM orders o WHERE o.user_id = u.id) AS n FROM users u",
    ),
    shape(
        37,
        "scalar_uncorrelated",
        "SELECT id, price FROM products WHERE price > (SELECT avg(price) FROM products)",
    ),
    Shape(
        51,
        "full",
        (
            View("window_over_all", "SELECT id, rank() OVER (ORDER BY price) AS place FROM products", "FULL", "window"),
            View(
                "unequal_join",
                "SELECT a.id, b.id AS other FROM accounts a JOIN savings b ON a.balance < b.balance",
                "FULL",
                "equality",
            ),
            View(
                "recursive",
                "WITH RECURSIVE tree (id, root) AS (SELECT id, id FROM categories WHERE parent_id IS NULL UNION ALL"
                " SELECT c.id, t.root FROM tree t JOIN categories c ON c.parent_id = t.id) SELECT id, root FROM tree",
                "FULL",
                "recursive",
            ),
        ),
    ),
)

"""Shapes of single rows: filters, projections, set operations, generators, lists and documents."""

from __future__ import annotations

from typing import Final

from tests.view_shapes.shape import Shape, View, shape

ROWS: Final = (
    shape(1, "filter_project", "SELECT id, upper(name) AS n FROM users WHERE country = 'NL'"),
    shape(24, "distinct_rows", "SELECT DISTINCT u.country FROM users u JOIN orders o ON o.user_id = u.id"),
    shape(25, "union_all", "SELECT id, balance FROM accounts UNION ALL SELECT id, balance FROM savings"),
    Shape(
        26,
        "set_operations",
        (
            View("union_rows", "SELECT name FROM users UNION SELECT name FROM products"),
            View("intersect_rows", "SELECT name FROM users INTERSECT SELECT name FROM products"),
            View("except_rows", "SELECT name FROM users EXCEPT SELECT name FROM products"),
            View("intersect_all", "SELECT name FROM users INTERSECT ALL SELECT name FROM products"),
            View("except_all", "SELECT name FROM users EXCEPT ALL SELECT name FROM products"),
        ),
    ),
    shape(27, "bag", "SELECT country, name FROM users"),
    Shape(
        34,
        "terms",
        (
            View(
                "terms",
                "SELECT term, post_id, count(*) AS n FROM (SELECT id AS post_id, explode(split(lower(body), ' ')) AS"
                " term FROM posts) AS t GROUP BY term, post_id",
            ),
            View(
                "tag_counts",
                "SELECT t.tag, count(*) AS posts, count(p.body) AS bodies FROM posts p LATERAL VIEW explode(p.tags) t"
                " AS tag GROUP BY t.tag",
                "ADD",
            ),
        ),
    ),
    shape(
        35,
        "posexplode_outer",
        "SELECT p.id, t.place, t.tag FROM posts p LATERAL VIEW OUTER posexplode(p.tags) t AS place, tag",
    ),
    Shape(
        47,
        "document",
        (
            View(
                "document",
                "SELECT u.id, to_json(named_struct('name', u.name, 'orders', o.list, 'posts', p.list)) AS body"
                " FROM users u LEFT JOIN (SELECT user_id, sort_array(collect_list(struct(id, status))) AS list"
                " FROM orders GROUP BY user_id) o ON o.user_id = u.id LEFT JOIN (SELECT author_id,"
                " sort_array(collect_list(struct(id, body))) AS list FROM posts GROUP BY author_id) p"
                " ON p.author_id = u.id",
            ),
            View(
                "document_lateral",
                "SELECT u.id, to_json(named_struct('name', u.name, 'orders', o.list, 'posts', p.list)) AS body"
                " FROM users u LEFT JOIN LATERAL (SELECT sort_array(collect_list(struct(id, status))) AS list"
                " FROM orders WHERE user_id = u.id) o ON true LEFT JOIN LATERAL (SELECT"
                " sort_array(collect_list(struct(id, body))) AS list FROM posts WHERE author_id = u.id) p ON true",
            ),
        ),
    ),
)

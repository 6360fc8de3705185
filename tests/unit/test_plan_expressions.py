"""Which expressions of a view an internal view would store."""

from __future__ import annotations

import pytest

from cdc_views.plan.incremental.expressions.known import Wanted
from tests.unit.golden import compiled, maintained


def wanted(select: str) -> list[str]:
    view = compiled(f"CREATE MATERIALIZED VIEW v AS {select}")
    return [
        found.text
        for each in maintained(view).wanted
        if isinstance(each, Wanted)
        for found in each.expressions.values()
    ]


@pytest.mark.parametrize(
    ("select", "texts"),
    [
        ("SELECT upper(note), count(*) FROM orders GROUP BY upper(note)", ["upper(note)"]),
        ("SELECT DISTINCT upper(note) FROM orders", ["upper(note)"]),
        (
            "SELECT o.id, p.id AS p FROM orders o JOIN posts p ON upper(o.note) = upper(p.body)"
            " INNER JOIN users u ON u.id = o.user_id",
            ["upper(o.note)", "upper(p.body)"],
        ),
        (
            "SELECT o.id, p.id AS p FROM orders o JOIN posts p ON upper(o.note) = upper(p.body) CROSS JOIN users u",
            ["upper(o.note)", "upper(p.body)"],
        ),
        # Alone they mean something else than in the view.
        ("SELECT DISTINCT hash(o.id, *) AS h FROM orders o JOIN posts p ON o.id = p.id", []),
        (
            "SELECT o.id, p.id AS p FROM orders o JOIN posts p"
            " ON coalesce(o.note = 'a', true) = (p.body LIKE 'a' ESCAPE '!')",
            ["coalesce(o.note = 'a', true)", "(p.body LIKE 'a' ESCAPE '!')"],
        ),
        (
            "SELECT o.id, p.id AS p FROM orders o JOIN posts p"
            " ON coalesce(o.note = 'a', true) = coalesce(p.body = 'a', true) < true",
            [],
        ),
        # Different texts are equal.
        ("SELECT o.id, p.id AS p FROM orders o JOIN posts p ON o.note COLLATE UTF8_LCASE = p.body", []),
        ("SELECT o.id, p.id AS p FROM orders o JOIN posts p ON COLLATE(o.note, 'UTF8_LCASE') = p.body", []),
        ("SELECT o.id, p.id AS p FROM orders o JOIN posts p ON `Collate`(o.note, 'UTF8_LCASE') = p.body", []),
        (
            "SELECT o.id, p.id AS p FROM orders o JOIN posts p"
            " ON from_json(o.note, 'n STRING COLLATE UNICODE').n = from_json(p.body, 'n string\\ncollate UNICODE').n",
            [],
        ),
        (
            "SELECT count(*) OVER (PARTITION BY variant_get(parse_json(note), '$.n', 'string Collate UNICODE')) AS n"
            " FROM orders",
            [],
        ),
        # Rows of a table have several sessions.
        ("SELECT count(*) AS n FROM orders GROUP BY `SESSION_WINDOW`(ordered_at, '5 minutes')", []),
    ],
)
def test_expressions_that_an_internal_view_would_store(select: str, texts: list[str]) -> None:
    assert wanted(select) == texts


def test_expression_beside_many_others_is_found() -> None:
    others = ", ".join(f"max(id + {number}) AS m{number}" for number in range(60))
    select = f"SELECT {others}, upper(note) AS x, {others.replace(' m', ' n')} FROM orders GROUP BY upper(note)"
    assert wanted(select) == ["upper(note)"]

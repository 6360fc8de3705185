"""Kind `cache`: its key, and what it refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cdc_views.errors import BadView
from cdc_views.views.kinds import KINDS
from tests.unit.golden import compiled

ITEMS = "SELECT order_id, line, quantity FROM order_items"


def _text(key: str, select: str = ITEMS) -> str:
    return f"CREATE MATERIALIZED VIEW v WITH (kind = 'cache', key = '{key}') AS {select}"


def test_cache_is_maintained_as_it_is_written() -> None:
    view = compiled(_text("order_id, line"))
    assert view.query({"public.order_items": "x"}) == "SELECT order_id, line, quantity FROM x AS order_items"


@pytest.mark.parametrize(
    ("key", "select", "wanted"),
    [
        ("order_id, line", ITEMS, ("order_id", "line")),
        ("line, order_id", ITEMS, ("line", "order_id")),
        ("LINE, ORDER_ID", ITEMS, ("line", "order_id")),
        ("order_id, line, quantity", ITEMS, ("order_id", "line", "quantity")),
        ("user_id", "SELECT user_id, count(*) FROM orders GROUP BY user_id", ("user_id",)),
        ("who", "SELECT user_id AS who, max(id) AS id FROM orders GROUP BY user_id", ("who",)),
    ],
)
def test_key_of_the_table_is_that_of_the_option(key: str, select: str, wanted: tuple[str, ...]) -> None:
    assert compiled(_text(key, select)).key == wanted


@pytest.mark.parametrize(
    ("key", "select", "message", "hint"),
    [
        ("order_id", ITEMS, "rows with the same (order_id) may differ in line", "key = 'order_id, line'"),
        ("line", "SELECT line, quantity FROM order_items", 'proven to identify a row: column "order_id"', "GROUP BY"),
        ("oder_id", ITEMS, 'option "key": the view has no column "oder_id"', 'did you mean "order_id"'),
        ("line, line", ITEMS, "a column of the key appears twice", "None"),
    ],
)
def test_key_that_is_not_proven_is_refused_with_its_place(key: str, select: str, message: str, hint: str) -> None:
    with pytest.raises(BadView) as caught:
        compiled(_text(key, select))
    assert caught.value.message.startswith("v.sql:1:56: ")
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


def test_key_of_a_list_is_refused_when_the_types_are_known() -> None:
    view = compiled(_text("id, tags", "SELECT id, tags FROM posts"))
    with pytest.raises(BadView, match='key column "tags" is of type list<element: string>'):
        KINDS["cache"].record(view.definition.kind_options, {"id": "int64", "tags": "list<element: string>"}, view.key)


def test_cache_without_a_key_is_refused() -> None:
    with pytest.raises(BadView, match='kind "cache" without the option "key"'):
        compiled("CREATE MATERIALIZED VIEW v WITH (kind = cache) AS SELECT id FROM orders")


def test_cache_of_the_page_compiles() -> None:
    page = (Path(__file__).parents[2] / "docs" / "views.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- cache:.*?-->\n```sql\n(.*?)```", page, re.DOTALL)
    assert found
    assert compiled(found[1], "product_cache.sql").key == ("product_id",)

"""docs/http.md: its lines run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pyarrow as pa

from cdc_views.store.warehouse import TableSpec
from tests.page_blocks import block
from tests.unit import test_reading_timeline
from tests.unit.fix_http import serving
from tests.unit.published import ORDERS, Published
from tests.unit.search.test_search_reading import SCHEMA, Posts, at
from tests.unit.test_reading_cache import PRODUCTS

TOTALS = TableSpec(
    "order_totals", "views/order_totals/a", pa.schema([("user_id", pa.int64()), ("orders", pa.int64())]), ("user_id",)
)


HOME = TableSpec(
    "home_timeline", "views/home_timeline/a", test_reading_timeline.HOME.schema, ("user_id", "post_id"),
    kind=test_reading_timeline.HOME.kind,
)  # fmt: skip
CACHE = TableSpec("product_cache", "views/product_cache/a", PRODUCTS.schema, ("id",), kind=PRODUCTS.kind)


def test_lines_of_the_page(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a"), (2, "b")])
    shop.write(TOTALS, [(7, 2)])
    shop.publish()
    answers = [json.loads(text) for text in run("http", tmp_path)]
    row = {"user_id": 7, "orders": 2}
    epoch, views, view, rows, one, keys, query, line, change = answers
    assert (epoch["epoch"], len(views["views"]), view["key"]) == (1, 2, ["user_id"])
    assert [rows["rows"], one, keys["rows"], line, change["rows"]] == [[row], row, [row], row, [row]]
    assert (keys["absent"], query["rows"]) == (["8"], [{"n": 2}])


def test_lines_of_the_kinds(tmp_path: Path) -> None:
    posts = Posts(tmp_path, name="post_search", schema=SCHEMA.append(pa.field("likes", pa.int64())))
    posts.published.write(HOME, [(1, 5, at(1))])
    posts.published.write(CACHE, [(2, "honey", 1.5)])
    posts.put(
        [
            (1, "Honey", "and bread", "ada", at(1), 10),
            (2, "Tea", "with honey", "bob", at(2), 11),
            (3, "Honey", "and tea", "ada", at(3), 9),
        ]
    )
    found, liked, timeline, row, rows = (json.loads(text) for text in run("kinds", tmp_path))
    assert [each["key"] for each in found["rows"]] == [1]
    assert [each["key"] for each in liked["rows"]] == [2, 1]
    assert [each["post_id"] for each in timeline["rows"]] == [5]
    assert row == {"id": 2, "name": "honey", "price": 1.5}
    assert [each["state"] for each in rows["rows"]] == ["hit", "miss"]


def run(name: str, warehouse: Path) -> list[str]:
    """What the lines of a block of the page print, against a server."""
    with serving(warehouse) as http:
        return [
            subprocess.check_output(["bash", "-c", line], env={"URL": http.url}, text=True)
            for line in block("docs/http.md", name).splitlines()
        ]

"""docs/readers.md: the lines of the Python client run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cdc_views
from cdc_views.store.warehouse import TableSpec
from cdc_views.views.kinds.options import Ordered
from cdc_views.views.kinds.timeline import TimelineRecord
from tests.page_blocks import block
from tests.unit.published import ORDERS, Published

TOTALS = TableSpec(
    "order_totals", "views/order_totals/a", pa.schema([("user_id", pa.int64()), ("orders", pa.int64())]), ("user_id",)
)


def lines_of_the_page(marker: str) -> str:
    return block("docs/readers.md", marker, "python")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    shop = Published(tmp_path / "warehouse")
    shop.write(ORDERS, [(1, "a"), (2, "b")])
    shop.write(TOTALS, [(7, 2)])
    shop.publish()
    monkeypatch.chdir(tmp_path)
    return shop


def test_lines_of_the_client(shop: Published, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(lines_of_the_page("python"), names)
    shown = capsys.readouterr().out
    assert "{'user_id': 7, 'orders': 2}\n" in shown
    assert "epoch 1 at 0/100, " in shown
    assert len(names["orders"].pandas()) == 2


def test_lines_that_keep_a_copy(shop: Published) -> None:
    names: dict[str, Any] = {
        "cdc_views": cdc_views,
        "wh": cdc_views.open(shop.root),
        "token": None,
        "copy": {3: "of an earlier run"},
    }
    lines = lines_of_the_page("changes")
    exec(lines, names)
    assert names["copy"] == {7: {"user_id": 7, "orders": 2}}
    shop.write(TOTALS, [(8, 1), (9, 1)], [(7,)])
    shop.publish()
    shop.write(TOTALS, [(8, 5)])
    shop.publish()
    exec(lines, names)
    assert names["copy"] == {8: {"user_id": 8, "orders": 5}, 9: {"user_id": 9, "orders": 1}}


def test_lines_that_read_a_timeline(shop: Published, capsys: pytest.CaptureFixture[str]) -> None:
    schema = pa.schema([("user_id", pa.int64()), ("post_id", pa.int64())])
    kind = {"kind": "timeline", **TimelineRecord("user_id", (Ordered("post_id", descends=True),), 100).as_json()}
    home = TableSpec("home_timeline", "views/home_timeline/a", schema, ("user_id", "post_id"), kind=kind)
    shop.write(home, [(42, post) for post in range(45)])
    shop.publish()
    exec(lines_of_the_page("timeline"), {"wh": cdc_views.open(shop.root)})
    pages = capsys.readouterr().out.splitlines()
    assert [page.count("post_id") for page in pages] == [20, 5]
    assert "'post_id': 0}" in pages[-1]


def test_lines_that_read_a_cache(shop: Published, capsys: pytest.CaptureFixture[str]) -> None:
    schema = pa.schema([("product_id", pa.int64()), ("document", pa.struct([("sku", pa.string())]))])
    products = TableSpec("product_cache", "views/product_cache/a", schema, ("product_id",), kind={"kind": "cache"})
    shop.write(products, [(7, {"sku": "s7"}), (9, {"sku": "s9"})])
    shop.publish()
    names: dict[str, Any] = {"wh": cdc_views.open(shop.root)}
    exec(lines_of_the_page("cache"), names)
    assert capsys.readouterr().out.startswith("{'sku': 's7'} \"")
    assert [row.state for row in names["rows"]] == ["hit", "miss", "hit"]
    exec(lines_of_the_page("cache followed"), names)
    assert names["found"].state == "hit"

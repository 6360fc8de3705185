"""docs/http.md: its lines run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pyarrow as pa

from cdc_views.store.warehouse import TableSpec
from tests.unit.fix_http import serving
from tests.unit.published import ORDERS, Published

PAGE = Path(__file__).parents[2] / "docs" / "http.md"
TOTALS = TableSpec(
    "order_totals", "views/order_totals/a", pa.schema([("user_id", pa.int64()), ("orders", pa.int64())]), ("user_id",)
)


def test_lines_of_the_page(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a"), (2, "b")])
    shop.write(TOTALS, [(7, 2)])
    shop.publish()
    found = re.search(r"<!-- http:.*?-->\n```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found
    lines = found[1].splitlines()
    with serving(tmp_path) as http:
        shown = [subprocess.check_output(["bash", "-c", line], env={"URL": http.url}, text=True) for line in lines]
    answers = [json.loads(text) for text in shown]
    row = {"user_id": 7, "orders": 2}
    epoch, views, view, rows, one, keys, query, line, change = answers
    assert (epoch["epoch"], len(views["views"]), view["key"]) == (1, 2, ["user_id"])
    assert [rows["rows"], one, keys["rows"], line, change["rows"]] == [[row], row, [row], row, [row]]
    assert (keys["absent"], query["rows"]) == (["8"], [{"n": 2}])

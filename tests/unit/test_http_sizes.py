"""HTTP: an answer beyond `http.result_mb` is refused on every route that gives rows."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pyarrow as pa
import pytest

from cdc_views.serve.values.answer_size import answer_bytes
from cdc_views.serve.values.json_value import json_rows
from tests.unit.fix_http import Client, problem, serving
from tests.unit.published import ORDERS
from tests.unit.search.test_search_reading import Posts, at
from tests.unit.test_reading_cache import PRODUCTS
from tests.unit.test_reading_timeline import NEWEST, timeline_spec

ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
LARGE, HALF = "x" * 1_100_000, "x" * 600_000
ROUTES = [
    "/views/public.orders/rows?limit={0}",
    "/views/public.orders/rows?key={0}",
    "/views/public.orders/rows/{0}",
    "/views/products/cache?key={0}",
    "/views/products/cache/{0}",
    "/views/home/timeline?owner={0}",
    "/views/posts/search?q=cat&filter=id={0}",
]
SEVERAL = [
    "/views/public.orders/rows?key=2&key=3",
    "/views/public.orders/rows?key=2&key=2",
    "/views/products/cache?key=2&key=3",
    "/views/products/cache?key=2&key=2",
    "/views/home/timeline?owner=2",
    "/views/posts/search?q=cat&filter=id>=2",
]

LONG = "n" * 1000
NESTED = {
    "names of fields": pa.array([{LONG: None}] * 100, pa.struct([(LONG, pa.null())])),
    "names in lists": pa.array([[{LONG: 1}] * 10] * 10),
    "names in maps": pa.array([[(1, {LONG: 1})]] * 100, pa.map_(pa.int64(), pa.struct([(LONG, pa.int64())]))),
    "texts of dictionaries in lists": pa.array([[LONG] * 10] * 10, pa.list_(pa.dictionary(pa.int8(), pa.string()))),
    "texts of dictionaries in structs": pa.array(
        [{"d": LONG}] * 100, pa.struct([("d", pa.dictionary(pa.int8(), pa.string()))])
    ),
    "empty elements": pa.array([[None] * 10_000] * 5, pa.list_(pa.null())),
}


@pytest.mark.parametrize("values", NESTED.values(), ids=NESTED.keys())
def test_size_of_nested_values_is_about_that_of_their_json(values: pa.Array) -> None:
    rows = pa.table({"v": values})
    size = len(orjson.dumps(json_rows(rows)))
    assert 0.7 * size < answer_bytes(rows) < 1.3 * size
    half = rows.slice(len(values) // 2)
    assert 0.7 * size < 2 * answer_bytes(half) < 1.5 * size


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A small row 1, rows 2 and 3 that are too large together, and a row 4 that is too large."""
    posts = Posts(tmp_path_factory.mktemp("posts"))
    texts = {1: "x", 2: HALF, 3: HALF, 4: LARGE}
    home = timeline_spec(NEWEST, text=pa.string())
    posts.published.write(ORDERS, list(texts.items()))
    posts.published.write(PRODUCTS, [(number, text, 0.0) for number, text in texts.items()])
    entries = [(1, 1, at(1), "x"), (2, 2, at(2), HALF), (2, 3, at(3), HALF), (4, 4, at(4), LARGE)]
    posts.published.write(home, entries)
    posts.put([(number, None, "cat", text, None) for number, text in texts.items()])
    with serving(posts.published.root, result_mb=1) as client:
        yield client


@pytest.mark.proves(
    wrong="Rows by key, a page of a timeline, or the documents of a search are larger than an answer over HTTP may be.",
    seen="`ResultTooLarge`, status 422",
    do="Ask for fewer rows, or for fewer columns by a query; `http.result_mb` is the limit.",
)
@pytest.mark.parametrize("route", ROUTES)
def test_row_that_is_too_large_is_refused(http: Client, route: str) -> None:
    assert http.get(route.format(1)).status_code == 200
    refused = http.get(route.format(4))
    assert problem(refused) == (422, "ResultTooLarge")
    assert refused.json()["detail"] == "the answer has more than 1 MiB, which is the limit"
    assert refused.json()["hint"]


@pytest.mark.parametrize("path", SEVERAL)
@pytest.mark.parametrize("headers", [{}, ARROW])
def test_rows_that_are_too_large_together_are_refused(http: Client, path: str, headers: dict[str, str]) -> None:
    assert problem(http.get(path, headers)) == (422, "ResultTooLarge")


def test_columns_that_are_left_out_do_not_count(http: Client) -> None:
    assert http.get("/views/public.orders/rows?key=2&key=3&columns=id").json()["rows"] == [{"id": 2}, {"id": 3}]

"""HTTP: searches, pages of timelines, and rows of caches."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import requests

import cdc_views
from cdc_views.errors import QueryTooLong
from cdc_views.metrics import Work, counting
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.kinds.search import SearchLimits, SearchRequest, search
from cdc_views.serve.values import time_limit
from cdc_views.store.reading import StoredTables
from tests.unit.fix_http import Client, problem, serving
from tests.unit.published import Published
from tests.unit.search.test_search_reading import Posts, at
from tests.unit.test_reading_cache import LIMIT_S, PRODUCTS, STOCK, taken
from tests.unit.test_reading_timeline import HOME
from tests.waiting import wait_for

NDJSON = {"Accept": "application/x-ndjson"}
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
KIND_ROUTES = ["/views/{}/search?q=cat", "/views/{}/timeline?owner=1", "/views/{}/cache?key=1", "/views/{}/cache/1"]


@pytest.fixture(scope="module")
def posts(tmp_path_factory: pytest.TempPathFactory) -> Posts:
    """Two epochs with a search index, a timeline and two caches."""
    posts = Posts(tmp_path_factory.mktemp("posts"))
    posts.published.write(HOME, [*((1, n, at(n)) for n in range(5)), (2, 99, at(5))])
    posts.published.write(PRODUCTS, [(1, "one", 0.5), (2, "two", 1.0)])
    posts.published.write(STOCK, [("a/b", 1.0, {"n": 1}), (None, 2.0, None)])
    posts.put([(1, "Cats", "cat and dog", "ada", at(1)), (2, "Dogs", "a cat", "bob", at(2))])
    posts.published.write(HOME, [(1, 9, at(9))])
    posts.published.write(PRODUCTS, [(1, "new", 0.5)])
    posts.put([(3, None, "cat cat cat", None, None)])
    return posts


@pytest.fixture(scope="module")
def http(posts: Posts) -> Iterator[Client]:
    with serving(posts.published.root) as client:
        yield client


def rows(response: requests.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["rows"]
    return found


def arrow(response: requests.Response) -> pa.Table:
    return pa.ipc.open_stream(response.content).read_all()


# Search


def test_search_gives_documents_with_scores_and_snippets(http: Client, posts: Posts) -> None:
    found = http.get("/views/posts/search", q="cat", sort="id").json()
    wanted = cdc_views.open(posts.published.root).search("posts", "cat", sort="id")
    assert (found["epoch"], found["total"], found["cursor"]) == (2, 3, None)
    assert [(row["key"], row["score"]) for row in found["rows"]] == [(hit.key, hit.score) for hit in wanted.hits]
    first = found["rows"][0]
    assert first["document"] == {
        "id": 1, "title": "Cats", "body": "cat and dog", "author": "ada", "created_at": "2026-01-02T03:01:00+00:00"
    }  # fmt: skip
    assert first["snippets"]["body"] == [{"text": "cat", "matches": True}, {"text": " and dog", "matches": False}]
    assert first["explanation"] == []


def test_search_is_filtered_sorted_and_explained(http: Client) -> None:
    found = http.get("/views/posts/search", q="cat", filter=["id>=1", "author=ada"], explain="true")
    [row] = rows(found)
    assert row["key"] == 1
    assert sum(part["score"] for part in row["explanation"]) == pytest.approx(row["score"])
    assert [row["key"] for row in rows(http.get("/views/posts/search", q="cat", sort=["author", "-id"]))] == [1, 2, 3]


def test_search_comes_in_every_format(http: Client) -> None:
    lines = http.get("/views/posts/search", NDJSON, q="cat", limit=2)
    assert len(lines.text.splitlines()) == 2
    assert lines.headers["Total-Hits"] == "3"
    table = arrow(http.get("/views/posts/search", ARROW, q="cat", limit=2, cursor=lines.headers["Next-Cursor"]))
    assert table["score"].type == pa.float64()
    assert table["document"].type.field("created_at").type == pa.timestamp("us", "UTC")
    assert table.num_rows == 1
    nothing = http.get("/views/posts/search", ARROW, q="nothing")
    assert arrow(nothing).schema == table.schema
    assert "Next-Cursor" not in nothing.headers


def test_pages_of_a_search_are_of_the_epoch_of_the_first(http: Client) -> None:
    first = http.get("/views/posts/search", q="cat", limit=1, at=1).json()
    second = http.get("/views/posts/search", q="cat", limit=1, cursor=first["cursor"]).json()
    assert (second["epoch"], second["cursor"]) == (1, None)
    assert {first["rows"][0]["key"], second["rows"][0]["key"]} == {1, 2}


# Timelines


def test_timeline_gives_pages_that_stay_while_entries_come(http: Client) -> None:
    first = http.get("/views/home/timeline", owner=1, limit=2, at=1).json()
    assert [row["post_id"] for row in first["rows"]] == [4, 3]
    second = http.get("/views/home/timeline", owner=1, limit=2, cursor=first["cursor"]).json()
    assert (second["epoch"], [row["post_id"] for row in second["rows"]]) == (2, [2, 1])
    last = http.get("/views/home/timeline", owner=1, limit=2, cursor=second["cursor"]).json()
    assert ([row["post_id"] for row in last["rows"]], last["cursor"]) == ([0], None)
    assert http.get("/views/home/timeline", owner=7).json()["rows"] == []


def test_timeline_comes_in_every_format(http: Client) -> None:
    lines = http.get("/views/home/timeline", NDJSON, owner=1, limit=1)
    assert '"post_id":9' in lines.text
    table = arrow(http.get("/views/home/timeline", ARROW, owner=1, limit=1, cursor=lines.headers["Next-Cursor"]))
    assert (table.schema, table["post_id"].to_pylist()) == (HOME.schema, [4])


# Caches


def test_cache_says_hit_or_miss_for_each_key(http: Client) -> None:
    found = http.get("/views/products/cache", key=[2, 7, 1])
    assert [(row["state"], row["row"] and row["row"]["name"]) for row in rows(found)] == [
        ("hit", "two"), ("miss", None), ("hit", "new"),
    ]  # fmt: skip
    assert [row["state"] for row in rows(http.get("/views/stock/cache", key=["[null,2]", '["a/b",2]']))] == [
        "hit", "miss",
    ]  # fmt: skip
    table = arrow(http.get("/views/products/cache", ARROW, key=[2, 7]))
    assert (table["row"].type, table["state"].to_pylist()) == (pa.struct(list(PRODUCTS.schema)), ["hit", "miss"])
    assert http.get("/views/products/cache", NDJSON, key=7).text == '{"state":"miss","etag":null,"row":null}\n'


def test_cached_row_has_the_etag_of_the_row(http: Client, posts: Posts) -> None:
    one = http.get("/views/products/cache/2", at=1)
    assert one.json() == {"id": 2, "name": "two", "price": 1.0}
    assert one.headers["ETag"] == cdc_views.open(posts.published.root).cache("products").get(2).etag
    again = http.get("/views/products/cache/2", {"If-None-Match": one.headers["ETag"]})
    assert (again.status_code, again.headers["Last-Epoch"]) == (304, "2")
    assert rows(http.get("/views/products/cache", key=2))[0]["etag"] == one.headers["ETag"]
    changed = http.get(
        "/views/products/cache/1", {"If-None-Match": http.get("/views/products/cache/1?at=1").headers["ETag"]}
    )
    assert changed.json()["name"] == "new"
    assert http.get("/views/stock/cache/a%2Fb/1").json()["document"] == {"n": 1}
    assert problem(http.get("/views/products/cache/7")) == (404, "RowNotFound")


def test_hot_rows_are_read_from_no_file(http: Client) -> None:
    service = http.server._service
    http.get("/views/products/cache/2")
    with counting(Work()) as work:
        epoch = PublishedEpoch.latest(service.warehouse)
        assert service.cache(epoch, "products").at(epoch, [2])[0].state == "hit"
    assert work.rows_found == 0
    http.get("/views/nosuch/cache/1")
    assert service._caches.keys() <= {"products", "stock"}


def test_cache_that_was_read_follows_the_epochs_until_the_server_stops(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(PRODUCTS, [(1, "one", 0.5), (2, "two", 1.0)])
    shop.publish()
    with serving(shop.root) as client:
        client.get("/views/products/cache/1")
        cache = client.server._service._caches["products"]
        wait_for(lambda: taken(cache) == 1, LIMIT_S)
        assert client.get("/views/products/cache/1").json()["name"] == "one"
        shop.write(PRODUCTS, [(1, "new", 0.5)])
        shop.publish()
        wait_for(lambda: taken(cache) == 2, LIMIT_S)
        with counting(Work()) as work:
            assert (cache.get(1).row or {})["name"] == "new"
        assert work.rows_read == 0
    wait_for(lambda: not cache._follows, LIMIT_S)


# What they have in common


@pytest.mark.parametrize(
    "path",
    ["/views/posts/search?q=cat", "/views/home/timeline?owner=1", "/views/products/cache?key=1&key=7"],
)
def test_unchanged_answer_is_not_sent_again(http: Client, path: str) -> None:
    first = http.get(path)
    again = http.get(path, {"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert http.get(path, {"If-None-Match": first.headers["ETag"], **NDJSON}).status_code == 200
    assert http.get(path, {"If-None-Match": http.get(path, at=1).headers["ETag"]}).status_code == 200


def test_last_page_of_a_search_is_known_by_its_content_and_another_by_its_epoch(tmp_path: Path) -> None:
    posts = Posts(tmp_path)
    posts.put([(number, "cat", None, "ada", at(number)) for number in (1, 2, 3)])
    with serving(tmp_path) as client:
        first = client.get("/views/posts/search?q=cat&limit=2")
        last = client.get("/views/posts/search?q=cat&limit=3")
        posts.published.write(PRODUCTS, [(1, "one", 0.5)])
        posts.published.publish()
        again = client.get("/views/posts/search?q=cat&limit=3", {"If-None-Match": last.headers["ETag"]})
        assert (again.status_code, again.headers["Last-Epoch"]) == (304, "2")
        again = client.get("/views/posts/search?q=cat&limit=2", {"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.headers["Last-Epoch"]) == (200, "2")


@pytest.mark.parametrize("route", KIND_ROUTES)
def test_view_that_is_unknown_or_of_another_kind_is_refused(http: Client, route: str) -> None:
    assert problem(http.get(route.format("nosuch"))) == (404, "UnknownView")
    other = "home" if "cache" in route else "products"
    assert problem(http.get(route.format(other))) == (400, "WrongKind")


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/views/posts/search", 400, "BadParameter"),
        ("/views/posts/search?q=%22cat", 400, "BadSearch"),
        ("/views/posts/search?q=cat&limit=0", 400, "BadPage"),
        ("/views/posts/search?q=cat&limit=1001", 400, "BadPage"),
        ("/views/posts/search?q=cat&filter=id", 400, "BadSearch"),
        ("/views/posts/search?q=cat&filter=id=x", 400, "BadSearch"),
        ("/views/posts/search?q=cat&sort=nosuch", 400, "BadSearch"),
        ("/views/posts/search?q=cat&cursor=x", 400, "BadPage"),
        ("/views/home/timeline", 400, "BadParameter"),
        ("/views/home/timeline?owner=x", 400, "BadKey"),
        ("/views/home/timeline?owner=1&limit=0", 400, "BadParameter"),
        ("/views/home/timeline?owner=1&limit=1000001", 422, "ResultTooLarge"),
        ("/views/home/timeline?owner=1&cursor=x", 400, "BadPage"),
        ("/views/products/cache", 400, "BadParameter"),
        ("/views/products/cache?key=x", 400, "BadKey"),
        ("/views/products/cache/x", 400, "BadKey"),
        ("/views/stock/cache?key=a", 400, "BadParameter"),
        ("/views/products/cache?" + "key=1&" * 1001, 400, "BadParameter"),
    ],
)
def test_bad_input_is_a_named_error(http: Client, path: str, status: int, error: str) -> None:
    assert problem(http.get(path)) == (status, error)


def test_search_that_reads_too_much_is_refused(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert http.get("/views/posts/search?q=cat").status_code == 200
    monkeypatch.setattr(http.server._service, "search_limits", SearchLimits(most_bytes=10))
    refused = http.get("/views/posts/search?q=cat")
    assert problem(refused) == (422, "ResultTooLarge")
    assert "the search needs more memory than 0 MiB" in refused.json()["detail"]


@pytest.mark.proves(
    wrong="A search or a read of rows over HTTP runs for longer than `http.query_s`.",
    seen="`QueryTooLong`, status 422",
    do="Search for rarer words, or ask for fewer rows; the limit is a setting.",
)
@pytest.mark.parametrize("path", ["/views/posts/search?q=cat", "/views/posts/search?q=c*", "/views/home/rows"])
def test_search_or_read_that_takes_too_long_is_refused(posts: Posts, path: str) -> None:
    with serving(posts.published.root, query_s=1e-9) as hurried:
        refused = hurried.get(path)
        assert problem(refused) == (422, "QueryTooLong")
        assert "has taken more than 1e-09 s, which is the limit" in refused.json()["detail"]
        assert hurried.get("/epoch").status_code == 200


def test_time_of_a_search_is_looked_at_before_each_snippet(posts: Posts, monkeypatch: pytest.MonkeyPatch) -> None:
    now, made = 0.0, []

    def slow_snippet(*_: object) -> None:
        nonlocal now
        now += 2
        made.append(now)

    monkeypatch.setattr(time_limit, "monotonic", lambda: now)
    monkeypatch.setattr(import_module("cdc_views.serve.kinds.search.search"), "snippet", slow_snippet)
    epoch, stored = PublishedEpoch.latest(posts.published.root), StoredTables(posts.published.root)
    request = SearchRequest.of("posts", "cat", sort="-id")
    with pytest.raises(QueryTooLong, match="the search has taken more than 1 s"):
        search(epoch, stored, request, SearchLimits(seconds=1))
    assert made == [2]  # document 3 has one text


def test_cursor_of_another_view_is_refused(http: Client) -> None:
    search = http.get("/views/posts/search", q="cat", limit=1).json()["cursor"]
    timeline = http.get("/views/home/timeline", owner=1, limit=1).json()["cursor"]
    for path, cursor in (
        ("/views/home/timeline?owner=1", search),
        ("/views/home/timeline?owner=2", timeline),
        ("/views/posts/search?q=cat", timeline),
        ("/views/posts/search?q=dog", search),
    ):
        assert problem(http.get(path, cursor=cursor)) == (400, "BadPage")

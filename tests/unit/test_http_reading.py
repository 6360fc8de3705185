"""Reading over HTTP: epochs, views, rows and queries, by a real server and without an engine."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
import requests

from cdc_views.store.warehouse import TableSpec
from tests.unit.fix_http import Client, problem, serving
from tests.unit.published import BAG, ORDERS, TOTALS, Published
from tests.waiting import wait_for

LIMIT_S = 30
NDJSON = {"Accept": "application/x-ndjson"}
ARROW = {"Accept": "application/vnd.apache.arrow.stream"}
PATHS = TableSpec("paths", "views/paths/a", pa.schema([("path", pa.string()), ("n", pa.int64())]), ("path",))
BLOBS = TableSpec("blobs", "views/blobs/a", pa.schema([("id", pa.binary()), ("n", pa.int64())]), ("id",))
SPECIAL = ["a/b", "", "é ?#%&+", '["x"]']


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Published:
    """Two epochs; the newest version of a table belongs to neither."""
    shop = Published(tmp_path_factory.mktemp("shop"))
    shop.write(ORDERS, [(1, "a"), (2, None)])
    shop.write(TOTALS, [("ada", 1, Decimal("1.50")), (None, 1, Decimal("2.00"))])
    shop.write(BAG, [(float("nan"), 7, 1), (1.0, 7, 2)])
    shop.write(BLOBS, [(b"a\xff", 1)])
    shop.write(PATHS, [(text, number) for number, text in enumerate(SPECIAL)])
    shop.publish()
    shop.write(ORDERS, [(3, "c")], [(1,)])
    shop.publish()
    published = dict(shop.tables)
    shop.write(ORDERS, [(9, "not published")])
    shop.tables = published
    return shop


@pytest.fixture(scope="module")
def http(shop: Published) -> Iterator[Client]:
    with serving(shop.root) as client:
        yield client


def arrow(response: requests.Response) -> pa.Table:
    assert response.headers["Content-Type"] == ARROW["Accept"]
    return pa.ipc.open_stream(response.content).read_all()


def test_epoch_is_described(http: Client) -> None:
    found = http.get("/epoch")
    assert {name: found.json()[name] for name in ("epoch", "position", "complete_to", "unequal")} == {
        "epoch": 2, "position": "0/200", "complete_to": "0/210", "unequal": {}
    }  # fmt: skip
    assert found.json()["age_s"] > 0
    assert (found.headers["Last-Epoch"], found.headers["Last-Position"]) == ("2", "0/200")
    assert http.get("/epoch", at=1).json()["epoch"] == 1
    assert http.get("/epoch", at="2026-01-02T03:00:01Z").json()["epoch"] == 1


def test_views_are_listed_with_their_columns_and_rows(http: Client) -> None:
    found = http.get("/views").json()
    assert (found["epoch"], [view["name"] for view in found["views"]]) == (
        2,
        ["bag", "blobs", "paths", "public.orders", "totals"],
    )
    bag, _, _, orders, totals = found["views"]
    assert (bag["key"], bag["rows"], bag["columns"]) == (None, 2, [{"name": "x", "type": "double"}])
    assert (orders["kind"], orders["status"], orders["key"], orders["rows"]) == ("mirror", "live", ["id"], 2)
    assert (totals["kind"], totals["shape"], totals["key"]) == ("view", "sql", ["owner", "day"])
    assert totals["age_s"] > 0
    assert http.get("/views/totals").json()["rows"] == 2


def test_views_that_cannot_be_read_hide_no_others(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    for spec, rows in ((ORDERS, [(1, "a")]), (TOTALS, [("ada", 1, Decimal(1))]), (PATHS, [("a", 1)])):
        shop.write(spec, rows)
    detail = {"changes": {}, "failures": {"paths": "division by zero"}, "building": {"bag": "3 of 9 tables read"}}
    shop.publish(detail=detail, paths="failed")
    shutil.rmtree(tmp_path / TOTALS.path)
    with serving(tmp_path) as http:
        bag, paths, orders, totals = http.get("/views").json()["views"]
        assert [http.get(f"/views/{view['name']}").json()["status"] for view in (bag, totals)] == ["building", "live"]
    assert (bag["status"], bag["problem"]["error"], bag["columns"]) == ("building", "ViewBeingBuilt", [])
    assert (paths["problem"]["error"], paths["rows"], paths["key"]) == ("ViewFailed", 1, ["path"])
    assert (orders["problem"], orders["rows"]) == (None, 1)
    assert (totals["problem"]["error"], totals["rows"]) == ("TableUnavailable", None)


def test_server_that_reads_again_has_an_index(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a"), (3, "c")])
    shop.publish()
    with serving(tmp_path) as http:
        assert [http.get("/views/public.orders/rows/1").status_code for _ in range(2)] == [200, 200]
        for file in (tmp_path / ORDERS.path).glob("*.parquet"):
            file.unlink()
        assert problem(http.get("/views/public.orders/rows/2")) == (404, "RowNotFound")


def test_view_that_is_declared_is_being_built(shop: Published, http: Client) -> None:
    (shop.root / "views/new/y").mkdir(parents=True)  # an engine creates its tables before it takes over
    shop.control.take_over(generation="g", detail={"views": {"new": "hash"}})
    assert problem(http.get("/views/new")) == (503, "ViewBeingBuilt")


def test_rows_come_in_every_format(http: Client) -> None:
    found = http.get("/views/public.orders/rows").json()
    assert (found["epoch"], found["position"], found["is_complete"]) == (2, "0/200", True)
    assert sorted(found["rows"], key=str) == [{"id": 2, "note": None}, {"id": 3, "note": "c"}]
    lines = http.get("/views/public.orders/rows", NDJSON, columns="note").text.splitlines()
    assert sorted(lines) == ['{"note":"c"}', '{"note":null}']
    table = arrow(http.get("/views/totals/rows", ARROW, at=1))
    assert table.schema == TOTALS.schema
    assert sorted(table["amount"].to_pylist()) == [Decimal("1.50"), Decimal("2.00")]
    assert sorted(map(str, (row["x"] for row in http.get("/views/bag/rows").json()["rows"]))) == ["1.0", "nan"]


def test_limit_says_whether_there_is_more(http: Client) -> None:
    for limit, count, is_complete in ((0, 0, False), (1, 1, False), (2, 2, True)):
        found = http.get("/views/public.orders/rows", limit=limit).json()
        assert (len(found["rows"]), found["is_complete"]) == (count, is_complete)
    assert arrow(http.get("/views/public.orders/rows", ARROW, limit=0)).num_rows == 0


@pytest.mark.parametrize("accept", [NDJSON, ARROW])
def test_rows_without_an_object_around_them_say_what_is_missing_in_headers(
    http: Client, accept: dict[str, str]
) -> None:
    path = "/views/public.orders/rows"
    assert [http.get(path, accept, limit=limit).headers["Is-Complete"] for limit in (1, 2)] == ["false", "true"]
    assert http.get(path, accept, key=["3", "9"]).headers["Absent"] == "1"


def test_row_by_key(http: Client) -> None:
    assert http.get("/views/public.orders/rows/3").json() == {"id": 3, "note": "c"}
    assert http.get("/views/totals/rows/ada/1").json() == {"owner": "ada", "day": 1, "amount": "1.50"}
    assert http.get("/views/public.orders/rows/1", at=1).json() == {"id": 1, "note": "a"}


@pytest.mark.parametrize("text", SPECIAL)
def test_row_by_a_key_of_any_characters(http: Client, text: str) -> None:
    path = requests.utils.quote(text, safe="")
    assert http.get(f"/views/paths/rows/{path}").json()["path"] == text
    assert http.get("/views/paths/rows", key=text).json()["rows"][0]["path"] == text


@pytest.mark.proves(
    wrong="A row is asked for by its key over HTTP, and there is none.",
    seen="`RowNotFound`, status 404: the epoch has no such row; it is not that it is not loaded yet",
    do="To read a write of your own, ask with `at_least` ([http.md](http.md#read-your-own-writes)).",
)
def test_row_that_is_not_there_is_not_found(http: Client) -> None:
    for response in (http.get("/views/public.orders/rows/9"), http.get("/views/public.orders/rows", key=9)):
        assert problem(response) == (404, "RowNotFound")
        assert "9" not in response.json()["detail"]


def test_rows_by_several_keys(http: Client) -> None:
    found = http.get("/views/public.orders/rows", key=[3, 9, 2]).json()
    assert ([row["id"] for row in found["rows"]], found["absent"]) == ([3, 2], ["9"])
    found = http.get("/views/totals/rows", key=['["ada",1]', "[null,1]"]).json()
    assert [row["amount"] for row in found["rows"]] == ["1.50", "2.00"]
    assert arrow(http.get("/views/totals/rows", ARROW, key=['["ada",1]', '["x",1]'])).num_rows == 1


def test_number_of_a_key_that_json_may_not_have_exactly_is_refused(http: Client) -> None:
    for number in ("12345678901234567890123", "1.50", "1e2"):
        assert problem(http.get("/views/totals/rows", key=f'["ada",{number}]')) == (400, "BadParameter")


def test_bytes_of_a_key_are_given_as_they_are_shown(http: Client) -> None:
    [row] = http.get("/views/blobs/rows").json()["rows"]
    assert row == {"id": "61ff", "n": 1}
    for path in ("/views/blobs/rows/61ff", "/views/blobs/rows?key=61ff"):
        assert http.get(path).status_code == 200
    assert http.get("/views/blobs/rows/61f").json()["hint"] == "write bytes as hexadecimal digits, as in 0aff"


def test_question_is_checked_before_any_answer_counts_as_known(http: Client) -> None:
    known = {"If-None-Match": "*"}
    for path, status in (("?key=999", 404), ("?key=abc", 400), ("?columns=nosuch", 400), ("", 200)):
        assert http.get(f"/views/public.orders/rows{path}", known).status_code == status, path


def test_far_time_in_a_union_is_answered(http: Client) -> None:
    answer = http.get("/query", sql="SELECT union_value(a := TIMESTAMP 'infinity') AS u")
    assert (answer.status_code, answer.json()["rows"]) == (200, [{"u": "infinity"}])


def test_unchanged_answer_is_not_sent_again(http: Client, shop: Published) -> None:
    for path in ("/views/totals/rows/ada/1", "/views/totals/rows?columns=day", "/views/totals/rows?key=[%22ada%22,1]",
                 "/query?sql=SELECT+*+FROM+totals+ORDER+BY+owner"):  # fmt: skip
        first = http.get(path)
        assert first.headers["Cache-Control"] == "private, no-cache"
        again = http.get(path, {"If-None-Match": f'"x", {first.headers["ETag"]}'})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
        assert http.get(path, {"If-None-Match": '"x"'}).status_code == 200
    tag = http.get("/views/public.orders/rows", at=1).headers["ETag"]
    assert http.get("/views/public.orders/rows", {"If-None-Match": tag}).status_code == 200
    assert http.get("/views/public.orders/rows", {"If-None-Match": tag, **NDJSON}, at=1).status_code == 200


def test_unchanged_answer_to_a_query_is_known_by_its_content(http: Client) -> None:
    sql = "SELECT day FROM totals WHERE owner = 'ada'"
    tag = http.get("/query", sql=sql, at=1).headers["ETag"]
    assert http.get("/query", {"If-None-Match": tag}, sql=sql, at=2).status_code == 304
    assert http.get("/query", {"If-None-Match": tag, **NDJSON}, sql=sql).status_code == 200
    changing = {"sql": "SELECT random() AS n"}
    tag = http.get("/query", **changing).headers["ETag"]
    assert http.get("/query", {"If-None-Match": tag}, **changing).status_code == 200


def test_query_by_get_and_post_in_every_format(http: Client) -> None:
    sql = "SELECT count(*) AS n, sum(day) AS days FROM totals"
    wanted = [{"n": 2, "days": "2"}]
    assert http.get("/query", sql=sql).json() == {"epoch": 2, "position": "0/200", "rows": wanted}
    assert http.post("/query", sql).json()["rows"] == wanted
    assert http.post("/query", json={"sql": sql}).json()["rows"] == wanted
    assert http.post("/query", sql, NDJSON).text == '{"n":2,"days":"2"}\n'
    assert arrow(http.post("/query", sql, ARROW))["n"].to_pylist() == [2]
    assert http.post("/query?at=1", "SELECT max(id) AS id FROM orders").json()["rows"] == [{"id": 2}]
    assert http.post("/query", sql).headers["Cache-Control"] == "no-store"


def test_times_that_python_does_not_know_are_texts(http: Client) -> None:
    sql = """SELECT 'infinity'::timestamp AS a, ['-infinity'::date, NULL, '0044-03-15 (BC)'] AS b,
             {'c': '12000-01-02 03:04:05+00'::timestamptz, 'd': 'x'::blob} AS c,
             map {'e': '-infinity'::timestamp_s} AS e"""
    wanted = {
        "a": "infinity", "b": ["-infinity", None, "-0043-03-15"],
        "c": {"c": "12000-01-02T03:04:05.000000+00:00", "d": "78"}, "e": [["e", "-infinity"]],
    }  # fmt: skip
    assert http.post("/query", sql).json()["rows"] == [wanted]
    assert json.loads(http.post("/query", sql, NDJSON).text) == wanted


def test_large_answer_comes_whole(http: Client) -> None:
    sql = "SELECT range AS n, repeat('x', 50) AS text FROM range(30000)"
    assert [row["n"] for row in http.post("/query", sql).json()["rows"]] == list(range(30000))
    assert len(http.post("/query", sql, NDJSON).text.splitlines()) == 30000
    assert arrow(http.post("/query", sql, ARROW))["n"].to_pylist() == list(range(30000))
    wait_for(lambda: http.server._service.unsent.bytes == 0, LIMIT_S, 0.01)  # the client may be faster


def test_accept_chooses_by_weight(http: Client) -> None:
    for accept, kind in (
        ("*/*", "application/json"),
        ("text/html, application/*;q=0.5", "application/json"),
        ("application/json;q=0.1, application/x-ndjson", "application/x-ndjson"),
        ("application/x-ndjson, application/json", "application/x-ndjson"),
        ("application/json;q=0, */*", "application/x-ndjson"),
        ("*/*, application/x-ndjson;q=0, application/json;q=nan", "application/vnd.apache.arrow.stream"),
    ):
        found = http.post("/query", "SELECT 1", {"Accept": accept})
        assert found.headers["Content-Type"] == kind
        assert found.headers["Vary"] == "Accept"


def test_read_waits_for_a_position_without_holding_a_thread(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a")])
    shop.publish()
    with serving(tmp_path, workers=1) as http:
        found: list[requests.Response] = []
        url = f"{http.url}/views/public.orders/rows/2?at_least=0/200"
        waiting = [threading.Thread(target=lambda: found.append(requests.get(url, timeout=LIMIT_S))) for _ in range(3)]
        for each in waiting:
            each.start()
        wait_for(lambda: http.server._service.waiting.taken == 3, LIMIT_S)
        assert http.get("/views/public.orders/rows/1").status_code == 200
        shop.write(ORDERS, [(2, "b")])
        shop.publish()
        for each in waiting:
            each.join()
        assert [each.json() for each in found] == [{"id": 2, "note": "b"}] * 3


def test_server_follows_epochs_and_begins_before_the_first(tmp_path: Path) -> None:
    with serving(tmp_path) as http:
        assert problem(http.get("/epoch")) == (503, "NothingPublished")
        shop = Published(tmp_path)
        shop.write(ORDERS, [(1, "a")])
        for epoch in range(1, 4):
            shop.publish()
            assert http.get("/epoch", wait=30).json()["epoch"] == epoch

"""HTTP: who may read, what a request may take, and what is wrong with it."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests

from cdc_views.config import HttpSettings
from cdc_views.errors import BadConfig, CdcViewsError, PortInUse
from cdc_views.serve.http import server
from cdc_views.serve.http.problems import STATUS, status_of
from cdc_views.serve.http.routes import query
from cdc_views.serve.http.server import HttpServer
from cdc_views.serve.page import page_files
from tests.fault_page import visible_errors
from tests.unit.fix_http import TOKEN, Client, problem, serving
from tests.unit.published import ORDERS, Published
from tests.unit.test_reading_sql import SECRET, WAYS_OUT
from tests.waiting import wait_for

LIMIT_S = 30
UNFINISHED = [
    "",
    "GET /epoch HTTP/1.1\r\nHost:",
    "POST /query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nSELECT",
]
SLOW = "SELECT sum(a.range) FROM range(1000000000) a, range(1000) b"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Published:
    shop = Published(tmp_path_factory.mktemp("shop"))
    shop.write(ORDERS, [(1, "a"), (2, None)])
    shop.publish()
    return shop


@pytest.fixture(scope="module")
def http(shop: Published) -> Iterator[Client]:
    with serving(shop.root, result_rows=1000, result_mb=1, unsent_mb=4) as client:
        yield client


# Who may read


@pytest.mark.proves(
    wrong="`cdc-views serve` listens where other machines can reach it, and there is no token.",
    seen="`BadConfig`, exit status 2; it does not start",
    do="Set `http.tokens` to a reference, or listen at 127.0.0.1.",
)
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_server_that_others_can_reach_needs_a_token(shop: Published, host: str) -> None:
    with pytest.raises(BadConfig, match=r"http\.tokens has no token") as raised:
        HttpServer(shop.root, HttpSettings(host=host, port=0))
    assert raised.value.exit_status == 2


@pytest.mark.proves(
    wrong="A request over HTTP has no token, or a wrong one.",
    seen="`Unauthorized`, status 401",
    do="Send `Authorization: Bearer TOKEN` with one of `http.tokens`.",
)
def test_request_without_the_right_token_is_refused(shop: Published) -> None:
    other = "another token of 16 characters"
    with serving(shop.root, tokens=[TOKEN, other]) as http:
        for given in (None, "", TOKEN, "Basic x", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer x{TOKEN}"):
            for path in ("/epoch", "/query?sql=x", "/metrics", "/docs", "/openapi.json", "/nosuch"):
                response = http.get(path, {} if given is None else {"Authorization": given})
                assert problem(response) == (401, "Unauthorized")
                assert response.headers["WWW-Authenticate"] == "Bearer"
        for token in (TOKEN, other):
            assert http.get("/epoch", {"Authorization": f"bearer {token}"}).status_code == 200


def test_page_needs_no_token_and_leads_to_no_data(shop: Published) -> None:
    with serving(shop.root, tokens=TOKEN) as http:
        first = http.get("/")
        assert (first.status_code, first.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert http.get("/", {"If-None-Match": first.headers["ETag"]}).status_code == 304
        for path in ("/page", "//epoch", "/epoch/", "/page/../epoch", "/page/%2e%2e/epoch", "/pages/main.js"):
            asked = requests.Request("GET", http.url + path).prepare()
            asked.url = http.url + path  # as it is written
            assert http.session.send(asked, timeout=LIMIT_S).status_code in (401, 404), path
        assert problem(http.get("/page/nosuch.js")) == (404, "NotFound")
        assert problem(http.get("/page/__init__.py")) == (404, "NotFound")
        assert problem(http.post("/")) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("path", ["/page", "/epoch/", "/views/public.orders/"])
def test_no_path_leads_to_another_host(http: Client, path: str) -> None:
    found = http.get(path, {"Host": "localhost:1"})
    assert (found.history, problem(found)) == ([], (404, "NotFound"))


def test_page_is_for_this_host_only_without_tokens(http: Client) -> None:
    assert problem(http.get("/", {"Host": "evil.example"})) == (421, "ForeignHost")
    assert problem(http.get("/page/main.js", {"Sec-Fetch-Site": "cross-site"})) == (421, "ForeignHost")


def test_page_loads_its_own_files_and_nothing_else(http: Client) -> None:
    for path, content in page_files().items():
        found = http.get(f"/page/{path}")
        assert (found.status_code, found.content) == (200, content)
        policy = found.headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy)
        assert "require-trusted-types-for 'script'" in policy
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|innerHTML|insertAdjacentHTML|document\.write|eval\(|style=", text), path
        assert [line for line in text.splitlines() if len(line) > 120] == [], path


def test_token_that_is_short_or_empty_is_refused() -> None:
    for token in ("", "short"):
        with pytest.raises(ValueError, match="less than 16 characters"):
            HttpSettings(tokens=token)  # type: ignore[arg-type]
    assert TOKEN not in repr(HttpSettings(tokens=TOKEN))  # type: ignore[arg-type]


@pytest.mark.proves(
    wrong="A server without tokens gets a request for another host name, as from a page of another site.",
    seen="`ForeignHost`, status 421",
    do="Use `http://127.0.0.1:PORT` or `http://localhost:PORT`, or set `http.tokens`.",
)  # fmt: skip
def test_request_for_another_host_is_refused_without_tokens(http: Client) -> None:
    assert problem(http.get("/epoch", {"Host": "evil.example"})) == (421, "ForeignHost")
    for host in ("localhost", "localhost:80", "127.0.0.1", "[::1]:80"):
        assert http.get("/epoch", {"Host": host}).status_code == 200
    assert problem(http.get("/epoch", {"Host": "[x"})) == (421, "ForeignHost")
    # What a browser says of an image of our address in a page of another site.
    assert problem(http.get("/epoch", {"Sec-Fetch-Site": "cross-site"})) == (421, "ForeignHost")
    assert http.get("/epoch", {"Sec-Fetch-Site": "same-origin"}).status_code == 200


def test_other_origins_get_no_permission(http: Client) -> None:
    response = http.get("/epoch", {"Origin": "http://evil.example"})
    assert [name for name in response.headers if name.lower().startswith("access-control")] == []
    asked = requests.options(f"{http.url}/epoch", headers={"Origin": "http://evil.example"}, timeout=LIMIT_S)
    assert asked.status_code == 405


def test_port_in_use_is_named(shop: Published) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortInUse, match="cannot listen"):
        HttpServer(shop.root, HttpSettings(port=taken.getsockname()[1]))


# Bad input


@pytest.mark.proves(
    wrong="A parameter or the body of an HTTP request cannot be used.",
    seen="`BadParameter`, status 400; `NotAcceptable`, status 406, if it accepts none of the formats",
    do="`GET /docs` has the parameters of each route.",
)
@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/views/nosuch", 404, "UnknownView"),
        ("/views/nosuch/rows", 404, "UnknownView"),
        ("/views/nosuch/rows/1", 404, "UnknownView"),
        (f"/views/{'x' * 300}", 404, "UnknownView"),
        ("/views/%2E%2E", 404, "UnknownView"),
        ("/views/public.orders/rows/abc", 400, "BadKey"),
        ("/views/public.orders/rows/1/2", 400, "BadKey"),
        ("/views/public.orders/rows?key=abc", 400, "BadKey"),
        ("/views/public.orders/rows/%FF", 400, "BadParameter"),
        ("/views/public.orders/rows?columns=nosuch", 400, "BadQuery"),
        ("/views/public.orders/rows?limit=x", 400, "BadParameter"),
        ("/views/public.orders/rows?limit=-1", 400, "BadParameter"),
        ("/views/public.orders/rows?limit=1001", 422, "ResultTooLarge"),
        ("/epoch?at=x", 400, "BadMoment"),
        (f"/epoch?at={'9' * 5000}", 400, "BadMoment"),
        ("/epoch?at_least=FFFFFFFFF/0&wait=0", 400, "BadLsn"),
        ("/epoch?at_least=-1/0&wait=0", 400, "BadLsn"),
        ("/epoch?at=1&max_age=5", 400, "BadMoment"),
        ("/epoch?at_least=x", 400, "BadLsn"),
        ("/epoch?wait=-1", 400, "BadParameter"),
        ("/epoch?wait=1000", 400, "BadMoment"),
        ("/epoch?at=7", 503, "NotPublishedYet"),
        ("/epoch?at_least=0/FFFF&wait=0", 503, "NotPublishedYet"),
        ("/epoch?max_age=1", 503, "EpochTooOld"),
        ("/query", 400, "BadParameter"),
        ("/query?sql=SELEC+1", 400, "BadQuery"),
        ("/query?sql=SELECT+*+FROM+nosuch", 400, "BadQuery"),
        (f"/query?sql=SELECT+{'[' * 70}{']' * 70}", 400, "BadQuery"),
        (f"/query?sql=SELECT+1{'%2B1' * 340}", 400, "BadQuery"),
        ("/nosuch", 404, "NotFound"),
        ("/views/public.orders/nosuch", 404, "NotFound"),
    ],
)
def test_bad_input_is_a_named_error(http: Client, path: str, status: int, error: str) -> None:
    assert problem(http.get(path)) == (status, error)


def test_bad_body_is_a_named_error(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    json_type = {"Content-Type": "application/json"}
    for body, headers in ((b"\xff", {}), (b"{", json_type), (b"[]", json_type), (b'{"sql": 1}', json_type)):
        assert problem(http.post("/query", body, headers)) == (400, "BadParameter")
    monkeypatch.setattr(query, "_MOST_BYTES", 10)
    assert problem(http.post("/query", "SELECT 12345")) == (400, "BadParameter")
    assert problem(http.post("/query", "SELECT 1", {"Accept": "text/html"})) == (406, "NotAcceptable")
    assert problem(http.post("/epoch")) == (405, "MethodNotAllowed")


def test_error_says_what_to_do_and_how_far_behind(http: Client) -> None:
    response = http.get("/epoch", at_least="0/FFFF", wait=0)
    found = response.json()
    assert (found["behind_bytes"], response.headers["Retry-After"]) == (0xFFFF - 0x110, "1")
    assert found["hint"]


def test_query_over_http_cannot_leave_the_published_tables(
    http: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", SECRET)
    (tmp_path / "file.csv").write_text(f"a\n{SECRET}\n")
    for sql in WAYS_OUT[::6]:  # test_reading_sql.py tries all: it is the same code
        response = http.post("/query", sql.format(file=tmp_path / "file.csv", folder=tmp_path))
        assert problem(response) == (400, "BadQuery"), sql
        assert SECRET not in response.text
    assert [file.name for file in tmp_path.iterdir()] == ["file.csv"]


def test_every_error_has_a_status() -> None:
    for error in visible_errors().values():
        assert 400 <= status_of(error.__new__(error)) < 600
    assert STATUS[CdcViewsError] == 500


# Limits


def test_query_over_its_limits_is_refused(http: Client, shop: Published) -> None:
    with serving(shop.root, query_s=0.2) as hurried:
        assert problem(hurried.post("/query", SLOW)) == (422, "QueryTooLong")
    assert problem(http.post("/query", "SELECT * FROM range(1001)")) == (422, "ResultTooLarge")
    wide = "SELECT repeat('x', 3000) FROM range(1000)"
    assert problem(http.post("/query", wide)) == (422, "ResultTooLarge")


@pytest.mark.proves(
    wrong="The HTTP server has more requests, requests that wait, followers or unread answers than its settings allow.",
    seen="`ServerBusy`, status 503 with `Retry-After`; requests that it has go on",
    do="Try again later. `http.requests`, `http.waiting`, `http.followers` and `http.unsent_mb` are the limits.",
)
def test_too_many_requests_at_once_are_refused(shop: Published) -> None:
    with serving(shop.root, requests=2, query_s=0.5) as http:
        taken = http.server._service.requests
        running = [http.get_in_thread(f"/query?sql={SLOW}") for _ in range(2)]
        wait_for(lambda: taken.taken == 2, LIMIT_S, 0.01)
        response = http.get("/epoch")
        assert problem(response) == (503, "ServerBusy")
        assert response.headers["Retry-After"] == "1"
        assert [each().status_code for each in running] == [422, 422]
        assert http.get("/epoch").status_code == 200


def test_requests_that_wait_for_a_position_leave_room_for_others(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.publish()
    with serving(shop.root, requests=1) as http:
        service = http.server._service
        asked = http.waiting("/epoch?at_least=0/200&wait=20", 5)
        assert service.requests.taken == 0
        assert http.get("/epoch").json()["epoch"] == 1
        shop.publish()
        assert [each().json()["epoch"] for each in asked] == [2] * 5  # one after the other, and none is refused
        wait_for(lambda: (service.waiting.taken, service.requests.taken) == (0, 0), LIMIT_S, 0.01)


def test_requests_that_wait_have_a_limit_of_their_own(tmp_path: Path) -> None:
    shop = Published(tmp_path)
    shop.publish()
    with serving(shop.root, waiting=2) as http:
        asked = http.waiting("/epoch?at_least=0/200&wait=20", 2)
        refused = http.get("/epoch?at_least=0/200&wait=20")
        assert problem(refused) == (503, "ServerBusy")
        assert refused.json()["detail"] == "the server has 2 requests that wait, which is the limit"
        assert http.get("/epoch?at_least=0/100&wait=20").status_code == 200  # it need not wait
        shop.publish()
        assert [each().json()["epoch"] for each in asked] == [2] * 2


def test_request_that_has_waited_long_enough_is_refused(http: Client) -> None:
    assert problem(http.get("/epoch?at_least=0/FFFF&wait=0.1")) == (503, "NotPublishedYet")


@pytest.mark.parametrize("moment", ["wait=20", "at_least=0/100&wait=20"])
def test_read_before_the_first_epoch_waits_for_it(tmp_path: Path, moment: str) -> None:
    shop = Published(tmp_path)
    with serving(shop.root) as http:
        assert problem(http.get("/epoch")) == (503, "NothingPublished")
        assert problem(http.get(f"/epoch?{moment.replace('20', '0.1')}")) == (503, "NothingPublished")
        [asked] = http.waiting(f"/epoch?{moment}", 1)
        shop.publish()
        assert asked().json()["epoch"] == 1


def silent(http: Client, request: str) -> socket.socket:
    """A client that sends this, and reads nothing."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = http.url.removeprefix("http://").split(":")
    found.connect((host, int(port)))
    found.sendall(request.encode())
    return found


def test_client_that_does_not_read_is_disconnected(shop: Published) -> None:
    sql = "SELECT+repeat('x',1000)+FROM+range(20000)"
    with serving(shop.root, stalled_s=1, unsent_mb=20, workers=1) as http:
        service = http.server._service
        with silent(http, f"GET /query?sql={sql} HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            wait_for(lambda: service.unsent.bytes > 0, LIMIT_S, 0.005)
            assert http.get("/views/public.orders/rows/1").status_code == 200  # its thread is free
            more = "SELECT repeat('x', 1000) FROM range(2000)"
            assert problem(http.get("/query", sql=more)) == (503, "ServerBusy")
            wait_for(lambda: service.unsent.bytes == 0 and service.requests.taken == 0, LIMIT_S, 0.01)


@pytest.mark.parametrize("request_text", UNFINISHED)
def test_client_that_does_not_finish_its_request_is_disconnected(shop: Published, request_text: str) -> None:
    with serving(shop.root, stalled_s=0.1) as http:
        with silent(http, request_text) as client:
            client.settimeout(LIMIT_S)
            with suppress(ConnectionResetError):
                assert client.recv(1) == b""
        wait_for(lambda: http.server._service.requests.taken == 0, LIMIT_S, 0.01)


def test_connections_without_requests_have_a_limit(shop: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_IDLE_CONNECTIONS", 0)
    with serving(shop.root, requests=1, waiting=0, followers=1) as http:
        idle = [silent(http, "") for _ in range(2)]
        wait_for(lambda: len(http.server._server.server_state.connections) == 2, LIMIT_S, 0.01)
        with pytest.raises(requests.ConnectionError):
            http.get("/epoch")
        for each in idle:
            each.close()
        wait_for(lambda: not http.server._server.server_state.connections, LIMIT_S, 0.01)
        assert http.get("/epoch").status_code == 200


def test_answers_on_one_connection_do_not_wait_for_acknowledgements(http: Client) -> None:
    """TCP would hold the body of each answer but the first back, until the client acknowledges the headers: 40 ms."""

    def took_s() -> float:
        began = time.perf_counter()
        assert http.get("/epoch").status_code == 200
        return time.perf_counter() - began

    assert min([took_s() for _ in range(20)][1:]) < 0.03


# What is shown


def test_unexpected_error_shows_no_value(
    http: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> Any:
        raise ValueError(f"cannot convert {SECRET}")

    monkeypatch.setattr(query, "Encoded", fail)
    with caplog.at_level(logging.INFO):
        response = http.post("/query", f"SELECT '{SECRET}'")
        wait_for(lambda: "unexpected error: ValueError in serve/http/routes/query.py" in caplog.text, LIMIT_S, 0.01)
    assert problem(response) == (500, "Unexpected")
    assert SECRET not in response.text + caplog.text


def test_log_has_neither_keys_nor_tokens_nor_queries(shop: Published, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), serving(shop.root, tokens=TOKEN) as http:
        given = {"Authorization": f"Bearer {TOKEN}"}
        logging.getLogger("uvicorn.access").propagate = True  # as if somebody had configured it
        http.get(f"/views/public.orders/rows/{SECRET}", given)
        http.post("/query", f"SELECT '{SECRET}", given)
        http.get("/epoch", {"Authorization": f"Bearer {SECRET}"})
    text = "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith("urllib3"))
    assert SECRET not in text
    assert TOKEN not in text


def test_request_that_the_stop_of_the_server_does_not_wait_for_is_answered(
    shop: Published, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_STOP_S", 1)
    with serving(shop.root, query_s=3) as http:
        running = http.get_in_thread(f"/query?sql={SLOW}")
        wait_for(lambda: http.server._service.requests.taken == 1, LIMIT_S, 0.01)
    assert problem(running()) == (503, "ServerBusy")
    assert [record for record in caplog.records if record.exc_info] == []


def test_metrics_count_requests_by_route(shop: Published) -> None:
    with serving(shop.root) as http:
        http.get("/views/public.orders/rows/1")
        http.get("/nosuch")
        text = http.get("/metrics").text
    route = 'method="GET",route="/views/{name}/rows/{key:path}",status="200"'
    assert f"cdc_views_http_requests_total{{{route}}} 1.0" in text
    assert "cdc_views_http_active_requests 1.0" in text
    page = (Path(__file__).parents[2] / "docs/http.md").read_text()
    named = set(re.findall(r"^# TYPE (cdc_views_\w+)", text, re.MULTILINE))
    assert set(re.findall(r"^\| `(cdc_views_\w+)` \|", page, re.MULTILINE)) == {
        name for name in named if not name.endswith("_created")
    }


def test_interface_is_described_without_other_hosts(http: Client) -> None:
    document = http.get("/openapi.json").json()
    page = http.get("/docs")
    assert [path for path in document["paths"] if f"{path}</h2>" not in page.text] == []
    assert "http://" not in page.text
    assert "<script" not in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert document["components"]["securitySchemes"]

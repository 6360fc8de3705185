"""Changes over HTTP: as server-sent events, and as NDJSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import requests

from cdc_views.config import UpkeepSettings
from cdc_views.serve.changes import lines as change_lines
from cdc_views.serve.http.routes import changes
from cdc_views.store.upkeep.table_upkeep import TableUpkeep
from tests.unit.fix_http import Client, problem, serving
from tests.unit.published import ORDERS, Published
from tests.waiting import wait_for

EVENTS = {"Accept": "text/event-stream"}
NDJSON = {"Accept": "application/x-ndjson"}
PATH = "/views/public.orders/changes"
LIMIT_S = 30


@pytest.fixture
def shop(tmp_path: Path) -> Published:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a"), (2, "b")])
    shop.publish()
    return shop


@pytest.fixture
def http(shop: Published) -> Iterator[Client]:
    with serving(shop.root) as client:
        yield client


def events(response: requests.Response) -> Iterator[dict[str, Any]]:
    """The events of a response, as they come: their fields, with `data` parsed."""
    assert response.headers["Content-Type"].startswith("text/event-stream")
    fields: dict[str, Any] = {}
    for line in response.iter_lines(1):
        name, _, value = line.decode().partition(": ")
        if line == b"" and fields:
            yield fields | {"data": json.loads(fields["data"])}
            fields = {}
        elif name and name != ":":
            fields[name] = value


def test_events_begin_with_all_rows_and_go_on(http: Client, shop: Published) -> None:
    with http.stream(PATH, EVENTS) as response:
        found = events(response)
        first = next(found)
        assert (first["event"], first["data"]["snapshot"], first["data"]["reason"]) == ("snapshot", 1, None)
        assert sorted(row["id"] for row in first["data"]["rows"]) == [1, 2]
        assert first["id"] == first["data"]["token"]
        shop.write(ORDERS, [(2, "c"), (3, None)], [(1,)])
        shop.publish()
        second = next(found)
        assert (second["event"], second["data"]["epoch"], second["data"]["position"]) == ("changes", 2, "0/200")
        assert second["data"]["inserted"] == [{"id": 3, "note": None}]
        assert second["data"]["updated"] == [{"old": {"id": 2, "note": "b"}, "new": {"id": 2, "note": "c"}}]
        assert second["data"]["deleted"] == [{"id": 1, "note": "a"}]
    wait_for(lambda: http.server._service.followers.taken == 0, LIMIT_S)


def test_events_resume_after_the_last_id_each_change_once(http: Client, shop: Published) -> None:
    with http.stream(PATH, EVENTS) as response:
        last = next(events(response))["id"]
    seen = []
    for number in range(3, 9):
        shop.write(ORDERS, [(number, None)])
        shop.publish()
        if number % 2 == 0:  # two epochs while nobody reads
            # A browser repeats the address that it was given, which said where to begin.
            with http.stream(f"{PATH}?since=now", {**EVENTS, "Last-Event-ID": last}) as response:
                found = events(response)
                for _ in range(2):
                    event = next(found)
                    last = event["id"]
                    seen += [row["id"] for row in event["data"]["inserted"]]
    assert seen == [3, 4, 5, 6, 7, 8]


def test_events_whose_last_id_is_no_longer_retained_begin_with_all_rows(http: Client, shop: Published) -> None:
    with http.stream(PATH, EVENTS) as response:
        last = next(events(response))["id"]
    for number in (3, 4):
        shop.write(ORDERS, [(number, None)], [(number - 2,)])
        shop.publish()
    upkeep = TableUpkeep(shop.root, ORDERS, UpkeepSettings(keep_hours=0))
    assert upkeep.catch_up(3)
    upkeep.checkpoint()
    upkeep.sweep(3)
    with http.stream(f"{PATH}?since=now", {**EVENTS, "Last-Event-ID": last}) as response:
        found = events(response)
        parts = [next(found)["data"], next(found)["data"]]  # one for each file
    assert sorted(row["id"] for part in parts for row in part["rows"]) == [3, 4]
    assert "epoch 1 to epoch 2 are no longer retained" in parts[0]["reason"]


def test_only_the_last_part_of_a_snapshot_has_an_id(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change_lines, "_LINE_ROWS", 1)
    with http.stream(PATH, EVENTS) as response:
        found = events(response)
        parts = [next(found), next(found)]
    assert [part["data"]["snapshot"] for part in parts] == [1, 2]
    assert ["id" in part for part in parts] == [False, True]


def test_changes_of_an_epoch_come_in_parts_whose_last_has_an_id(
    http: Client, shop: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_lines, "_LINE_ROWS", 2)
    with http.stream(PATH, EVENTS) as response:
        found = events(response)
        next(found)
        shop.write(ORDERS, [(2, "c"), (3, None), (4, None), (5, None)], [(1,)])
        shop.publish()
        parts = [next(found) for _ in range(3)]
    assert ["id" in part for part in parts] == [False, False, True]
    counts = [[len(part["data"][kind]) for kind in ("deleted", "updated", "inserted")] for part in parts]
    assert counts == [[1, 1, 0], [0, 0, 2], [0, 0, 1]]


def test_follower_gets_a_new_token_when_nothing_changes(
    http: Client, shop: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_SILENCE_S", 0.01)
    monkeypatch.setattr(changes, "PROGRESS_S", 0.02)
    with http.stream(f"{PATH}?since=now", EVENTS) as response:
        found = events(response)
        assert next(found)["data"]["epoch"] == 1
        shop.publish()
        event = next(event for event in found if event["data"]["epoch"] == 2)
        assert (event["event"], sorted(event["data"])) == ("progress", ["epoch", "position", "token"])
    assert http.get(PATH, {**NDJSON, "Last-Event-ID": event["id"]}).json()["epoch"] == 2


def test_follower_gets_new_tokens_while_epochs_change_other_tables(
    http: Client, shop: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "PROGRESS_S", 0.2)
    has_token = Event()

    def publish_often() -> None:
        while not has_token.wait(0.02):
            shop.publish()

    with http.stream(f"{PATH}?since=now", EVENTS) as response:
        found = events(response)
        first = next(found)["data"]
        thread = Thread(target=publish_often)
        thread.start()
        try:
            assert next(found)["data"]["epoch"] > first["epoch"]
        finally:
            has_token.set()
            thread.join()


def test_ndjson_ends_with_the_last_epoch(http: Client, shop: Published) -> None:
    first = http.get(PATH, NDJSON).json()
    assert sorted(row["id"] for row in first["rows"]) == [1, 2]
    shop.write(ORDERS, [(3, "c")])
    shop.publish()
    shop.publish()
    lines = [json.loads(line) for line in http.get(PATH, NDJSON, since=first["token"]).text.splitlines()]
    assert [(line["epoch"], line["inserted"]) for line in lines] == [(2, [{"id": 3, "note": "c"}]), (3, [])]


def test_error_of_a_view_comes_after_the_changes_before_it(http: Client, shop: Published) -> None:
    token = http.get(PATH, NDJSON).json()["token"]
    shop.write(ORDERS, [(3, "c")])
    shop.publish()
    shop.publish(**{"public.orders": "failed"})
    change, error = http.get(PATH, NDJSON, since=token).text.splitlines()
    assert json.loads(change)["inserted"] == [{"id": 3, "note": "c"}]
    assert json.loads(error)["error"]["error"] == "ViewFailed"
    with http.stream(f"{PATH}?since={token}", EVENTS) as response:
        change, error = events(response)  # type: ignore[assignment]
    assert (change["event"], error["event"]) == ("changes", "error")  # type: ignore[index]
    assert problem(http.get(PATH, EVENTS)) == (503, "ViewFailed")


def test_changes_of_what_there_is_not_are_an_error(http: Client) -> None:
    assert problem(http.get("/views/nosuch/changes", EVENTS)) == (404, "UnknownView")
    assert problem(http.get(PATH, EVENTS, since="x")) == (400, "BadToken")
    assert problem(http.get(PATH, {"Accept": "application/json"})) == (406, "NotAcceptable")


def test_follower_that_does_not_read_a_large_change_holds_no_other(
    shop: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_LARGE_BYTES", 0)
    size = 20_000_000  # more than the sockets hold
    with serving(shop.root) as http:
        unsent = http.server._service.unsent
        with http.stream(PATH, EVENTS) as slow, http.stream(PATH, EVENTS) as quick:
            parts = [response.iter_content(1 << 16) for response in (slow, quick)]
            assert all(map(next, parts))
            shop.write(ORDERS, [(number, "x" * (size // 100)) for number in range(101)])
            shop.publish()
            read = 0
            while read < size:
                read += len(next(parts[1]))
            wait_for(lambda: size < unsent.bytes < 2 * size, LIMIT_S)  # that of the other follower
        wait_for(lambda: unsent.bytes == 0, LIMIT_S)


def test_large_changes_that_are_over_the_limit_of_unread_answers_are_an_error(
    shop: Published, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_LARGE_BYTES", 0)
    with serving(shop.root, unsent_mb=1) as http, http.stream(PATH, EVENTS) as response:
        found = events(response)
        next(found)
        http.server._service.unsent.take(1 << 20)
        shop.write(ORDERS, [(3, "c")])
        shop.publish()
        event = next(found)
        assert (event["event"], event["data"]["error"]) == ("error", "ServerBusy")
        assert list(found) == []


def test_followers_have_a_limit_of_their_own(shop: Published) -> None:
    with serving(shop.root, followers=2, requests=1) as http:
        with http.stream(PATH, EVENTS) as one, http.stream(PATH, EVENTS) as other:
            following = [events(one), events(other)]
            assert [next(found)["event"] for found in following] == ["snapshot", "snapshot"]
            assert problem(http.get(PATH, EVENTS)) == (503, "ServerBusy")
            assert http.get("/epoch").status_code == 200
        wait_for(lambda: http.server._service.followers.taken == 0, LIMIT_S)


def test_server_that_stops_ends_its_followers(shop: Published) -> None:
    with serving(shop.root) as http:
        response = http.stream(PATH, EVENTS)
        found = events(response)
        assert next(found)["event"] == "snapshot"
    with response:
        assert list(found) == []

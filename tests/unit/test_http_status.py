"""HTTP: status, epochs, history, and how views are kept."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import routing
from pydantic import BaseModel, model_serializer
from starlette.responses import JSONResponse

from cdc_views.config import Settings
from cdc_views.engine.views.kept import kept_view
from cdc_views.errors import NotRunning
from cdc_views.plan.explain import explain
from cdc_views.serve.http.routes import status as status_routes
from cdc_views.serve.watch import project_watch
from cdc_views.serve.watch.stages import stages_of
from cdc_views.store.control import TakeoverDetail
from tests.unit.fix_http import Client, problem, serving
from tests.unit.incremental.memory import Memory, Table
from tests.unit.published import ORDERS, TOTALS, Published
from tests.unit.test_serve_health import IDLE, INTENT, project
from tests.unit.watched import BEFORE, EPOCH, MB, Watched, backlog
from tests.waiting import wait_for

LIMIT_S = 30
WORK = {"keys_looked_up": 2, "rows_found": 7, "rows_recomputed": 3, "rows_written": 4, "milliseconds": 25}


@pytest.fixture
def shop(tmp_path: Path) -> Published:
    shop = Published(tmp_path)
    shop.write(ORDERS, [(1, "a")])
    shop.write(TOTALS, [("ada", 1, 1)])
    for diff in ("driver", "spark"):
        ways = {"view": {"totals": "keys"}, "diff": {"totals": diff}}
        shop.publish(detail={"changes": {"public.orders": 5}, "view_work": {"totals": WORK}, "ways": ways})
    shop.publish(detail={})
    return shop


@pytest.fixture
def http(shop: Published) -> Iterator[Client]:
    with serving(shop.root) as client:
        yield client


def test_status_has_what_the_command_shows(http: Client) -> None:
    found = http.get("/status").json()
    assert (found["epoch"], found["position"], found["activity"]) == (3, "0/300", "not running")
    assert found["trouble"].startswith('run "cdc-views run": no engine is running')
    assert [stage["name"] for stage in found["stages"]] == ["postgres", "connect", "kafka", "engine", "readers"]
    assert [stage["state"] for stage in found["stages"]] == ["unknown", "unknown", "unknown", "bad", "good"]
    totals = found["tables"][1]
    assert (totals["table"], totals["status"], totals["rows"], totals["last_ms"]) == ("totals", "live", 1, 25)


def test_status_looks_at_the_services_of_the_project(http: Client) -> None:
    def settings() -> Settings:
        raise NotRunning("the native stack is down", hint='run "cdc-views up"')

    http.server._service.project._settings = settings
    found = http.get("/status").json()
    assert found["trouble"] == 'run "cdc-views up": the native stack is down'
    assert "services: not asked: the native stack is down" in found["lines"]


def test_status_before_the_first_epoch_says_what_is_wrong(tmp_path: Path) -> None:
    def settings() -> Settings:
        raise NotRunning("the native stack is down", hint='run "cdc-views up"')

    with serving(tmp_path) as http:
        http.server._service.project._settings = settings
        found = http.get("/status")
    assert problem(found) == (503, "NothingPublished")
    assert found.json()["detail"].endswith(": the native stack is down")
    assert found.json()["hint"] == 'run "cdc-views up"'


def test_stages_have_position_lag_and_rate() -> None:
    watched = Watched([BEFORE, EPOCH])
    watched.answers.backlog = backlog(confirmed=100, wal_end=110, limit=1000)
    watched.answers.behind, watched.answers.ends = {"app.public.t": 3}, 100
    watched.look(after_s=10)
    _, connect, kafka, _, _ = stages_of(project(ago_s=10), watched.watch, [EPOCH])
    assert (connect.bytes_per_second, kafka.records_per_second) == (None, None)
    watched.answers.ends = 180
    watched.look(after_s=20)
    postgres, connect, kafka, engine, readers = stages_of(project(ago_s=30), watched.watch, [EPOCH])
    assert (postgres.position, postgres.bytes_per_second) == ("0/6E00000", MB / 3)
    assert (connect.position, connect.lag_bytes, connect.lag_seconds) == ("0/6400000", 10 * MB, 30)
    assert (connect.bytes_per_second, kafka.records_per_second) == (0, 4)
    assert (kafka.lag_offsets, kafka.lag_bytes, engine.changes_per_second) == (3, 1500, 5 / 60)
    assert (readers.position, readers.lag_seconds, readers.epochs_per_minute) == ("0/6400000", 30, 1)
    assert {stage.state for stage in (postgres, connect, kafka, engine, readers)} == {"good"}


def test_stages_of_services_that_do_not_answer_are_bad() -> None:
    watched = Watched([EPOCH])
    watched.answers.state = watched.answers.behind = None
    watched.look()
    found = stages_of(project(IDLE, ago_s=45, intent=INTENT), watched.watch, [])
    assert [(stage.name, stage.state) for stage in found] == [
        ("postgres", "bad"), ("connect", "bad"), ("kafka", "bad"), ("engine", "good"), ("readers", "good"),
    ]  # fmt: skip


def test_epochs_are_listed_newest_last(http: Client) -> None:
    found = http.get("/epochs").json()
    assert [(row["epoch"], row["changes"]) for row in found] == [(1, 5), (2, 5)]
    assert [row["epoch"] for row in http.get("/epochs?idle=true&last=2").json()] == [2, 3]


def test_history_sums_up_each_minute(http: Client) -> None:
    found = http.get("/history?minutes=2").json()
    assert (sum(found["epochs"]), sum(found["changes"])) == (3, 10)
    assert sum(found["tables"]["totals"]["milliseconds"]) == 50
    assert sum(found["tables"]["public.orders"]["changes"]) == 10
    assert [len(found[name]) for name in ("epochs", "changes", "age_seconds")] == [2, 2, 2]


def test_history_of_a_view_has_the_cost_of_each_epoch(http: Client) -> None:
    first, second = http.get("/views/totals/history").json()
    assert (first["epoch"], first["strategy"], first["rows_computed"], first["milliseconds"]) == (1, "keys", 3, 25)
    assert second["rows_computed"] is None  # Spark has not counted them
    assert http.get("/views/public.orders/history?last=1").json()[0]["changes"] == 5


def test_explain_has_what_the_engine_recorded(http: Client, shop: Published) -> None:
    memory = Memory([Table("orders", {"id": "bigint", "note": "text"}, ("id",))])
    memory.declare({"by_note": "SELECT note, count(*) AS n FROM orders GROUP BY note"})
    view = memory.views["by_note"]
    shop.control.take_over(detail=TakeoverDetail(kept={"totals": kept_view(view.compiled, view.plan)}).json_fields())
    shop.control.take_over()  # as a rollback does
    found = http.get("/views/totals/explain").json()
    assert (found["inputs"], found["kept"]["strategy"], found["kept"]["key"]) == (["public.orders"], "ADD", ["note"])
    assert found["kept"]["definition"] == "SELECT note, count(*) AS n FROM orders GROUP BY note"
    explanation = explain(view.compiled, view.plan)
    assert explanation.steps
    assert explanation.lookups
    assert found["kept"]["steps"] == list(explanation.steps)
    assert found["kept"]["lookups"] == list(explanation.lookups)
    mirror = http.get("/views/public.orders/explain").json()
    assert (mirror["kept"], mirror["readers"]) == (None, ["totals"])


# A look that takes long


class SlowSettings:
    """Settings of a project that are read until `go_on` is set, as from a stack that does not answer."""

    def __init__(self, http: Client) -> None:
        self.reads = 0
        self.go_on = threading.Event()
        http.server._service.project._settings = self

    def __call__(self) -> Settings:
        self.reads += 1
        assert self.go_on.wait(LIMIT_S)
        raise NotRunning("the native stack is down", hint='run "cdc-views up"')


def test_look_that_takes_long_delays_no_other_request(shop: Published) -> None:
    with serving(shop.root, workers=1, requests=1) as http:
        slow = SlowSettings(http)
        asked = http.waiting("/status", 3)
        assert http.get("/views/public.orders/rows/1").status_code == 200
        slow.go_on.set()
        assert [each().status_code for each in asked] == [200, 200, 200]


def test_requests_at_the_same_time_share_one_look(shop: Published, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_watch, "_KEPT_S", -1.0)  # each look is a new one
    with serving(shop.root) as http:
        slow = SlowSettings(http)
        asked = http.waiting("/status", 5)
        slow.go_on.set()
        assert len({each().content for each in asked}) == 1
        assert slow.reads == 1
        assert http.get("/status").status_code == 200
        assert slow.reads == 2


def test_server_stops_while_a_look_takes_long(shop: Published) -> None:
    with serving(shop.root) as http:
        slow = SlowSettings(http)
        asked = http.get_in_thread("/status")
        wait_for(lambda: slow.reads, LIMIT_S, 0.01)
    assert problem(asked()) == (503, "ServerBusy")
    slow.go_on.set()


# Which thread encodes an answer


class Encoded(BaseModel):
    """A value of an answer that says in which thread it is encoded."""

    @model_serializer
    def _thread(self) -> str:
        return threading.current_thread().name


def test_thread_that_reads_epochs_encodes_them(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for function in ("epoch_row", "table_row"):
        monkeypatch.setattr(status_routes, function, lambda *_: {"thread": Encoded()})
    for path in ("/epochs", "/views/totals/history"):
        assert {row["thread"].partition("_")[0] for row in http.get(path).json()} == {"reads"}, path


def test_thread_that_reads_the_status_encodes_it(http: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    project = http.server._service.project
    found = dataclasses.replace(project.status(), rows=[{"thread": Encoded()}])
    monkeypatch.setattr(project, "status", lambda: found)
    [row] = http.get("/status").json()["tables"]
    assert row["thread"].partition("_")[0] == "status"


@pytest.mark.parametrize(
    "path",
    ["/epoch", "/views", "/views/totals", "/views/totals/explain", "/status", "/epochs", "/history",
     "/views/totals/history", "/openapi.json"],
)  # fmt: skip
def test_no_description_is_encoded_on_the_event_loop(http: Client, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """FastAPI and Starlette encode there whatever is not a body already."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("encoded on the event loop")

    monkeypatch.setattr(routing, "serialize_response", refuse)
    monkeypatch.setattr(JSONResponse, "render", refuse)
    response = http.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    assert response.json()


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/views/nosuch/history", 404, "UnknownView"),
        ("/views/nosuch/explain", 404, "UnknownView"),
        ("/views/totals/history?last=0", 400, "BadParameter"),
        ("/epochs?last=1001", 400, "BadParameter"),
        ("/history?minutes=0", 400, "BadParameter"),
    ],
)
def test_bad_input_is_a_named_error(http: Client, path: str, status: int, error: str) -> None:
    assert problem(http.get(path)) == (status, error)

"""Requests to the running engine: taken once, answered, withdrawn."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cdc_views.engine.requests import Answer, QuarantineRequest, Request, Requests, parse_request
from cdc_views.engine.swap import Standby, SwapRequest
from cdc_views.errors import LogGap
from cdc_views.log.record import Place
from tests.waiting import wait_for

REQUEST = SwapRequest("ab12", "swap", {"public.t": Standby("mirrors/public/t/g-ab12", 4, 7)})


def test_request_is_taken_once_and_its_answer_comes_back(tmp_path: Path) -> None:
    requests, answers = Requests(tmp_path), list[Answer | None]()
    asking = threading.Thread(target=lambda: answers.append(Requests(tmp_path).ask(REQUEST, lambda: True)))
    asking.start()
    taken: list[Request] = []
    wait_for(lambda: bool(taken.extend(found for found in [requests.take()] if found) or taken), 10)
    assert taken == [REQUEST]
    assert requests.take() is None
    requests.answer(REQUEST, LogGap("too late", hint="be early"))
    asking.join(10)
    [answer] = answers
    assert answer is not None
    with pytest.raises(LogGap, match=r"too late\nhint: be early"):
        answer.raise_error()
    assert list((tmp_path / ".requests").iterdir()) == []


def test_request_to_an_engine_that_has_ended_is_withdrawn(tmp_path: Path) -> None:
    requests = Requests(tmp_path)
    assert requests.ask(REQUEST, lambda: False) is None
    assert requests.take() is None


def test_request_that_nobody_waits_for_is_forgotten_by_the_next_engine(tmp_path: Path) -> None:
    requests = Requests(tmp_path)
    (tmp_path / ".requests").mkdir()
    (tmp_path / ".requests" / "ab12.json").write_text(REQUEST.text())
    requests.forget()
    assert requests.take() is None


def test_request_that_the_engine_has_taken_is_waited_for(tmp_path: Path) -> None:
    requests, settled = Requests(tmp_path), threading.Event()
    (tmp_path / ".requests").mkdir()
    (tmp_path / ".requests" / "ab12.json").write_text(REQUEST.text())
    assert requests.take() == REQUEST
    waiting = threading.Thread(target=lambda: (requests.settle(REQUEST.id, lambda: True), settled.set()))
    waiting.start()
    assert not settled.wait(0.3)
    requests.answer(REQUEST)
    assert settled.wait(10)
    assert list((tmp_path / ".requests").iterdir()) == []


def test_answer_without_an_error_raises_nothing() -> None:
    Answer().raise_error()


@pytest.mark.parametrize("place", [None, Place("app.public.t", 1, 7)])
def test_request_of_the_quarantine_is_read_as_it_was_written(place: Place | None) -> None:
    request = QuarantineRequest("ab12", "retry", place)
    assert parse_request(request.text()) == request

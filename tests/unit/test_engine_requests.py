"""Requests to the running engine: taken once, answered, withdrawn."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

from cdc_views import errors
from cdc_views.engine.epoch.swap import SwapRequest
from cdc_views.engine.input.mirror_errors import naming_table
from cdc_views.engine.service.requests import (
    QuarantineRequest,
    Refused,
    Request,
    RequestOutcome,
    Requests,
    parse_request,
    refusing,
)
from cdc_views.errors import (
    BadReplay,
    BadRequest,
    CdcViewsError,
    DiskFull,
    DriverLost,
    Fenced,
    LogGap,
    MirrorFailed,
    NotRunning,
    RequestFailed,
    UnknownView,
)
from cdc_views.errors.log_offset import LogOffset
from cdc_views.store.control.details import ShadowTable
from tests.waiting import wait_for

ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, CdcViewsError)]

REQUEST = SwapRequest("ab12", "swap", {"public.t": ShadowTable("mirrors/public/t/g-ab12", 4, 7)})


def test_request_is_taken_once_and_its_answer_comes_back(tmp_path: Path) -> None:
    requests, answers = Requests(tmp_path), list[RequestOutcome | None]()
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


def test_request_that_is_not_answered_within_the_limit_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_views.engine.service.requests.PATIENT_LIMIT_S", 0.1)
    with pytest.raises(NotRunning, match="has not answered request ab12"):
        Requests(tmp_path).ask(REQUEST, lambda: True)
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


@pytest.mark.parametrize("kind", [".answer", ".draft"])
def test_answer_to_a_process_that_was_killed_is_forgotten(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / ".requests"
    folder.mkdir()
    killed, waiting = folder / f"ab12{kind}", folder / f"cd34{kind}"
    for file in (killed, waiting):
        file.write_text("{}")
    two_hours_ago_s = time.time() - 7200
    os.utime(killed, (two_hours_ago_s, two_hours_ago_s))
    Requests(tmp_path).forget()
    assert list(folder.iterdir()) == [waiting]


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


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_can_be_an_answer(kind: type[CdcViewsError]) -> None:
    with pytest.raises(kind) as raised:
        RequestOutcome(kind.__name__, "message", "hint").raise_error()
    assert (type(raised.value), raised.value.message, raised.value.hint) == (kind, "message", "hint")


def test_error_of_another_version_is_a_failed_request() -> None:
    with pytest.raises(RequestFailed, match="message"):
        RequestOutcome("NotAnErrorHere", "message").raise_error()


def test_answer_without_an_error_raises_nothing() -> None:
    RequestOutcome().raise_error()


@pytest.mark.parametrize("place", [None, LogOffset("app.public.t", 1, 7)])
def test_request_of_the_quarantine_is_read_as_it_was_written(place: LogOffset | None) -> None:
    request = QuarantineRequest("ab12", "retry", place)
    assert parse_request(request.text()) == request


# ---- a request that fails is answered, and ends the engine only with what would have ended it anyway


def outcome(tmp_path: Path, error: Exception) -> tuple[RequestOutcome | None, Exception | None]:
    """The answer to a request in whose block an error is raised, and the error that goes on to the engine."""
    requests, raised = Requests(tmp_path), None
    (tmp_path / ".requests").mkdir()
    (tmp_path / ".requests" / "ab12.json").write_text(REQUEST.text())
    request = requests.take()
    assert request is not None
    try:
        with requests.answering(request):
            raise error
    except CdcViewsError as found:
        raised = found
    assert not list((tmp_path / ".requests").glob("*.taken"))
    return requests._answer_of(request.id), raised


def test_request_that_is_refused_is_answered(tmp_path: Path) -> None:
    assert outcome(tmp_path, Refused(BadReplay("no", hint="other"))) == (
        RequestOutcome("BadReplay", "no", "other"),
        None,
    )


@pytest.mark.parametrize("error", [LogGap("too late"), Fenced("another"), DriverLost("gone"), DiskFull("full")])
def test_error_that_ends_the_engine_is_answered_and_raised(tmp_path: Path, error: CdcViewsError) -> None:
    assert outcome(tmp_path, error) == (RequestOutcome(type(error).__name__, error.message), error)


@pytest.mark.proves(
    wrong=(
        "An unexpected error occurs while the running engine serves a command (`rebuild --swap`, `rollback`, "
        "`quarantine`)"
    ),
    seen="`RequestFailed` from the command; the engine starts again by itself",
    do="look at the engine's output, then try the command again",
)
@pytest.mark.parametrize(
    ("error", "named", "message"),
    [
        (ValueError("secret"), "RequestFailed", r"request ab12: unexpected error: ValueError"),
        (pa.ArrowInvalid("secret"), "RequestFailed", r"request ab12: unexpected error: pyarrow\.ArrowInvalid"),
        (UnknownView("no view"), "UnknownView", "no view"),
    ],
)
def test_error_of_the_request_is_answered_and_starts_the_engine_again(
    tmp_path: Path, error: Exception, named: str, message: str
) -> None:
    answer, raised = outcome(tmp_path, error)
    assert answer is not None
    assert answer.error == named
    assert re.match(message, answer.message)
    assert isinstance(raised, RequestFailed)
    assert "secret" not in answer.message + raised.message


@pytest.mark.proves(
    wrong="A command of another version of cdc_views asks the running engine",
    seen="`BadRequest` from the command; the engine goes on",
    do="use the same version for both",
)
@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"id": "x"}', '{"id": "x", "kind": "other", "tables": 3}',
                                  '{"id": "x", "kind": "retry", "place": [1]}'])  # fmt: skip
def test_request_that_cannot_be_read_is_answered(tmp_path: Path, text: str) -> None:
    requests = Requests(tmp_path)
    (tmp_path / ".requests").mkdir()
    (tmp_path / ".requests" / "aa.json").write_text(text)
    (tmp_path / ".requests" / "ab12.json").write_text(REQUEST.text())
    assert requests.take() == REQUEST
    answer = requests._answer_of("aa")
    assert answer is not None
    with pytest.raises(BadRequest, match="cannot read the request"):
        answer.raise_error()


def test_request_of_another_user_is_refused_and_the_engine_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = Requests(tmp_path)
    (tmp_path / ".requests").mkdir()
    (tmp_path / ".requests" / "aa.json").write_text(REQUEST.text())
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", raising_permission_error)
        assert requests.take() is None
    answer = requests._answer_of("aa")
    assert answer is not None
    with pytest.raises(BadRequest, match="may not read the request"):
        answer.raise_error()


def raising_permission_error(_: Path) -> bytes:
    raise PermissionError(errno.EACCES, "Permission denied")


@pytest.mark.parametrize("error", [KeyError("secret"), LogGap("too late")])
def test_error_of_a_plan_refuses_the_request(error: Exception) -> None:
    with pytest.raises(Refused) as refused, refusing(Exception):
        raise error
    assert type(refused.value.error) is (LogGap if isinstance(error, LogGap) else RequestFailed)


@pytest.mark.proves(
    wrong="An unexpected error occurs while the changes of one table are decoded or committed",
    seen="`MirrorFailed` with the table",
    do="report the error; run `cdc-views rebuild TABLE --from snapshot --swap` if it stays",
)
def test_unexpected_error_of_a_mirror_names_the_table() -> None:
    unexpected = r'table "public\.t": unexpected error: pyarrow\.ArrowInvalid'
    with pytest.raises(MirrorFailed, match=unexpected), naming_table("public.t"):
        pa.array(["secret"]).cast(pa.int64())
    with pytest.raises(LogGap), naming_table("public.t"):
        raise LogGap("too late")

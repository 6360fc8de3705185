"""Requests of other processes to the running engine: one file per request, and one per answer.

A request file appears complete. The engine takes it by renaming it, which only one process can do, and answers between
two epochs. Files need nothing but the warehouse, and they survive if either side is killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import orjson

from cdc_views import errors
from cdc_views.engine.epoch.swap import SwapRequest
from cdc_views.errors import BadInput, BadRequest, CdcViewsError, NotRunning, RequestFailed
from cdc_views.errors.log_offset import LogOffset
from cdc_views.errors.unexpected import described
from cdc_views.host.waiting import PATIENT_LIMIT_S, wait_while

_FOLDER: Final = ".requests"
_PUT: Final = ".json"
_TAKEN: Final = ".taken"
_ANSWER: Final = ".answer"
_DRAFT: Final = ".draft"
# A process reads its answer at once, if it was not killed.
_ABANDONED_S: Final = 3600

_OTHER_VERSION: Final = "is the engine of another version than this command? restart it"


class Refused(Exception):
    """The request cannot be done, and nothing of it was done."""

    def __init__(self, error: CdcViewsError) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def refusing(kind: type[Exception]) -> Iterator[None]:
    """Raise Refused in place of these errors. The block may raise them only before anything was done."""
    try:
        yield
    except kind as error:
        raise Refused(
            error if isinstance(error, CdcViewsError) else RequestFailed(f"unexpected error: {described(error)}")
        ) from error


@dataclass(frozen=True)
class RequestOutcome:
    """The outcome of a request. `error` is the name of one of our error classes."""

    error: str | None = None
    message: str = ""
    hint: str | None = None

    def raise_error(self) -> None:
        """Raise the error, if it is one, as if it had happened here; fields that only it has are not known.

        Raises RequestFailed for a class that an engine of another version has.
        """
        if self.error is not None:
            raise getattr(errors, self.error, RequestFailed)(self.message, hint=self.hint)


@dataclass(frozen=True)
class QuarantineRequest:
    """A request to retry parked events or to discard one: the event at `place`, or all (None)."""

    id: str
    kind: Literal["retry", "discard"]
    place: LogOffset | None

    def text(self) -> str:
        """The request as JSON."""
        return orjson.dumps({"id": self.id, "kind": self.kind, "place": list(self.place or ())}).decode()


Request = SwapRequest | QuarantineRequest


def parse_request(text: str | bytes) -> Request:
    """Parse the JSON of a request."""
    fields = orjson.loads(text)
    if fields["kind"] in ("retry", "discard"):
        return QuarantineRequest(fields["id"], fields["kind"], LogOffset(*fields["place"]) if fields["place"] else None)
    return SwapRequest.parse(text)


class Requests:
    """The requests of one warehouse, for both sides."""

    def __init__(self, warehouse: Path) -> None:
        self._folder = warehouse / _FOLDER

    def ask(self, request: Request, is_running: Callable[[], bool]) -> RequestOutcome | None:
        """Write the request and wait for its answer; None if the engine ended, or restarted, without an answer.

        Raises NotRunning.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self.settle(request.id, is_running)
        self._write(self._file(request.id, _PUT), request.text().encode())

        def is_waiting() -> bool:
            return is_running() and self._is_pending(request.id) and self._answer_of(request.id) is None

        try:
            self._wait_while(is_waiting, request.id)
            return self._answer_of(request.id)
        finally:
            # One that was taken is the engine's: it may be publishing it.
            self._file(request.id, _PUT).unlink(missing_ok=True)
            self._file(request.id, _ANSWER).unlink(missing_ok=True)

    def settle(self, request: str, is_running: Callable[[], bool]) -> None:
        """Withdraw a request that nobody waits for any more, or wait until the engine is done with it.

        Raises NotRunning.
        """
        self._file(request, _PUT).unlink(missing_ok=True)
        self._wait_while(lambda: self._file(request, _TAKEN).exists() and is_running(), request)
        for kind in (_TAKEN, _ANSWER):
            self._file(request, kind).unlink(missing_ok=True)

    def take(self) -> Request | None:
        """Take the next request, so that nobody else gets it; None if there is none."""
        for file in sorted(self._folder.glob(f"*{_PUT}")):
            taken = file.with_suffix(_TAKEN)
            try:
                file.rename(taken)
                return parse_request(taken.read_bytes())
            except FileNotFoundError:  # withdrawn
                continue
            except PermissionError:
                hint = "run the command as the user of the engine, or with a umask that lets others read its files"
                self._answer(file.stem, BadRequest("the running engine may not read the request", hint=hint))
            except (ValueError, LookupError, TypeError, AttributeError):
                self._answer(file.stem, BadRequest("the running engine cannot read the request", hint=_OTHER_VERSION))
        return None

    def forget(self) -> None:
        """Delete the requests to an earlier engine. A process that still waits asks again.

        Answers are deleted, too, once nobody waits for them any more.
        """
        for kind in (_PUT, _TAKEN):
            for file in self._folder.glob(f"*{kind}"):
                file.unlink(missing_ok=True)
        abandoned_s = time.time() - _ABANDONED_S
        for kind in (_ANSWER, _DRAFT):
            for file in self._folder.glob(f"*{kind}"):
                with suppress(FileNotFoundError):
                    if file.stat().st_mtime < abandoned_s:
                        file.unlink()

    def answer(self, request: Request, error: errors.CdcViewsError | None = None) -> None:
        """Answer a request that was taken."""
        self._answer(request.id, error)

    @contextmanager
    def answering(self, request: Request) -> Iterator[None]:
        """Serve a request in the block: whoever asked gets an answer, whatever the block raises.

        Refused ends with the answer. Raises RequestFailed for an error of the request that may have left the engine
        between two states, and every error that would have stopped the engine without the request, too.
        """
        try:
            yield
        except Refused as refused:
            self.answer(request, refused.error)
        except CdcViewsError as error:
            self.answer(request, error)
            if isinstance(error, BadInput):
                raise RequestFailed(f"request {request.id}: {error.message}", hint=error.hint) from error
            raise
        except Exception as error:
            failed = RequestFailed(f"request {request.id}: unexpected error: {described(error)}")
            self.answer(request, failed)
            raise failed from error
        else:
            self.answer(request)

    def _answer(self, request: str, error: errors.CdcViewsError | None) -> None:
        answer = RequestOutcome() if error is None else RequestOutcome(type(error).__name__, error.message, error.hint)
        self._write(self._file(request, _ANSWER), orjson.dumps(answer))
        self._file(request, _TAKEN).unlink(missing_ok=True)

    def _wait_while(self, condition: Callable[[], bool], request: str) -> None:
        if wait_while(condition, PATIENT_LIMIT_S):
            raise NotRunning(
                f"the running engine has not answered request {request} for {PATIENT_LIMIT_S / 3600:.0f} hours",
                hint="see what the engine has logged; it answers between two epochs",
            )

    def _is_pending(self, request: str) -> bool:
        return any(self._file(request, kind).exists() for kind in (_PUT, _TAKEN, _ANSWER))

    def _answer_of(self, request: str) -> RequestOutcome | None:
        try:
            return RequestOutcome(**orjson.loads(self._file(request, _ANSWER).read_bytes()))
        except FileNotFoundError:
            return None

    def _file(self, request: str, kind: str) -> Path:
        return self._folder / f"{request}{kind}"

    def _write(self, file: Path, content: bytes) -> None:
        draft = file.with_suffix(_DRAFT)
        draft.write_bytes(content)
        os.replace(draft, file)

"""What other processes ask of the running engine: one file a request, answered by another.

A request is put whole, taken by renaming it, which only one can, and answered between two epochs.
Files, not a port: they need nothing but the warehouse, and are there after either side was killed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import orjson

from cdc_views import errors
from cdc_views.engine.epoch.swap import SwapRequest
from cdc_views.errors import BadInput, BadRequest, CdcViewsError, RequestFailed
from cdc_views.log.record import Place
from cdc_views.unexpected import described

_FOLDER: Final = ".requests"
_PUT: Final = ".json"
_TAKEN: Final = ".taken"
_ANSWER: Final = ".answer"
_POLL_S: Final = 0.1


_OTHER_VERSION: Final = "is the engine of another version than this command? restart it"


class Refused(Exception):
    """A request that cannot be done, and of which nothing was done."""

    def __init__(self, error: CdcViewsError) -> None:
        super().__init__(error)
        self.error = error


@contextmanager
def refusing(kind: type[Exception]) -> Iterator[None]:
    """Around what raises these errors only before anything was done."""
    try:
        yield
    except kind as error:
        raise Refused(
            error if isinstance(error, CdcViewsError) else RequestFailed(f"unexpected error: {described(error)}")
        ) from error


@dataclass(frozen=True)
class Answer:
    """What became of a request; `error` is the name of one of our errors."""

    error: str | None = None
    message: str = ""
    hint: str | None = None

    def raise_error(self) -> None:
        """Raise the error, if it is one, as if it had happened here."""
        if self.error is not None:
            raise getattr(errors, self.error)(self.message, hint=self.hint)


@dataclass(frozen=True)
class QuarantineRequest:
    """That parked events are tried again, or one is discarded: the event at `place`, or all (None)."""

    id: str
    kind: Literal["retry", "discard"]
    place: Place | None

    def text(self) -> str:
        """The request as JSON."""
        return orjson.dumps({"id": self.id, "kind": self.kind, "place": list(self.place or ())}).decode()


Request = SwapRequest | QuarantineRequest


def parse_request(text: str | bytes) -> Request:
    """Read what a request's `text` gives."""
    fields = orjson.loads(text)
    if fields["kind"] in ("retry", "discard"):
        return QuarantineRequest(fields["id"], fields["kind"], Place(*fields["place"]) if fields["place"] else None)
    return SwapRequest.parse(text)


class Requests:
    """The requests of one warehouse, for both sides."""

    def __init__(self, warehouse: Path) -> None:
        self._folder = warehouse / _FOLDER

    def ask(self, request: Request, is_running: Callable[[], bool]) -> Answer | None:
        """Put the request and wait for its answer; None if the engine has ended, or begun anew, without one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.settle(request.id, is_running)
        self._write(self._file(request.id, _PUT), request.text().encode())
        try:
            while is_running() and self._is_pending(request.id):
                if (answer := self._answer_of(request.id)) is not None:
                    return answer
                time.sleep(_POLL_S)
            return self._answer_of(request.id)
        finally:
            # One that was taken is the engine's: it may be publishing it.
            self._file(request.id, _PUT).unlink(missing_ok=True)
            self._file(request.id, _ANSWER).unlink(missing_ok=True)

    def settle(self, request: str, is_running: Callable[[], bool]) -> None:
        """Withdraw a request that nobody waits for any more, or wait until the engine is done with it."""
        self._file(request, _PUT).unlink(missing_ok=True)
        while self._file(request, _TAKEN).exists() and is_running():
            time.sleep(_POLL_S)
        for kind in (_TAKEN, _ANSWER):
            self._file(request, kind).unlink(missing_ok=True)

    def take(self) -> Request | None:
        """The next request, which nobody else gets any more."""
        for file in sorted(self._folder.glob(f"*{_PUT}")):
            taken = file.with_suffix(_TAKEN)
            try:
                file.rename(taken)
                return parse_request(taken.read_bytes())
            except FileNotFoundError:  # withdrawn
                continue
            except (ValueError, LookupError, TypeError, AttributeError):
                self._answer(file.stem, BadRequest("the running engine cannot read the request", hint=_OTHER_VERSION))
        return None

    def forget(self) -> None:
        """Drop what was asked of an engine before this one: who still waits asks again."""
        for kind in (_PUT, _TAKEN):
            for file in self._folder.glob(f"*{kind}"):
                file.unlink(missing_ok=True)

    def answer(self, request: Request, error: errors.CdcViewsError | None = None) -> None:
        """Say what became of a request that was taken."""
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
        answer = Answer() if error is None else Answer(type(error).__name__, error.message, error.hint)
        self._write(self._file(request, _ANSWER), orjson.dumps(answer))
        self._file(request, _TAKEN).unlink(missing_ok=True)

    def _is_pending(self, request: str) -> bool:
        return any(self._file(request, kind).exists() for kind in (_PUT, _TAKEN, _ANSWER))

    def _answer_of(self, request: str) -> Answer | None:
        try:
            return Answer(**orjson.loads(self._file(request, _ANSWER).read_bytes()))
        except FileNotFoundError:
            return None

    def _file(self, request: str, kind: str) -> Path:
        return self._folder / f"{request}{kind}"

    def _write(self, file: Path, content: bytes) -> None:
        draft = file.with_suffix(".draft")
        draft.write_bytes(content)
        os.replace(draft, file)

"""The changes of a view or mirror: as server-sent events that go on, or as NDJSON up to the last epoch."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from cdc_views.errors import CdcViewsError
from cdc_views.serve.changes.feed import PROGRESS_S, ChangeFeed, ChangeItem, EpochChanges
from cdc_views.serve.changes.lines import change_lines
from cdc_views.serve.epochs.published import PublishedEpoch
from cdc_views.serve.http.answers import Format, chosen, in_chunks
from cdc_views.serve.http.limits import SLOT, RequestSlot
from cdc_views.serve.http.moments import NO_STORE
from cdc_views.serve.http.problems import problem_of
from cdc_views.serve.http.service import HttpService, TheService
from cdc_views.store.control import ControlRecord

ROUTER: Final = APIRouter(tags=["changes"])

# A proxy, or a client that is gone, is noticed by what it gets.
_SILENCE_S: Final = 15.0
_LARGE_BYTES: Final = 1 << 20


@ROUTER.get("/views/{name}/changes")
async def get_changes(
    service: TheService,
    name: str,
    since: Annotated[
        str | None, Query(description='the token of the last item; "now": only what comes; without it: all rows first')
    ] = None,
    accept: Annotated[str | None, Header()] = None,
    last_event_id: Annotated[str | None, Header(description="a token, which wins over since")] = None,
) -> Response:
    """Follow what changes, epoch by epoch, each change exactly once.

    Server-sent events go on: `snapshot` (all rows), `changes` (an epoch), `progress` (a new token), `error`. Many rows
    come in parts.
    The last event of each item has its token as `id`. NDJSON ends with the last published epoch, and has the same
    objects as `cdc-views changes --json`.
    """
    form = chosen(accept, [Format.EVENTS, Format.NDJSON])
    feed = await service.run(lambda: _open(service, name, last_event_id or since))
    headers = {"Cache-Control": NO_STORE, "X-Accel-Buffering": "no", "Vary": "Accept"}
    if form is Format.NDJSON:
        return StreamingResponse(_lines(service, feed), 200, headers, form.value)
    follower = service.followers.take()
    SLOT.get().release()  # it lasts, and would take the place of others
    return _Following(_events(service, feed), headers, follower)


class _Following(StreamingResponse):
    """Gives its slot back when it ends, however it ends."""

    def __init__(self, events: AsyncIterator[bytes], headers: dict[str, str], slot: RequestSlot) -> None:
        super().__init__(events, 200, headers, Format.EVENTS.value)
        self._slot = slot

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._slot.release()


def _open(service: HttpService, name: str, since: str | None) -> ChangeFeed:
    if since is None:  # else what came before an error of the table is given first
        PublishedEpoch.latest(service.warehouse, known=service.known).table(name)
    return ChangeFeed(service.stored, name, since, service.known)


async def _lines(service: HttpService, feed: ChangeFeed) -> AsyncIterator[bytes]:
    last = None
    try:
        items = feed.take()
        while (item := await service.run(lambda: next(items, None))) is not None:
            last = item.epoch
            async for part in _sent(service, item, _line):
                yield part
        if last is None or last < feed.epoch:
            progress = await service.run(feed.progress)
            async for part in _sent(service, progress, _line):
                yield part
    except CdcViewsError as error:
        yield orjson.dumps({"error": problem_of(error)}, option=orjson.OPT_APPEND_NEWLINE)


async def _events(service: HttpService, feed: ChangeFeed) -> AsyncIterator[bytes]:
    sent_at, token_at = time.monotonic(), -math.inf  # so that the first event comes at once
    try:
        while not service.watch.is_closed:
            items = feed.take()
            while (item := await service.run(lambda: next(items, None))) is not None:  # noqa: B023 (run at once)
                async for part in _sent(service, item, _event):
                    yield part
                sent_at = token_at = time.monotonic()
            # Epochs that change other tables only are no reason to wait any longer.
            if (now := time.monotonic()) - token_at >= PROGRESS_S:
                sent_at = token_at = now
                yield _progress(await service.run(feed.progress))
            elif now - sent_at >= _SILENCE_S:
                sent_at = now
                yield b":\n\n"
            await service.watch.wait(_is_other(feed.epoch), _SILENCE_S)
    except CdcViewsError as error:
        if service.watch.is_closed:
            return  # the client comes back with its last token
        yield b"event: error\ndata: " + orjson.dumps(problem_of(error)) + b"\n\n"


def _is_other(epoch: int) -> Any:
    def is_other(record: ControlRecord) -> bool:
        return record.epoch != epoch

    return is_other


async def _sent(service: HttpService, item: ChangeItem, encode: Any) -> AsyncIterator[bytes]:
    """An item in small parts. Raises ServerBusy for large changes if clients have not read too much already."""
    parts: Iterator[bytes] = map(encode, change_lines(item))
    size = _size(item) if isinstance(item, EpochChanges) else 0
    held = size if size > _LARGE_BYTES else 0  # in memory until the client has read them
    if held:
        service.unsent.take(held)
    try:
        while (part := await service.run(lambda: next(parts, None))) is not None:
            for chunk in in_chunks(part):
                yield chunk
    finally:
        service.unsent.give_back(held)


def _size(item: EpochChanges) -> int:
    return int(sum(table.nbytes for table in (item.inserted, item.updated, item.replaced, item.deleted)))


def _line(line: dict[str, Any]) -> bytes:
    return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)


def _event(line: dict[str, Any]) -> bytes:
    """An event. Only the last one of an item has an id: a client that has it has all of the item."""
    kind = b"event: snapshot\n" if "snapshot" in line else b"event: changes\n"
    name = b"id: " + line["token"].encode() + b"\n" if "token" in line else b""
    return name + kind + b"data: " + orjson.dumps(line) + b"\n\n"


def _progress(item: EpochChanges) -> bytes:
    line = {"epoch": item.epoch, "position": str(item.position), "token": item.token}
    return b"id: " + item.token.encode() + b"\nevent: progress\ndata: " + orjson.dumps(line) + b"\n\n"

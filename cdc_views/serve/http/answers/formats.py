"""Answers as JSON, NDJSON or Arrow, as the request accepts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

import orjson
import pyarrow as pa
from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import iterate_in_threadpool
from starlette.types import Receive, Scope, Send

from cdc_views.errors import NotAcceptable
from cdc_views.serve.http.limits import Unsent
from cdc_views.serve.values.answer_size import answer_bytes
from cdc_views.serve.values.json_value import json_rows

_CHUNK_ROWS: Final = 1000
# What is sent at once: a client must read this much in `http.stalled_s`.
_CHUNK_BYTES: Final = 1 << 16
# A smaller answer is encoded at once, by the thread that has read it.
_SMALL_ROWS: Final = 1000
_SMALL_BYTES: Final = 1 << 20


class Format(Enum):
    """A format, by its media type."""

    JSON = "application/json"
    NDJSON = "application/x-ndjson"
    ARROW = "application/vnd.apache.arrow.stream"
    EVENTS = "text/event-stream"


ROWS: Final = (Format.JSON, Format.NDJSON, Format.ARROW)


def chosen(accept: str | None, offered: Iterable[Format]) -> Format:
    """The format that a request accepts most; the first one if it does not care. Raises NotAcceptable."""
    offered = list(offered)
    ranges = [_weighted(part) for part in (accept or "*/*").split(",")]
    best = max(offered, key=lambda form: _rank(form, ranges))
    if _rank(best, ranges)[0] == 0:
        names = ", ".join(each.value for each in offered)
        raise NotAcceptable("the request accepts none of the formats that there are", hint=f"formats are {names}")
    return best


def _rank(form: Format, ranges: list[tuple[str, float]]) -> tuple[float, int]:
    """How much a format is wanted: the weight of the range that names it most closely (RFC 9110, 12.5.1), its place."""
    for closely in (form.value, form.value.partition("/")[0] + "/*", "*/*"):
        for place, (kind, weight) in enumerate(ranges):
            if kind == closely:
                return weight, -place
    return 0, 0


def _weighted(part: str) -> tuple[str, float]:
    """A media range of an Accept header and its weight; 0 if the weight is none."""
    kind, *parameters = (each.strip().lower() for each in part.split(";"))
    weights = [parameter.removeprefix("q=") for parameter in parameters if parameter.startswith("q=")]
    try:
        weight = float(weights[0]) if weights else 1.0
    except ValueError:
        return kind, 0
    return kind, weight if 0 <= weight <= 1 else 0


class Encoded:
    """The rows of an answer in a format. Made by the thread that has read them; a small answer is encoded at once."""

    def __init__(self, rows: pa.Table, form: Format, around: Mapping[str, Any]) -> None:
        """`around` are the other members of the object of JSON."""
        self._form = form
        self.size = answer_bytes(rows)
        parts = _parts(rows, form, around)
        self._body = b"".join(parts) if rows.num_rows <= _SMALL_ROWS and self.size <= _SMALL_BYTES else None
        self._parts = parts

    def response(self, headers: Mapping[str, str], unsent: Unsent) -> Response:
        """The response. Raises ServerBusy if clients have not read too much already."""
        if self._body is not None:
            return Response(self._body, 200, headers, self._form.value)
        unsent.take(self.size)
        return _Counted(self._parts, headers, self._form, self.size, unsent)


class _Counted(StreamingResponse):
    """Counts its bytes as unsent until it ends, however it ends."""

    def __init__(
        self, parts: Iterator[bytes], headers: Mapping[str, str], form: Format, size: int, unsent: Unsent
    ) -> None:
        super().__init__(_sent(parts), 200, headers, form.value)
        self._size = size
        self._unsent = unsent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._unsent.give_back(self._size)


async def _sent(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The parts, made in threads one by one as they are sent."""
    async for part in iterate_in_threadpool(parts):
        for chunk in in_chunks(part):
            yield chunk


def in_chunks(part: bytes) -> Iterator[bytes]:
    """What is sent one after the other, so that a slow client reads some of it in time."""
    for begin in range(0, len(part), _CHUNK_BYTES):
        yield part[begin : begin + _CHUNK_BYTES]


def _parts(rows: pa.Table, form: Format, around: Mapping[str, Any]) -> Iterator[bytes]:
    if form is Format.ARROW:
        yield from arrow_parts(rows)
    elif form is Format.NDJSON:
        for chunk in _objects(rows):
            yield b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in chunk)
    else:
        yield orjson.dumps(around)[:-1] + (b"," if around else b"") + b'"rows":['
        comma = b""
        for chunk in _objects(rows):
            # Not by map(), during which no other thread would run.
            yield comma + b",".join([orjson.dumps(row) for row in chunk])
            comma = b","
        yield b"]}"


def _objects(rows: pa.Table) -> Iterator[list[Any]]:
    for batch in rows.to_batches(max_chunksize=_CHUNK_ROWS):
        yield json_rows(batch)


def arrow_parts(rows: pa.Table) -> Iterator[bytes]:
    """The rows as a stream of Arrow, batch by batch."""
    sink = _Sink()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), rows.schema) as writer:
        for batch in rows.to_batches():
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


class _Sink:
    """A file that gives away what was written to it."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is kept back."""

    def close(self) -> None:
        """Nothing to close."""

    def taken(self) -> bytes:
        """What was written since the last call."""
        found, self._parts = b"".join(self._parts), []
        return found

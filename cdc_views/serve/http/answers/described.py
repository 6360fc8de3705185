"""What describes the warehouse (its views, epochs, status) as JSON, encoded by the thread that has read it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastapi import Response
from pydantic import TypeAdapter

from cdc_views.serve.http.answers.formats import Format
from cdc_views.serve.http.moments import NO_STORE

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


def encoded(found: object) -> bytes:
    """Models, data classes and values of JSON as a body. It may take long: call it in a thread that reads."""
    if isinstance(found, list):
        # Element by element, and not by map(): no other thread runs while one call encodes.
        return b"[" + b",".join([encoded(each) for each in found]) + b"]"
    return _ANYTHING.dump_json(found)


def described(body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    """The response with an encoded body, which no cache keeps."""
    return Response(body, 200, {"Cache-Control": NO_STORE, **(headers or {})}, Format.JSON.value)

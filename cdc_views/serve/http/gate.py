"""Lets a request in: a token, the host that it is for, and how many requests there are."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from pydantic import SecretStr
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cdc_views.config import is_loopback
from cdc_views.errors import CdcViewsError, ForeignHost, Unauthorized
from cdc_views.errors.unexpected import described
from cdc_views.serve.http.counters import Counters
from cdc_views.serve.http.limits import SLOT, Slots, stopping
from cdc_views.serve.http.problems import respond

_PAGE: Final = "/page/"
_LOGGER: Final = logging.getLogger(__name__)


class Gate:
    """The outermost part of the application."""

    def __init__(self, app: ASGIApp, tokens: Sequence[SecretStr], requests: Slots, counters: Counters) -> None:
        self._app = app
        self._digests = [_digest(token.get_secret_value().encode()) for token in tokens]
        self._requests = requests
        self._counters = counters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. No exception leaves here: its text, which would be logged, may have values of rows.

        The application has answered it by then, as `Unexpected`.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            await send(message)

        slot = None
        try:
            self._require_allowed(scope)
            slot = self._requests.take()
            SLOT.set(slot)
            await self._app(scope, receive, send_and_note)
        except CdcViewsError as error:
            if status == 0:
                await respond(error)(scope, receive, send_and_note)
        except asyncio.CancelledError:
            # Uvicorn cancels what still runs some time after it was stopped, and would log where it was.
            if status == 0:
                await respond(stopping())(scope, receive, send_and_note)
        except Exception as error:
            _LOGGER.error("unexpected error: %s", described(error), extra={"fields": {"error": type(error).__name__}})
        finally:
            if slot is not None:
                slot.release()
            route = getattr(scope.get("route"), "path", "none")
            self._counters.observe(scope["method"], route, status, time.perf_counter() - began)

    def _require_allowed(self, scope: Scope) -> None:
        """Check the token; without tokens, the host. Raises Unauthorized, ForeignHost."""
        headers = dict(scope["headers"])
        if not self._digests:
            # A page of another site, whose name leads to this machine, would otherwise read what is here.
            host = _host_of(headers.get(b"host", b"").decode("latin-1"))
            is_foreign = headers.get(b"sec-fetch-site") == b"cross-site"
            if host is None or is_foreign or not is_loopback(host):
                raise ForeignHost(
                    "the request is from a page of another site"
                    if is_foreign
                    else "the request is for another host than this machine",
                    hint='use "http://127.0.0.1:PORT", or set http.tokens',
                )
            return
        if scope["path"] == "/" or scope["path"].startswith(_PAGE):
            return  # a browser sends no token for a page that it opens; its files have no data
        scheme, _, given = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer":
            raise Unauthorized("the request has no token", hint="send the header Authorization: Bearer TOKEN")
        digest = _digest(given.strip())
        matches = [hmac.compare_digest(digest, known) for known in self._digests]  # all, so that the time says nothing
        if not any(matches):
            raise Unauthorized("the token is not one of the server's", hint="its setting is http.tokens")


def _host_of(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()

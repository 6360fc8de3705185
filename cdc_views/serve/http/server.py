"""Listens for requests, and ends connections of clients that do not read, or do not finish their request."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cdc_views.config import HttpSettings, Settings
from cdc_views.errors import BadConfig, PortInUse
from cdc_views.serve.http.app import create_app
from cdc_views.serve.http.service import HttpService
from cdc_views.store.storage import require_folder

_STOP_S: Final = 3
_KEEP_ALIVE_S: Final = 15
# Connections that are open without a request.
_IDLE_CONNECTIONS: Final = 200


class HttpServer:
    """Serves a warehouse. It listens once it is created."""

    def __init__(self, warehouse: Path, settings: HttpSettings, project: Callable[[], Settings] | None = None) -> None:
        """`project` reads the settings of the project, whose services `/status` looks at.

        Raises BadConfig if others can reach it and there is no token, PortInUse, WarehouseUnusable.
        """
        if not settings.is_loopback and not settings.tokens:
            raise BadConfig(
                f'http.host is "{settings.host}", which other machines can reach, and http.tokens has no token',
                hint="set http.tokens to a reference: [${env:NAME}] or [${file:PATH}]",
            )
        require_folder(warehouse)
        self._socket = _listen(settings.host, settings.port)
        self._service = HttpService(warehouse, settings, project)
        config = uvicorn.Config(
            create_app(self._service, settings),
            http=_protocol(settings),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=_STOP_S,
        )
        self._server = _Server(config, self._service)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def run(self) -> None:
        """Serve until a signal, or `stop`."""
        try:
            self._server.run([self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """Notifies followers of changes that the server stops, before it waits for their connections to end."""

    def __init__(self, config: uvicorn.Config, service: HttpService) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.close()
        await super().shutdown(sockets)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host.strip("[]"), port), family=family, backlog=128)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise PortInUse(
            f'cannot listen at "{host}" port {port}: {reason}', hint="--port and --host, or http.port and http.host"
        ) from None
    # Connections inherit it. asyncio sets it only where the protocol of a socket is named, and here it is 0; the body
    # of each later answer on a connection would wait 40 ms until the client acknowledges the headers.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _protocol(settings: HttpSettings) -> type[asyncio.Protocol]:
    """The protocol of a connection, with the limits of the settings."""
    most = settings.requests + settings.waiting + settings.followers + _IDLE_CONNECTIONS

    class Impatient(H11Protocol):
        """Ends a connection whose client stalls: it does not read what is sent, or does not finish its request."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.access_log = False  # whatever the logger's handlers are: paths have keys of rows
            self._reading = _Limit(self.loop, settings.stalled_s, transport)
            self._writing = _Limit(self.loop, settings.stalled_s, transport)
            self._reading.begin()
            if len(self.connections) > most:
                transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
                self._reading.begin()
            else:
                self._reading.end()

        def pause_writing(self) -> None:
            super().pause_writing()
            self._writing.begin()

        def resume_writing(self) -> None:
            super().resume_writing()
            self._writing.end()

        def connection_lost(self, exc: Exception | None) -> None:
            self._reading.end()
            self._writing.end()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._expect_end()

        def timeout_keep_alive_handler(self) -> None:
            super().timeout_keep_alive_handler()
            self._expect_end()

        def _expect_end(self) -> None:
            """A connection that is closed still waits until its client has read the rest."""
            if self.transport.is_closing():
                self._writing.begin()

    return Impatient


class _Limit:
    """Ends a connection if something that has begun does not end in time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, transport: asyncio.Transport) -> None:
        self._loop = loop
        self._seconds = seconds
        self._transport = transport
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Begin, unless it has begun."""
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._transport.abort)

    def end(self) -> None:
        """End, if it has begun."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

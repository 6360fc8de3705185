"""A network that can fail: a relay for TCP connections that cuts, holds, half-opens or delays them."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Literal

HOST: Final = "127.0.0.1"
DELAY_S: Final = 0.2

Mode = Literal["open", "cut", "held", "half_open", "slow"]

_HELD_POLL_S: Final = 0.01
_NO_FAREWELL: Final = struct.pack("ii", 1, 0)


class Proxy:
    """Relays a free `port` to `target`. Use it as a context manager.

    Modes: `open`; `cut`: existing and new connections are reset; `held`: connections stay, but nothing passes;
    `half_open`: what clients send arrives, the answers are lost, and at the end the connections are reset; `slow`:
    every piece arrives DELAY_S seconds late.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._mode: Mode = "open"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __enter__(self) -> Proxy:
        self._thread.start()
        self._server: asyncio.Server = self._wait(asyncio.start_server(self._accept, HOST, 0))
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    def __exit__(self, *error: object) -> None:
        self._wait(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def set(self, mode: Mode) -> int:
        """Switch to this mode. Returns the number of connections."""
        return int(self._wait(self._set(mode)))

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _set(self, mode: Mode) -> int:
        before, self._mode, count = self._mode, mode, len(self._open) // 2
        if mode == "cut" or before == "half_open":
            self._abort()
        return count

    def _abort(self) -> None:
        for writer in self._open:
            _reset(writer)

    async def _end(self) -> None:
        self._server.close()
        await self._set("cut")
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self._mode == "cut":
                return _reset(writer)
            there_reader, there_writer = await asyncio.open_connection(HOST, self._target)
            ends = {writer, there_writer}
            self._open |= ends
            try:
                ways = self._relay(reader, there_writer), self._relay(there_reader, writer, is_answer=True)
                await asyncio.gather(*ways)
            finally:
                self._open -= ends
                there_writer.transport.abort()
        except OSError:
            pass  # the server is down, or one side has reset the connection
        finally:
            writer.transport.abort()
            self._tasks.discard(task)

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool = False
    ) -> None:
        while data := await reader.read(65536):
            if self._mode == "half_open" and is_answer:
                continue
            while self._mode == "held":
                await asyncio.sleep(_HELD_POLL_S)
            if self._mode == "slow":
                await asyncio.sleep(DELAY_S)
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close with a reset instead of a normal shutdown."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_FAREWELL)
    writer.transport.abort()

"""Work that takes long and is the same for everybody: all who ask while it runs share its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Found = TypeVar("Found")


class Shared(Generic[Found]):
    """Runs one work at a time in a thread of its own, so that it takes none of those that read."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, name)
        self._running: asyncio.Future[Found] | None = None

    async def run(self, work: Callable[[], Found]) -> Found:
        """The result of the work that runs; of this work, if none does. Raises CancelledError after `close`."""
        if self._running is None:
            self._running = asyncio.get_running_loop().run_in_executor(self._thread, work)
            self._running.add_done_callback(self._end)
        return await asyncio.shield(self._running)  # a client that is gone ends it for no other

    def close(self, finish: Callable[[], None]) -> None:
        """End the waiting for work that runs. After it, `finish` runs in its thread."""
        if self._running is not None:
            self._running.cancel()
        self._thread.submit(finish)
        self._thread.shutdown(wait=False)

    def _end(self, ended: asyncio.Future[Found]) -> None:
        self._running = None
        if not ended.cancelled():
            ended.exception()  # else asyncio logs that nobody has asked for it

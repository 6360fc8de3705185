"""Waits for new epochs: one look at the control log for all requests that wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from cdc_views.errors import CdcViewsError
from cdc_views.store.control import ControlRecord, KnownRecords

_POLL_S: Final = 0.05


class EpochWatch:
    """The last published record, looked up every 50 ms while somebody waits."""

    def __init__(self, known: KnownRecords) -> None:
        self._known = known
        self._thread = ThreadPoolExecutor(1, "epochs")  # its own: reads may take all others
        self._last: ControlRecord | None = None
        self._is_new = asyncio.Event()
        self._waiting = 0
        self._polling: asyncio.Task[None] | None = None
        self._is_closed = False

    async def wait(self, is_met: Callable[[ControlRecord], bool], limit_s: float) -> bool:
        """Wait for a record that meets the condition. False after the limit, or if the server stops."""
        self._waiting += 1
        if self._polling is None:
            self._last, self._polling = None, asyncio.create_task(self._poll())
        with suppress(TimeoutError):
            try:
                async with asyncio.timeout(limit_s):
                    while not (self._last is not None and is_met(self._last)):
                        if self._is_closed:
                            return False
                        await self._is_new.wait()
                return True
            finally:
                self._waiting -= 1
        return False

    @property
    def is_closed(self) -> bool:
        """Whether the server stops."""
        return self._is_closed

    def close(self) -> None:
        """End all waiting."""
        self._is_closed = True
        self._tell()
        self._thread.shutdown(wait=False)

    async def _poll(self) -> None:
        try:
            while self._waiting and not self._is_closed:
                # What is wrong with the log, the one who waits finds when it reads.
                with suppress(CdcViewsError):
                    found = await asyncio.get_running_loop().run_in_executor(self._thread, self._known.last)
                    if found != self._last:
                        self._last = found
                        self._tell()
                await asyncio.sleep(_POLL_S)
        finally:
            self._polling = None

    def _tell(self) -> None:
        self._is_new.set()
        self._is_new = asyncio.Event()

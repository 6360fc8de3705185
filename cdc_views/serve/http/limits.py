"""How much may happen at the same time. What is over a limit is refused at once, never queued without bound."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Final

from cdc_views.errors import ServerBusy


def stopping() -> ServerBusy:
    """The error of a request that the server does not answer any more, because it stops."""
    return ServerBusy("the server stops", hint="try again later")


class Slots:
    """At most a given number of things at a time. For one thread, that of the event loop."""

    def __init__(self, count: int, name: str) -> None:
        self._free = count
        self._count = count
        self._name = name
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """How many there are now."""
        return self._count - self._free

    def take(self) -> RequestSlot:
        """Take one. Raises ServerBusy if none is left."""
        if self._free == 0:
            raise ServerBusy(f"the server has {self._count} {self._name}, which is the limit", hint="try again later")
        self._free -= 1
        return RequestSlot(self)

    async def _take_in_turn(self) -> None:
        """Take one as soon as there is one, before those that come later."""
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give_back()
            raise

    def _give_back(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)  # it is theirs now
                return
        self._free += 1


class RequestSlot:
    """One of the slots, until it is released."""

    def __init__(self, slots: Slots) -> None:
        self._slots: Slots | None = slots

    def release(self) -> None:
        """Give the slot back; a second call does nothing."""
        if self._slots is not None:
            self._slots._give_back()
            self._slots = None

    @asynccontextmanager
    async def lent(self, waiting: Slots) -> AsyncIterator[None]:
        """Lend the slot to others while the block waits, which takes one of `waiting` instead.

        After the block it is taken again, which may take until others have ended; not after an error. Raises ServerBusy
        if too many wait already.
        """
        place, slots = waiting.take(), self._slots
        self.release()
        try:
            yield
            if slots is not None:
                await slots._take_in_turn()
                self._slots = slots
        finally:
            place.release()


SLOT: Final[ContextVar[RequestSlot]] = ContextVar("SLOT")
"""The slot of the request that is being answered."""


class Unsent:
    """The bytes of all answers that clients have not read yet."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self.bytes = 0

    def take(self, size: int) -> None:
        """Count an answer. Raises ServerBusy if there are too many bytes then; the only answer may be of any size."""
        if self.bytes and self.bytes + size > self._most:
            raise ServerBusy(
                f"clients have not read {self.bytes >> 20} MiB of their answers; the limit is {self._most >> 20} MiB",
                hint="try again later, or ask for less",
            )
        self.bytes += size

    def give_back(self, size: int) -> None:
        """Count an answer that is sent, or whose client is gone."""
        self.bytes -= size

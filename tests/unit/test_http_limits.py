"""Limits of the HTTP server on what happens at the same time: who gets a place, and when."""

from __future__ import annotations

import asyncio

import pytest

from cdc_views.errors import ServerBusy
from cdc_views.serve.http.limits import Slots


def test_slot_is_free_again_after_its_release() -> None:
    slots = Slots(1, "requests")
    slot = slots.take()
    with pytest.raises(ServerBusy, match="1 requests, which is the limit"):
        slots.take()
    slot.release()
    slot.release()
    assert slots.taken == 0


def test_who_waits_gets_the_slot_before_who_comes_later() -> None:
    async def scenario() -> list[str]:
        slots, waiting, order = Slots(1, "requests"), Slots(2, "waiting"), list[str]()
        first = slots.take()
        go_on = [asyncio.Event(), asyncio.Event()]

        async def wait(name: str, event: asyncio.Event) -> None:
            slot = slots.take()
            async with slot.lent(waiting):
                await event.wait()
            order.append(name)
            await asyncio.sleep(0)
            slot.release()

        first.release()
        tasks = []
        for name, event in zip("ab", go_on, strict=True):
            tasks.append(asyncio.create_task(wait(name, event)))
            await asyncio.sleep(0)
        assert (slots.taken, waiting.taken) == (0, 2)
        last = slots.take()
        for event in reversed(go_on):
            event.set()
            await asyncio.sleep(0)
        assert waiting.taken == 2  # until it is their turn
        last.release()
        with pytest.raises(ServerBusy):  # the slot is that of b
            slots.take()
        await asyncio.gather(*tasks)
        assert (slots.taken, waiting.taken) == (0, 0)
        return order

    assert asyncio.run(scenario()) == ["b", "a"]


def test_slot_of_who_gives_up_waiting_is_free() -> None:
    async def scenario() -> None:
        slots, waiting = Slots(1, "requests"), Slots(2, "waiting")
        is_over = asyncio.Event()

        async def wait() -> None:
            slot = slots.take()
            async with slot.lent(waiting):
                await is_over.wait()

        tasks = []
        for _ in range(2):
            tasks.append(asyncio.create_task(wait()))
            await asyncio.sleep(0)
        other = slots.take()
        is_over.set()
        await asyncio.sleep(0)
        tasks[0].cancel()  # while it is in the queue
        await asyncio.sleep(0)
        other.release()
        tasks[1].cancel()  # when it is its turn
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (slots.taken, waiting.taken) == (0, 0)

    asyncio.run(scenario())


def test_error_while_waiting_needs_no_slot() -> None:
    async def scenario() -> None:
        slots, waiting = Slots(1, "requests"), Slots(1, "waiting")
        slot = slots.take()

        async def fail() -> None:
            async with slot.lent(waiting):
                slots.take()
                raise ValueError("what")

        with pytest.raises(ValueError, match="what"):
            await fail()
        slot.release()
        assert (slots.taken, waiting.taken) == (1, 0)

    asyncio.run(scenario())


def test_who_may_not_wait_keeps_its_slot() -> None:
    async def scenario() -> None:
        slots, waiting = Slots(1, "requests"), Slots(0, "requests that wait")
        slot = slots.take()
        with pytest.raises(ServerBusy, match="0 requests that wait, which is the limit"):
            await slot.lent(waiting).__aenter__()
        assert slots.taken == 1
        slot.release()
        assert slots.taken == 0

    asyncio.run(scenario())

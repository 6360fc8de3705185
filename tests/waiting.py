"""Waiting for a condition, with a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_for(condition: Callable[[], Found], limit_s: float, every_s: float = 0.05) -> Found:
    """What the condition gives once it is true. Fails with the last thing it gave after the limit."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {limit_s} s; last was {found!r}"
        time.sleep(every_s)
    return found

"""Waiting for a condition, with a limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from cdc_views.host.waiting import wait_until

Found = TypeVar("Found")


def wait_for(condition: Callable[[], Found], limit_s: float, every_s: float = 0.05) -> Found:
    """What the condition gives once it is true. Fails with the last thing it gave after the limit."""
    found = wait_until(condition, limit_s, every_s)
    assert found, f"not within {limit_s} s; last was {found!r}"
    return found

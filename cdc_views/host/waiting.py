"""Waiting for a condition for a limited time. The caller raises an error that says what did not happen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar

PATIENT_LIMIT_S: Final = 24 * 3600.0
"""The limit for waiting for the engine, which may be working on an epoch of any size."""

Found = TypeVar("Found")


def wait_until(condition: Callable[[], Found], limit_s: float, every_s: float = 0.05) -> Found:
    """Wait until the condition returns something true. Returns its last result, which is false after the limit."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()) and time.monotonic() < deadline:
        time.sleep(every_s)
    return found


def wait_while(condition: Callable[[], Found], limit_s: float, every_s: float = 0.05) -> Found:
    """Wait while the condition returns something true. Returns its last result, which is true after the limit."""
    deadline = time.monotonic() + limit_s
    while (found := condition()) and time.monotonic() < deadline:
        time.sleep(every_s)
    return found

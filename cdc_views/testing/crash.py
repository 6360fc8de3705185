"""Crashes at named points of the engine (cdc_views/faults.py), in this process.

To kill an engine in a separate process, use the environment: `CDC_VIEWS_FAULT=epoch.after_intent:kill`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cdc_views import faults
from cdc_views.errors import BadConfig, FaultNotReached

POINTS = faults.POINTS


@contextmanager
def crash_at(point: str, *, times: int = 1) -> Iterator[None]:
    """Leave the block when the point is reached for the `times`th time, and continue after the block.

    Raises FaultNotReached if the block reaches its end.
    """
    if point not in POINTS:
        raise BadConfig(f'unknown fault point "{point}"', hint=f"known points: {', '.join(sorted(POINTS))}")
    before = os.environ.get(faults.VARIABLE)
    os.environ[faults.VARIABLE] = f"{point}:raise@{times}"
    faults.forget()
    has_crashed = False
    try:
        yield
    except faults.InjectedFault:
        has_crashed = True
    finally:
        os.environ.pop(faults.VARIABLE)
        if before is not None:
            os.environ[faults.VARIABLE] = before
        faults.forget()
    if not has_crashed:
        raise FaultNotReached(f'fault point "{point}" was not reached {times} times')

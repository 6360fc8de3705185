"""Fixtures for the unit tests, in which what is waited for comes from a thread or a shell script of the test."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Final

import pytest

WAITING: Final = (
    "cdc_views.engine.capture.read_ahead",
    "cdc_views.engine.spark.gateway",
    "cdc_views.log.debezium.connect",
    "cdc_views.serve.changes.feed",
    "cdc_views.serve.epochs.moment",
    "cdc_views.serve.epochs.published",
    "cdc_views.serve.http.watch",
    "cdc_views.stack.services.service",
)


@pytest.fixture(scope="session", autouse=True)
def _short_intervals() -> Iterator[None]:
    """Look a hundred times a second: at intervals made for services, the tests would wait for most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in WAITING:
            if module in sys.modules:  # else the tests do not need it, and its import may take a second
                patch.setattr(f"{module}._POLL_S", 0.01)
        if "uvicorn.server" in sys.modules:
            # uvicorn has its 0.1 s in its code, and each of 60 servers would take twice as long to end.
            quick = {"sleep": lambda seconds: asyncio.sleep(seconds / 10)}
            patch.setattr("uvicorn.server.asyncio", SimpleNamespace(**(vars(asyncio) | quick)))
        yield

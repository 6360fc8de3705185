"""Fixtures for the unit tests, in which what is waited for comes from a thread or a shell script of the test."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import uvicorn.server

from cdc_views.engine.capture import read_ahead
from cdc_views.engine.spark import gateway
from cdc_views.log.debezium import connect
from cdc_views.serve.changes import feed
from cdc_views.serve.epochs import moment, published
from cdc_views.serve.http import watch
from cdc_views.stack.services import service


@pytest.fixture(scope="session", autouse=True)
def _short_intervals() -> Iterator[None]:
    """Look a hundred times a second: at intervals made for services, the tests would wait for most of their time."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (connect, feed, gateway, moment, published, read_ahead, service, watch):
            patch.setattr(module, "_POLL_S", 0.01)
        # uvicorn has its 0.1 s in its code, and each of 60 servers would take twice as long to end.
        quick = {"sleep": lambda seconds: asyncio.sleep(seconds / 10)}
        patch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**(vars(asyncio) | quick)))
        yield

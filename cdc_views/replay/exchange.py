"""Sends a request to the running engine, or carries it out in this process where no engine runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from cdc_views.config import Settings
from cdc_views.engine.capture.start import resume_capture
from cdc_views.engine.epoch.swap import SwapRequest, find_swap
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.holder import holder
from cdc_views.engine.service.requests import QuarantineRequest, Request, Requests
from cdc_views.errors import StoreError, WarehouseLocked
from cdc_views.store.control import ControlRecord, read_control
from cdc_views.store.storage import touching

TRIES: Final = 3


def exchange(settings: Settings, spark: Callable[[], SparkSession], request: Request) -> ControlRecord:
    """Have the request carried out; returns its record in the control log. `spark` is called where no engine runs.

    Raises the error that the engine answers or that its start raises, StoreError, WarehouseUnusable.
    """
    with touching(settings.warehouse):
        return _exchange(settings, spark, request)


def _exchange(settings: Settings, spark: Callable[[], SparkSession], request: Request) -> ControlRecord:
    for last in (number == TRIES for number in range(1, TRIES + 1)):
        if holder(settings.warehouse) is not None:
            answer = Requests(settings.warehouse).ask(request, lambda: holder(settings.warehouse) is not None)
            if answer is not None:
                answer.raise_error()
        else:
            try:
                _do(settings, spark(), request)
            except WarehouseLocked:
                if last:
                    raise
        # The record counts, whoever wrote it, even if the engine ended before it answered.
        done = find_swap(read_control(settings.warehouse), request.id)
        if done is not None:
            return done
    raise StoreError(f"the engine ended {TRIES} times without an answer", hint="see the engine's log")


def _do(settings: Settings, spark: SparkSession, request: Request) -> None:
    if isinstance(request, QuarantineRequest):
        with engine_here(settings, spark) as engine:
            engine.amend(request)
    else:
        with engine_here(settings, spark, request) as engine:
            engine.swap()


@contextmanager
def engine_here(settings: Settings, spark: SparkSession, request: SwapRequest | None = None) -> Iterator[Engine]:
    """An engine in this process, where no other runs. Raises WarehouseLocked, and as a start does."""
    resume_capture(settings)
    with Engine(settings, spark, request=request) as engine:
        yield engine

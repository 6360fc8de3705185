"""Having something done by the running engine, or in its place where none runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from cdc_views.config import Settings
from cdc_views.engine.capture.start import resume_capture
from cdc_views.engine.epoch.swap import SwapRequest, find_swap
from cdc_views.engine.service.engine import Engine
from cdc_views.engine.service.lock import holder
from cdc_views.engine.service.requests import QuarantineRequest, Request, Requests
from cdc_views.errors import StoreError, WarehouseLocked
from cdc_views.store.control.control_log import ControlRecord, read_control
from cdc_views.store.storage.disk import touching

TRIES: Final = 3


def exchange(settings: Settings, spark: Callable[[], SparkSession], request: Request) -> ControlRecord:
    """Have the request done and return the record that says so. A session is asked for where no engine runs.

    Raises what the engine answers, or raises itself; WarehouseUnusable.
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
        # Whoever did it, and whether or not it lived to say so.
        done = find_swap(read_control(settings.warehouse), request.id)
        if done is not None:
            return done
    raise StoreError(f"the engine has ended {TRIES} times without an answer", hint="see what it has printed")


def _do(settings: Settings, spark: SparkSession, request: Request) -> None:
    if isinstance(request, QuarantineRequest):
        with in_place_of_the_engine(settings, spark) as engine:
            engine.amend(request)
    else:
        with in_place_of_the_engine(settings, spark, request) as engine:
            engine.swap()


@contextmanager
def in_place_of_the_engine(
    settings: Settings, spark: SparkSession, request: SwapRequest | None = None
) -> Iterator[Engine]:
    """An engine in this process, where none runs. Raises WarehouseLocked, and what a start raises."""
    resume_capture(settings)
    with Engine(settings, spark, request=request) as engine:
        yield engine

"""Recognises that an error only means that the JVM of Spark has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pyspark.sql import SparkSession

from cdc_views.engine.spark.gateway import GONE
from cdc_views.errors import CdcViewsError, DriverLost

_ENDED: Final = "the JVM of Spark ended while the engine was running"
_START_AGAIN: Final = "was it killed, or out of memory (engine.driver_memory sets its heap)? start the engine again"


@contextmanager
def naming_lost_driver(session: SparkSession) -> Iterator[None]:
    """Raise DriverLost in place of any error of the block that is due to the end of the session's JVM."""
    try:
        yield
    except CdcViewsError:
        raise
    except Exception as error:
        require_alive(session, error)
        raise


def require_alive(session: SparkSession, error: Exception) -> None:
    """Raise DriverLost from an error if the session's JVM has ended or its context was stopped."""
    if not is_alive(session):
        raise DriverLost(f"{_ENDED}: {type(error).__name__}", hint=_START_AGAIN) from error


def is_alive(session: SparkSession) -> bool:
    """Whether the session's JVM is running and its context was not stopped."""
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except (*GONE, AttributeError):  # a stopped context has no Java context
        return False

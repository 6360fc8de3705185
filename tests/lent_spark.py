"""Gives code that would start a Spark session the one of the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from pyspark.sql import SparkSession

from cdc_views.engine.spark import driver, session


@contextmanager
def lending(lent: SparkSession) -> Iterator[None]:
    """Within the block, code that starts a session gets this one instead, and does not stop it.

    For tests that run commands in their own process: a command with its own JVM takes 10 to 19 s of processor time.
    """
    stop_session = session.stop_session

    def stop(stopped: SparkSession) -> None:
        if stopped is not lent:
            stop_session(stopped)

    with ExitStack() as patches:
        for module in (session, driver):
            patches.enter_context(patch.multiple(module, start_session=lambda *_: lent, stop_session=stop))
        yield

"""A Spark for tests: one driver JVM on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from cdc_views.config import SHORT_LIVED, EngineSettings
from cdc_views.engine.spark.session import start_session
from cdc_views.stack.fetch import delta_jars


@contextmanager
def local_spark() -> Iterator[SparkSession]:
    """A session with Delta, stopped at the end; the one that runs in this process already is used and left.

    Starting one takes some 5 s, so a test suite gives all its harnesses the same.
    """
    running = SparkContext._active_spark_context
    if running is not None:
        yield SparkSession(running)
        return
    session = start_session(EngineSettings(driver_memory="1g", spark_conf=SHORT_LIVED), delta_jars())
    try:
        yield session
    finally:
        session.stop()

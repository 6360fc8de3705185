"""A Spark session that starts in the background and is replaced when its JVM ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.engine.spark.lost_driver import is_alive, naming_lost_driver, require_alive
from cdc_views.engine.spark.session import start_session, stop_session
from cdc_views.errors import CdcViewsError, DriverLost


class Driver:
    """The session of a process that outlives its JVMs: the next `session()` replaces a JVM that has ended.

    `then` is called with each new session before anything else uses it.
    """

    def __init__(self, settings: EngineSettings, jars: Sequence[Path], then: Callable[[SparkSession], None]) -> None:
        self._settings = settings
        self._jars = jars
        self._then = then
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "start of spark")
        self._started: Future[SparkSession] = self._thread.submit(self._start)

    def session(self) -> SparkSession:
        """The session, or a new one if its JVM was lost; waits for a start. Raises as `start_session` does."""
        with self._lock:
            started = self._started
            if started.done() and _is_lost(started):
                if started.exception() is None:
                    stop_session(started.result())
                self._started = self._thread.submit(self._start)
            started = self._started
        return started.result()

    @contextmanager
    def naming_lost(self) -> Iterator[None]:
        """Raise DriverLost in place of any error of the block that is due to the end of the session's JVM."""
        try:
            yield
        except Exception as error:
            started = self._started
            if started.done() and started.exception() is None and not isinstance(error, CdcViewsError):
                require_alive(started.result(), error)
            raise

    def close(self) -> None:
        """Stop the session; waits for one that is starting."""
        self._thread.shutdown()
        if self._started.exception() is None:
            stop_session(self._started.result())

    def _start(self) -> SparkSession:
        session = start_session(self._settings, self._jars)
        try:
            with naming_lost_driver(session):
                self._then(session)
        except BaseException:
            stop_session(session)
            raise
        return session


@contextmanager
def background_driver(
    settings: EngineSettings, jars: Sequence[Path], then: Callable[[SparkSession], None]
) -> Iterator[Driver]:
    """Start a session while the block runs, and stop it when the block ends. `then` is as in Driver."""
    driver = Driver(settings, jars, then)
    try:
        with driver.naming_lost():
            yield driver
    finally:
        driver.close()


def _is_lost(started: Future[SparkSession]) -> bool:
    error = started.exception()
    return isinstance(error, DriverLost) if error is not None else not is_alive(started.result())

"""The Spark session of the engine, in a driver JVM that this process starts.

The JVM reads its stdin and ends when Python is gone, however Python ended. It ignores SIGINT: Ctrl-C reaches only
Python, which stops the JVM in order.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.engine.spark.environment import changed_environment
from cdc_views.engine.spark.gateway import GONE, Jvm, start_jvm
from cdc_views.engine.spark.lost_driver import naming_lost_driver
from cdc_views.engine.spark.settings import configuration, java_command

_jvm: Jvm | None = None  # of this process; pyspark has one at a time


def start_session(settings: EngineSettings, jars: Sequence[Path]) -> SparkSession:
    """Start the driver's JVM and a session; `jars` are Delta's.

    Sets the time zone of this process to UTC. Raises DriverLost if the JVM is killed before the session is ready, and
    ServiceFailed, with the end of the JVM's output, if it cannot start.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
    values = configuration(settings, jars)
    with _own_spark(), _own_interrupt_handler():
        jvm = _running_jvm(values)
        try:
            # SparkConf asks the JVM that pyspark knows, if there is one.
            conf = SparkConf(loadDefaults=False).setAll(list(values.items()))
            context = SparkContext(conf=conf, gateway=jvm.gateway)
            session = SparkSession(context)
        except Exception as error:
            failure = jvm.failure(error)
            _forget_jvm()
            raise failure from error
    # This logger prints every error of a query on stderr, with the row values that the message quotes.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    # py4j would print tracebacks when the JVM ends. The code that uses the session gets an error anyway.
    logging.getLogger().addFilter(_is_not_of_py4j)
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    return session


@contextmanager
def session_for(settings: EngineSettings, jars: Sequence[Path]) -> Iterator[SparkSession]:
    """Start a session, and stop it when the block ends.

    Raises as `start_session` does, and DriverLost in place of an error of the block that is due to the end of the JVM.
    """
    session = start_session(settings, jars)
    try:
        with naming_lost_driver(session):
            yield session
    finally:
        stop_session(session)


def stop_session(session: SparkSession) -> None:
    """Stop a session, whether or not its JVM is still running. The JVM stays for the next session."""
    with suppress(*GONE), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "the JVM may have crashed"
        session.stop()


def _running_jvm(conf: Mapping[str, str]) -> Jvm:
    """The JVM that an earlier session has left, which pyspark would use anyway; else a new one."""
    global _jvm
    if _jvm is not None and not _jvm.is_answering():
        _forget_jvm()
    if _jvm is None:
        _jvm = start_jvm(java_command(), conf)
    return _jvm


def _forget_jvm() -> None:
    """End the JVM and make pyspark forget it, or pyspark would keep calling it."""
    global _jvm
    if _jvm is not None:
        _jvm.end()
    _jvm = None
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


@contextmanager
def _own_spark() -> Iterator[None]:
    # SPARK_HOME of the machine would start another Spark than the one that is installed with us.
    ours = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    foreign = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
    with changed_environment({**ours, **dict.fromkeys(foreign)}):
        yield


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    # SparkContext installs a handler that cancels all jobs, even one in the middle of a commit.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")

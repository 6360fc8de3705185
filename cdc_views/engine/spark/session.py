"""The Spark session of the engine: one driver JVM, set for tiny Delta commits.

The JVM reads its stdin and ends when Python is gone, however Python ended. It ignores SIGINT, so
that Ctrl-C reaches Python alone and Python closes it down.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.engine.spark.gateway import GONE, Jvm, start_jvm
from cdc_views.errors import CdcViewsError, DriverLost
from cdc_views.locations import cache_folder
from cdc_views.store.files.data_files import ROW_GROUP
from cdc_views.store.upkeep.compaction import FULL_ROWS

_jvm: Jvm | None = None  # of this process; pyspark has one at a time
_lent: SparkSession | None = None

_ENDED: Final = "the JVM of Spark has ended under the engine"
_START_AGAIN: Final = "was it killed, or short of memory? engine.driver_memory is its heap; start the engine again"

_LOG4J: Final = Path(__file__).with_name("log4j2.properties")

# Without these a commit of a few rows costs about twice as much.
_FIXED: Final = {
    "spark.app.name": "cdc_views",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    # As a LocalRelation rows are part of the plan, and every rule of the optimizer carries them along.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A lookup by key decodes a row group of each file that has one of the keys.
    "spark.hadoop.parquet.block.row.count.limit": str(ROW_GROUP),
    # What upkeep writes anew at once, when many of its rows are deleted.
    "spark.sql.files.maxRecordsPerFile": str(FULL_ROWS),
    "spark.scheduler.mode": "FAIR",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    "spark.databricks.delta.autoCompact.enabled": "false",
}

# The serial collector saves a fifth of the CPU of a small driver. The second compiler stays on: without
# it the first ten commits are faster and all later ones slower.
_JAVA_OPTIONS: Final = (
    "-Duser.timezone=UTC",
    f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
    "-XX:+UseSerialGC",
)


def start_session(settings: EngineSettings, jars: Sequence[Path]) -> SparkSession:
    """Start the driver's JVM and a session; `jars` are Delta's.

    Sets the time zone of this process to UTC. Raises DriverLost if the JVM is killed before the session is there, and
    ServiceFailed, with the end of the JVM's output, if it cannot start.
    """
    if _lent is not None:
        return _lent
    os.environ["TZ"] = "UTC"
    time.tzset()
    values = _configuration(settings, jars)
    with _own_spark(), _own_interrupt_handler():
        jvm = _running_jvm(values)
        try:
            # It asks the JVM that pyspark knows, if it knows one.
            conf = SparkConf(loadDefaults=False).setAll(list(values.items()))
            context = SparkContext(conf=conf, gateway=jvm.gateway)
            session = SparkSession(context)
        except Exception as error:
            failure = jvm.failure(error)
            _forget_jvm()
            raise failure from error
    # It prints every error of a query on stderr, with the values of rows that the message quotes.
    PySparkLogger.getLogger("SQLQueryContextLogger").disabled = True
    # They would print tracebacks when the JVM ends; whoever uses the session learns of that anyway.
    logging.getLogger().addFilter(_is_not_of_py4j)
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    return session


@contextmanager
def lending(session: SparkSession) -> Iterator[None]:
    """Within the block, code that starts a session gets this one instead, and does not stop it.

    For tests that run commands in their own process: a command with its own JVM takes 10 to 19 s of processor time.
    """
    global _lent
    before, _lent = _lent, session
    try:
        yield
    finally:
        _lent = before


@contextmanager
def session_for(settings: EngineSettings, jars: Sequence[Path]) -> Iterator[SparkSession]:
    """A session for the block, stopped when that ends.

    Raises what `start_session` raises, and DriverLost for whatever the block raises because the JVM has ended.
    """
    session = start_session(settings, jars)
    try:
        with naming_lost_driver(session):
            yield session
    finally:
        _stop(session)


class Driver:
    """The session of a process that outlives JVMs: one that has ended is replaced by the next `session()`.

    `then` is done with each new session before anybody gets it.
    """

    def __init__(self, settings: EngineSettings, jars: Sequence[Path], then: Callable[[SparkSession], None]) -> None:
        self._settings = settings
        self._jars = jars
        self._then = then
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, "start of spark")
        self._started: Future[SparkSession] = self._thread.submit(self._start)

    def session(self) -> SparkSession:
        """The session, waited for, or a new one if its JVM was lost. Raises what `start_session` raises."""
        with self._lock:
            started = self._started
            if started.done() and _is_lost(started):
                if started.exception() is None:
                    _stop(started.result())
                self._started = self._thread.submit(self._start)
            started = self._started
        return started.result()

    @contextmanager
    def naming_lost(self) -> Iterator[None]:
        """Around what uses the session: whatever is raised because its JVM has ended becomes DriverLost."""
        try:
            yield
        except Exception as error:
            started = self._started
            if started.done() and started.exception() is None and not isinstance(error, CdcViewsError):
                require_alive(started.result(), error)
            raise

    def close(self) -> None:
        """Stop the session; one that is being started is waited for."""
        self._thread.shutdown()
        if self._started.exception() is None:
            _stop(self._started.result())

    def _start(self) -> SparkSession:
        session = start_session(self._settings, self._jars)
        try:
            with naming_lost_driver(session):
                self._then(session)
        except BaseException:
            _stop(session)
            raise
        return session


@contextmanager
def driver_beside(
    settings: EngineSettings, jars: Sequence[Path], then: Callable[[SparkSession], None]
) -> Iterator[Driver]:
    """Start a session while the block does something else; stopped when the block ends. `then` as in Driver."""
    driver = Driver(settings, jars, then)
    try:
        with driver.naming_lost():
            yield driver
    finally:
        driver.close()


@contextmanager
def naming_lost_driver(session: SparkSession) -> Iterator[None]:
    """Turn whatever is raised because the session's JVM has ended into DriverLost."""
    try:
        yield
    except CdcViewsError:
        raise
    except Exception as error:
        require_alive(session, error)
        raise


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def require_alive(session: SparkSession, error: Exception) -> None:
    """Raise DriverLost from an error if it only says that the session's JVM has ended, or its context was stopped."""
    if not _is_alive(session):
        raise DriverLost(f"{_ENDED}: {type(error).__name__}", hint=_START_AGAIN) from error


def _is_alive(session: SparkSession) -> bool:
    try:
        return not session.sparkContext._jsc.sc().isStopped()
    except (*GONE, AttributeError):  # a context that was stopped has no Java context
        return False


def _is_lost(started: Future[SparkSession]) -> bool:
    error = started.exception()
    return isinstance(error, DriverLost) if error is not None else not _is_alive(started.result())


def _stop(session: SparkSession) -> None:
    if session is _lent:
        return
    with suppress(*GONE), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that the JVM may have crashed
        session.stop()


def _running_jvm(conf: Mapping[str, str]) -> Jvm:
    """The JVM that an earlier session has left, which pyspark would use anyway, or a new one."""
    global _jvm
    if _jvm is not None and not _jvm.is_answering():
        _forget_jvm()
    if _jvm is None:
        _jvm = start_jvm(_java(), conf)
    return _jvm


def _forget_jvm() -> None:
    """End the JVM, and have pyspark forget it: else it would go on asking that one."""
    global _jvm
    if _jvm is not None:
        _jvm.end()
    _jvm = None
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None


def class_archive(jars: Sequence[Path]) -> Path:
    """Where an archive of the classes of such a JVM lies, if somebody has made one (stack/class_archive.py)."""
    # A JVM takes no archive of another one, nor of jars that were written since.
    files = [Path(_java()).resolve(), Path(pyspark.__file__).parent / "jars", *jars]
    parts = [f"{file} {file.stat().st_mtime_ns}" for file in files if file.exists()]
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / f"{name}.jsa"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin/java") if home else shutil.which("java") or "java"


def driver_pid(spark: SparkSession) -> int:
    """The process id of the session's JVM."""
    return int(_java_of(spark).java.lang.ProcessHandle.current().pid())


def _java_of(spark: SparkSession) -> Any:
    return spark._jvm


def _configuration(settings: EngineSettings, jars: Sequence[Path]) -> dict[str, str]:
    further, archive = dict(settings.spark_conf), class_archive(jars)
    # Of another JVM it is not used; nothing is said of that on stdout, which is ours.
    shared = (f'"-XX:SharedArchiveFile={archive}"', "-Xlog:disable") if archive.exists() else ()
    conf = {
        **_FIXED,
        "spark.master": settings.spark_master,
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
        "spark.driver.extraJavaOptions": " ".join(
            [*_JAVA_OPTIONS, *shared, further.pop("spark.driver.extraJavaOptions", "")]
        ),
        "spark.sql.warehouse.dir": (Path(tempfile.gettempdir()) / "cdc-views-spark-warehouse").as_uri(),
    }
    if settings.spark_master.startswith("local"):
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        # A task that lacks memory would end the JVM, the driver's here; so only its job fails.
        conf["spark.executor.killOnFatalError.depth"] = "0"
    else:
        conf["spark.jars"] = ",".join(str(jar) for jar in jars)
    return conf | further


@contextmanager
def _own_spark() -> Iterator[None]:
    # A SPARK_HOME of the machine would start another Spark than the one that is installed with us.
    ours = {"SPARK_HOME": str(Path(pyspark.__file__).parent), "PYSPARK_PYTHON": sys.executable}
    foreign = ("SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET")
    before = {name: os.environ.get(name) for name in (*ours, *foreign)}
    os.environ.update(ours)
    for name in foreign:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    # SparkContext replaces the handler by one that cancels all jobs, also a commit half done.
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

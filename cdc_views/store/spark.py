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
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.errors import CdcViewsError, DriverLost, ServiceFailed
from cdc_views.locations import cache_folder
from cdc_views.store.compaction import FULL_ROWS
from cdc_views.store.data_files import ROW_GROUP

# How Python learns that the JVM at the other end is gone.
_GONE: Final = (Py4JError, OSError)

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

    Sets the time zone of this process to UTC. Raises ServiceFailed with the end of the JVM's output.
    """
    os.environ["TZ"] = "UTC"
    time.tzset()
    conf = SparkConf(loadDefaults=False).setAll(list(_configuration(settings, jars).items()))
    with tempfile.TemporaryFile() as output, _own_spark(), _own_interrupt_handler():
        try:
            # The JVM's stderr is kept apart: it opens with a warning about its own modules.
            # A session that was stopped leaves its JVM behind, and pyspark would use that one anyway.
            gateway = SparkContext._gateway or launch_gateway(conf, {"stderr": output})  # type: ignore[no-untyped-call]
            context = SparkContext(conf=conf, gateway=gateway)
        except Exception as error:
            raise ServiceFailed(f"the JVM of Spark did not start: {_end_of(output) or error}") from error
    # They would print tracebacks when the JVM ends; whoever uses the session learns of that anyway.
    logging.getLogger().addFilter(_is_not_of_py4j)
    context._accumulatorServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    return SparkSession(context)


@contextmanager
def session_beside(
    settings: EngineSettings, jars: Sequence[Path], then: Callable[[SparkSession], None]
) -> Iterator[Callable[[], SparkSession]]:
    """Start a session while the block does something else; what it is given waits for it. Stopped when the block ends.

    `then` is done with it at once, and waited for, too. Waiting raises what `start_session` raises. What the block
    raises because the session's JVM has ended becomes DriverLost.
    """

    def start() -> SparkSession:
        session = start_session(settings, jars)
        try:
            then(session)
        except BaseException:
            session.stop()
            raise
        return session

    with ThreadPoolExecutor(1, "start of spark") as thread:
        started = thread.submit(start)
        try:
            yield started.result
        except Exception as error:
            if started.exception() is None and not isinstance(error, CdcViewsError):
                require_alive(started.result(), error)
            raise
        finally:
            if started.exception() is None:
                with suppress(*_GONE):
                    started.result().stop()


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def require_alive(session: SparkSession, error: Exception) -> None:
    """Raise DriverLost from an error if it only says that the session's JVM has ended, or its context was stopped."""
    try:
        is_stopped = session.sparkContext._jsc.sc().isStopped()
    except _GONE:
        is_stopped = True
    if is_stopped:
        raise DriverLost(
            f"the JVM of Spark has ended under the engine: {type(error).__name__}",
            hint="was it killed, or short of memory? engine.driver_memory is its heap; start the engine again",
        ) from error


def class_archive(jars: Sequence[Path]) -> Path:
    """Where an archive of the classes of such a JVM lies, if somebody has made one (stack/class_archive.py)."""
    java = Path(os.environ["JAVA_HOME"]) / "bin/java" if "JAVA_HOME" in os.environ else shutil.which("java")
    # A JVM takes no archive of another one, nor of jars that were written since.
    files = [Path(java or "").resolve(), Path(pyspark.__file__).parent / "jars", *jars]
    parts = [f"{file} {file.stat().st_mtime_ns}" for file in files if file.exists()]
    name = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return cache_folder() / "classes" / f"{name}.jsa"


def driver_pid(spark: SparkSession) -> int:
    """The process id of the session's JVM."""
    return int(_jvm(spark).java.lang.ProcessHandle.current().pid())


def _jvm(spark: SparkSession) -> Any:
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


def _end_of(output: IO[bytes], size: int = 2000) -> str:
    output.seek(0, os.SEEK_END)
    output.seek(max(0, output.tell() - size))
    return output.read().decode(errors="replace").strip()

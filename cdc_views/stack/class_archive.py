"""Archive the classes that the JVMs of Spark, Kafka and Connect load, so that later ones start in about half the time.

Run `python -m cdc_views.stack.class_archive` once per machine. It takes about a minute, and 300 MB of the cache. An
archive is used only with the same JVM and the same jars (class data sharing, JEP 350).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.engine.spark.session import start_session
from cdc_views.engine.spark.settings import spark_archive
from cdc_views.stack.fetch import delta_jars
from cdc_views.stack.services import jvm
from cdc_views.stack.services.connect import Connect
from cdc_views.stack.services.kafka import Kafka
from cdc_views.stack.services.ports import choose_ports
from cdc_views.stack.services.service import Service
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

_EXIT_LIMIT_S: Final = 300.0


def make() -> None:
    """Make the archives that are missing."""
    jars = delta_jars()
    _make([spark_archive(jars)], lambda drafts, folder: _run_spark(drafts[0], folder, jars))
    _make([jvm.service_archive(main) for main in (Kafka.main, Connect.main)], _run_services)


def _make(files: Sequence[Path], run: Callable[[Sequence[Path], Path], None]) -> None:
    """Let programs run that write the archives when they end; they get a folder for their data."""
    if all(file.exists() for file in files):
        return
    classes = files[0].parent
    classes.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=classes) as folder:
        drafts = [Path(folder) / file.name for file in files]
        run(drafts, Path(folder))
        for draft, file in zip(drafts, files, strict=True):
            if draft.exists():  # not every JVM supports it
                draft.replace(file)


def _archiving(draft: Path) -> str:
    """The options of a JVM that archives its loaded classes when it exits."""
    # Without -Xlog:disable, the JVM prints every class that cannot be archived.
    return f'"-XX:ArchiveClassesAtExit={draft}" -Xlog:disable'


def _run_services(drafts: Sequence[Path], folder: Path) -> None:
    """Start and stop a broker and its worker."""
    ports = choose_ports(folder, {})
    kafka = _Kafka(folder, ports["kafka"], ports["controller"], short_lived=True)
    connect = _Connect(folder, ports["connect"], kafka.bootstrap_servers, short_lived=True)
    kafka.archive, connect.archive = drafts
    try:
        kafka.start()
        connect.start()
    finally:
        connect.stop()
        kafka.stop()


class _Archiving(Service):
    archive: Path

    def _environment(self) -> Mapping[str, str]:
        return {**super()._environment(), "JDK_JAVA_OPTIONS": _archiving(self.archive)}


class _Kafka(_Archiving, Kafka):
    pass


class _Connect(_Archiving, Connect):
    pass


def _run_spark(draft: Path, folder: Path, jars: Sequence[Path]) -> None:
    """Do what an engine does first."""
    session = start_session(EngineSettings(spark_conf={"spark.driver.extraJavaOptions": _archiving(draft)}), jars)
    _use(session, folder / "warehouse")
    _end(session)


def _use(session: SparkSession, root: Path) -> None:
    warehouse = Warehouse(root, session, allow_direct=False)
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    spec = TableSpec("t", "t", schema, ("id",))
    version = warehouse.create(spec)
    for attempt, ids in enumerate(([1, 2], [2, 3]), 1):
        rows = pa.table([ids, ["a", "b"]], schema=schema)
        version = warehouse.commit(spec, version, Changes(None, rows, all_new=attempt == 1), Stamp(1, attempt, "0/1"))
    warehouse.frame("t", version).createOrReplaceTempView("t")
    session.sql("SELECT text, count(*) FROM t JOIN t AS u USING (id, text) GROUP BY text ORDER BY text").toArrow()


def _end(session: SparkSession) -> None:
    """Stop the session and let its JVM exit by itself: it writes the archive when it exits."""
    gateway: Any = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_EXIT_LIMIT_S)


if __name__ == "__main__":
    make()

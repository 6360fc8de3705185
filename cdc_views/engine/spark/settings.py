"""The configuration of Spark's driver, tuned for small Delta commits."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyspark

from cdc_views.config import EngineSettings
from cdc_views.host.class_archive import class_archive
from cdc_views.store.files import PAGES_IN_ROW_GROUP, ROW_GROUP, ROW_GROUP_BYTES
from cdc_views.store.upkeep import FULL_ROWS

LOG4J: Final = Path(__file__).with_name("log4j2.properties")
POOLS: Final = Path(__file__).with_name("fair_scheduler.xml")

# Without these settings a commit of a few rows takes about twice as long.
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
    # Over TCP, each table of a small query waits 40 ms for the acknowledgement of a packet.
    "spark.python.unix.domain.socket.enabled": "true",
    # Its workers do not collect garbage among all imports after each task.
    "spark.python.daemon.module": "cdc_views.engine.spark.worker_daemon",
    # The rows of a LocalRelation are part of the plan, so every rule of the optimizer copies them.
    "spark.sql.execution.arrow.localRelationThreshold": "0",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A lookup by key decodes one page of each row group that has one of the keys, and later whole row groups.
    "spark.hadoop.parquet.page.row.count.limit": str(ROW_GROUP // PAGES_IN_ROW_GROUP),
    "spark.hadoop.parquet.block.row.count.limit": str(ROW_GROUP),
    "spark.hadoop.parquet.block.size": str(ROW_GROUP_BYTES),
    # Upkeep rewrites a file at once when many of its rows are deleted.
    "spark.sql.files.maxRecordsPerFile": str(FULL_ROWS),
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": POOLS.as_uri(),
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming."
    "checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    "spark.databricks.delta.merge.repartitionBeforeWrite.enabled": "false",
    "spark.databricks.delta.optimizeWrite.enabled": "false",
    "spark.databricks.delta.autoCompact.enabled": "false",
}

# The serial collector saves a fifth of a small driver's CPU time. The second compiler stays on: without it the first
# ten commits are faster and all later ones slower.
_JAVA_OPTIONS: Final = (
    "-Duser.timezone=UTC",
    f"-Dlog4j2.configurationFile={LOG4J.as_uri()}",
    "-XX:+UseSerialGC",
)


def configuration(settings: EngineSettings, jars: Sequence[Path]) -> dict[str, str]:
    """Spark's settings for a driver; `jars` are Delta's. `engine.spark_conf` overrides ours."""
    further, archive = dict(settings.spark_conf), spark_archive(jars)
    # A JVM that cannot use the archive ignores it, and must not report that on stdout, which is ours.
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
    if settings.is_local:
        conf |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        # A task that runs out of memory ends its JVM, which here is the driver's. With this setting only its job fails.
        conf["spark.executor.killOnFatalError.depth"] = "0"
    else:
        conf["spark.jars"] = ",".join(str(jar) for jar in jars)
    return conf | further


def spark_archive(jars: Sequence[Path]) -> Path:
    """The file for an archive of the classes of a driver with these jars of Delta."""
    return class_archive("spark", java_command(), [Path(pyspark.__file__).parent / "jars", *jars])


def java_command() -> str:
    """The `java` of JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin/java") if home else shutil.which("java") or "java"

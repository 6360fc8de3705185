"""Make an archive of the classes that Spark's JVM loads, so that the next one starts in about half of the time.

`python -m cdc_views.stack.class_archive`, once for a machine; takes about a minute and 200 MB of the cache. An
archive of another JVM or of other jars is not used (class data sharing, JEP 350).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession

from cdc_views.config import EngineSettings
from cdc_views.engine.spark.session import class_archive, start_session
from cdc_views.stack.fetch import delta_jars
from cdc_views.store.warehouse import Changes, Stamp, TableSpec, Warehouse

_EXIT_LIMIT_S: Final = 300.0


def make(jars: Sequence[Path]) -> None:
    """Run what an engine does at first, in a JVM that archives at its end what it has loaded."""
    file = class_archive(jars)
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        draft = Path(folder) / file.name
        # Of what cannot be archived it tells each class.
        options = {"spark.driver.extraJavaOptions": f'"-XX:ArchiveClassesAtExit={draft}" -Xlog:disable'}
        session = start_session(EngineSettings(spark_conf=options), jars)
        _use(session, Path(folder) / "warehouse")
        _end(session)
        if draft.exists():  # not every JVM can
            draft.replace(file)


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
    """Stop the JVM as well, in order: it writes the archive then."""
    gateway: Any = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_EXIT_LIMIT_S)


if __name__ == "__main__":
    make(delta_jars())

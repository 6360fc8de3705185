"""One Delta commit through Spark: append, MERGE or RESTORE, in a session of the table's own.

The transaction id and the metadata of a MERGE are settings of its session, so tables that are committed at the same
time must not share one. Spark silently skips what it treats as a replay, and may rebase over other writers, so the
commit is read back afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, Final

import delta.exceptions as delta_errors
import pyarrow as pa
from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_views.base.python_values import python_values
from cdc_views.store.commits.changes import Changes, RowData
from cdc_views.store.delta_log.entries import newest_version
from cdc_views.store.delta_log.history import History
from cdc_views.store.delta_log.schema import TableSpec, quoted
from cdc_views.store.delta_log.torn import sync_version
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.storage.disk import unusable_by_java

_DELETED: Final = "_cv_deleted"
_SESSION: Final = "spark.databricks.delta."
# Listed one by one: unlike the Java classes, the Python ones have no common base class.
_CONFLICTS: Final = (
    delta_errors.DeltaConcurrentModificationException,
    delta_errors.ConcurrentAppendException,
    delta_errors.ConcurrentDeleteDeleteException,
    delta_errors.ConcurrentDeleteReadException,
    delta_errors.ConcurrentTransactionException,
    delta_errors.ConcurrentWriteException,
    delta_errors.MetadataChangedException,
    delta_errors.ProtocolChangedException,
)


class Conflict(Exception):
    """Spark found a concurrent commit that conflicts with its own."""


class SparkCommits:
    """Commits through Spark, at most `most_at_once` at a time; for several threads, one per table."""

    def __init__(self, root: Path, spark: SparkSession, history: History, most_at_once: int) -> None:
        self._root = root
        self._spark = spark
        self._history = history
        self._turns = threading.BoundedSemaphore(most_at_once)
        self._sessions: dict[str, SparkSession] = {}
        self._lock = threading.Lock()

    def turn(self) -> threading.BoundedSemaphore:
        """To be entered around work that keeps Spark's cores busy."""
        return self._turns

    def commit(self, spec: TableSpec, app: str, base: int, changes: Changes, stamp: Stamp) -> int:
        """Make version `base` + 1 and return its number. Raises Fenced, ForeignCommit, DiskFull."""
        table, session = self._root / spec.path, self._session(spec.path)
        try:
            if changes.all_new and changes.deleted is None:
                _append(session, table, app, changes.rows, stamp)
            else:
                _merge(session, table, app, spec, changes, stamp)
        except Conflict as conflict:
            raise self._history.overtaken(spec.name, spec.path, stamp, base) from conflict
        return self._verified(spec.name, spec.path, base, stamp)

    def restore(self, path: str, version: int, base: int, stamp: Stamp) -> int:
        """Make the content of an older version that of version `base` + 1. Raises Fenced, ForeignCommit, DiskFull."""
        table, session = self._root / path, self._session(path)
        _set_stamp(session, path, stamp)
        try:
            with translated(table):
                session.sql(f"RESTORE TABLE delta.{quoted(str(table))} TO VERSION AS OF {version:d}").collect()
        except Conflict as conflict:
            raise self._history.overtaken(path, path, stamp, base) from conflict
        return self._verified(path, path, base, stamp)

    def _session(self, path: str) -> SparkSession:
        with self._lock:
            if path not in self._sessions:
                self._sessions[path] = self._spark.newSession()
            return self._sessions[path]

    def _verified(self, name: str, path: str, base: int, stamp: Stamp) -> int:
        """The number of the version that was made, once it is fsynced: Spark leaves that to the operating system."""
        table = self._root / path
        found = newest_version(table)
        stamped = self._history.stamp_of(path, found) if found > base else None
        if found == base + 1 and stamped == stamp:
            sync_version(table, found)
            return found
        raise self._history.overtaken(name, path, stamp, base)


def _append(session: SparkSession, table: Path, app: str, rows: RowData, stamp: Stamp) -> None:
    """Append rows none of whose keys is stored."""
    frame = rows if isinstance(rows, DataFrame) else frame_of(session, rows).coalesce(1)
    with translated(table):
        (
            frame.write.format("delta")
            .mode("append")
            .option("txnAppId", app)
            .option("txnVersion", str(stamp.attempt))
            .option("userMetadata", stamp.text())
            .save(str(table))
        )


def _merge(session: SparkSession, table: Path, app: str, spec: TableSpec, changes: Changes, stamp: Stamp) -> None:
    """Insert, update and delete by key, NULL equal to NULL."""
    source, deletes, upserts = _merge_source(session, spec, changes)
    local = not isinstance(changes.rows, DataFrame) and not isinstance(changes.deleted, DataFrame)
    _set_stamp(session, app, stamp)
    # Rows held by the driver are the same on every scan; Spark must materialize anything else first.
    session.conf.set(_SESSION + "merge.materializeSource", "none" if local else "auto")
    with translated(table):
        target = DeltaTable.forPath(session, str(table)).alias("target")
        builder = target.merge(source.alias("source"), key_match(spec.key, "target", "source"))
        is_deleted = F.col(f"source.{_DELETED}")
        if deletes:
            builder = builder.whenMatchedDelete(is_deleted)
        if upserts:
            names = [quoted(name) for name in spec.schema.names]
            values: dict[str, str | Column] = {name: F.col(f"source.{name}") for name in names}
            builder = builder.whenMatchedUpdate(~is_deleted, values).whenNotMatchedInsert(~is_deleted, values)
        builder.execute()


def _set_stamp(session: SparkSession, app: str, stamp: Stamp) -> None:
    """Make the next commit of this session carry the stamp."""
    session.conf.set(_SESSION + "write.txnAppId", app)
    session.conf.set(_SESSION + "write.txnVersion", str(stamp.attempt))
    session.conf.set(_SESSION + "commitInfo.userMetadata", stamp.text())


def key_match(key: Sequence[str], left: str, right: str) -> Column:
    """The condition that two rows have one key; true for the empty key."""
    pairs = (F.col(f"{left}.{quoted(name)}").eqNullSafe(F.col(f"{right}.{quoted(name)}")) for name in key)
    return reduce(lambda a, b: a & b, pairs, F.lit(True))


def frame_of(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Arrow rows as a DataFrame of this session, every column nullable."""
    nullable = pa.schema([field.with_nullable(True).remove_metadata() for field in rows.schema])
    if not rows.num_rows:
        # pyspark 4.2 fails on a column without chunks.
        rows = pa.table([pa.array([], field.type) for field in rows.schema], schema=rows.schema)
    return session.createDataFrame(rows.cast(nullable))


def _merge_source(session: SparkSession, spec: TableSpec, changes: Changes) -> tuple[DataFrame, bool, bool]:
    rows, deleted = changes.rows, changes.deleted
    if not isinstance(rows, DataFrame) and (deleted is None or not isinstance(deleted, DataFrame)):
        deleted = _without_keys_of(rows, deleted, spec.key)
        table = _flagged(rows, spec, False)
        if deleted is not None:
            table = pa.concat_tables([table, _flagged(deleted, spec, True)])
        deletes = deleted is not None and deleted.num_rows > 0
        return frame_of(session, table).coalesce(1), deletes, rows.num_rows > 0 or not deletes
    upserts = rows if isinstance(rows, DataFrame) else frame_of(session, rows)
    source = upserts.withColumn(_DELETED, F.lit(False))
    if deleted is not None:
        gone = deleted if isinstance(deleted, DataFrame) else frame_of(session, deleted)
        source = source.unionByName(gone.withColumn(_DELETED, F.lit(True)), allowMissingColumns=True)
    return source, deleted is not None, True


def _flagged(rows: pa.Table, spec: TableSpec, deleted: bool) -> pa.Table:
    fields = [field.with_nullable(True) for field in spec.schema]
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in fields
    ]
    flag = pa.array([deleted] * rows.num_rows, pa.bool_())
    return pa.table([*columns, flag], schema=pa.schema([*fields, pa.field(_DELETED, pa.bool_())]))


def _without_keys_of(rows: pa.Table, deleted: pa.Table | None, key: Sequence[str]) -> pa.Table | None:
    if deleted is None or not deleted.num_rows or not rows.num_rows:
        return deleted
    if not key:
        return None
    kept = set(_keys(rows, key))
    return deleted.filter(pa.array([found not in kept for found in _keys(deleted, key)], pa.bool_()))


def _keys(rows: pa.Table, key: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(map(_hashable, python_values(rows.column(name))) for name in key), strict=True)


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


@contextmanager
def translated(table: Path) -> Iterator[None]:
    """Translate errors of the JVM to Conflict, WarehouseUnusable and DiskFull; others pass unchanged."""
    try:
        with naming_disk_errors(table):
            yield
    except _CONFLICTS as error:
        raise Conflict(type(error).__name__) from error


@contextmanager
def naming_disk_errors(table: Path) -> Iterator[None]:
    """Translate file errors of the JVM to ours: those of the table's files and of files that Spark spills."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if (unusable := unusable_by_java(_with_causes(error), table)) is not None:
            raise unusable from error
        raise


def _with_causes(error: Exception) -> str:
    # Spark wraps the exception of a task several times; the stack trace of the outermost one names them all.
    return f"{error} {getattr(error, '_stackTrace', '')}"

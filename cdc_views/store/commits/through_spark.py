"""One Delta commit through Spark: append or MERGE, in a session of the table's own.

The transaction id and the metadata of a MERGE are settings of its session, so tables that are
committed at the same time must not share one. Spark skips silently what it takes for a replay and
may rebase over other writers; whoever calls this reads back what became of the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, Final, TypeAlias

import delta.exceptions as delta_errors
import pyarrow as pa
from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_views.store.delta_log.schema import TableSpec, quoted
from cdc_views.store.delta_log.state import Add
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.storage.disk import unusable_by_java

Rows: TypeAlias = pa.Table | DataFrame

_DELETED: Final = "_cv_deleted"
_SESSION: Final = "spark.databricks.delta."
# They have no base class of their own: the Python classes do not follow the Java ones.
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
    """Spark found another commit in the way of its own."""


@dataclass(frozen=True)
class Changes:
    """What one version changes.

    `deleted` has the key columns of rows that vanish; `rows` the new rows, all columns, one per key
    and none with a key of `deleted` (if there is one, an Arrow table's row wins). `all_new`: no key
    of `rows` is stored yet, so that they can be appended.
    """

    deleted: Rows | None
    rows: Rows
    all_new: bool = False


@dataclass(frozen=True)
class Written:
    """What was written of a change: `add` actions of data files with its rows, each key once, and the deleted keys."""

    added: list[Add]
    deleted: pa.Table


@dataclass(frozen=True)
class WrittenRows:
    """A change whose rows others write as data files of the table.

    `write` is given the table's folder; the files' content is on the disk when it returns, their names may not be.
    `all_new` as in Changes, and what is deleted was not stored either.
    """

    write: Callable[[TableSpec, Path], Written]
    all_new: bool


def append(session: SparkSession, table: Path, app: str, rows: Rows, stamp: Stamp) -> None:
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


def merge(session: SparkSession, table: Path, app: str, spec: TableSpec, changes: Changes, stamp: Stamp) -> None:
    """Insert, update and delete by key, NULL equal to NULL."""
    source, deletes, upserts = _merge_source(session, spec, changes)
    local = not isinstance(changes.rows, DataFrame) and not isinstance(changes.deleted, DataFrame)
    set_stamp(session, app, stamp)
    # Rows held by the driver are the same on every scan; anything else Spark must pin first.
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


def set_stamp(session: SparkSession, app: str, stamp: Stamp) -> None:
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
        # pyspark 4.2 cannot take a column of no chunks.
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
    return zip(*(map(_hashable, rows.column(name).to_pylist()) for name in key), strict=True)


def _hashable(value: Any) -> Any:
    return repr(value) if isinstance(value, list | dict) else value


@contextmanager
def translated(table: Path) -> Iterator[None]:
    """Turn what the JVM throws into Conflict, WarehouseUnusable and DiskFull; everything else passes as it is."""
    try:
        with naming_disk_errors(table):
            yield
    except _CONFLICTS as error:
        raise Conflict(type(error).__name__) from error


@contextmanager
def naming_disk_errors(table: Path) -> Iterator[None]:
    """Turn what the JVM throws where the system refuses a file, of the table or that Spark spills, into our errors."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if (unusable := unusable_by_java(_with_causes(error), table)) is not None:
            raise unusable from error
        raise


def _with_causes(error: Exception) -> str:
    # Spark wraps what a task threw several times over; the trace of the outermost names them all.
    return f"{error} {getattr(error, '_stackTrace', '')}"

"""The tables of the warehouse, written by one engine: every version of a table is one of ours.

A commit names the version it stands on and becomes exactly the next one. Spark promises neither, so
both are checked: the newest version before, and after it that the next version carries the attempt.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final
from uuid import uuid4

import orjson
import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_views import faults, metrics
from cdc_views.config import StoreSettings
from cdc_views.errors import Fenced
from cdc_views.metrics import Ways
from cdc_views.store.commits import direct, plain
from cdc_views.store.commits import through_spark as spark_commit
from cdc_views.store.commits.through_spark import (
    Changes,
    Conflict,
    Written,
    WrittenRows,
    frame_of,
    key_match,
    translated,
)
from cdc_views.store.delta_log import restoring, torn, versions
from cdc_views.store.delta_log.entries import (
    NO_TABLE,
    VersionTaken,
    entry_file,
    newest_version,
    put_entry,
    read_entry,
)
from cdc_views.store.delta_log.features import check_features
from cdc_views.store.delta_log.history import History, foreign
from cdc_views.store.delta_log.schema import TableSpec, delta_schema, key_schema, quoted
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.index.driver_table import DriverTable, Indexes
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.fingerprints import Fingerprints, fingerprints, joined
from cdc_views.store.index.lookups import Lookups
from cdc_views.store.index.order_words import Between
from cdc_views.store.index.stored_keys import Positions, all_rows, by_reading, read_keys
from cdc_views.store.reading import read_table
from cdc_views.store.storage import durable

__all__ = ["Changes", "Stamp", "TableSpec", "Warehouse", "WrittenRows"]

_DEFAULTS: Final = StoreSettings()
_ROWS: Final = ".rows"


@dataclass(frozen=True)
class _Vanishing:
    """Stored rows that a change replaces or deletes, and how they were found; keys of its new rows, if known."""

    positions: Positions
    way: str
    new_keys: Fingerprints | None = None


class Warehouse:
    """The Delta tables below `root`; methods may be called from several threads, one per table."""

    def __init__(
        self,
        root: Path,
        spark: SparkSession,
        settings: StoreSettings = _DEFAULTS,
        *,
        allow_direct: bool = True,
        is_writer: bool = True,
        commits_by_spark: int = 2,
    ) -> None:
        """`allow_direct=False` leaves all to Spark that is not written already, `commits_by_spark` at the same time.

        `is_writer=False` is for a process that makes tables nobody else has yet: its commits have a transaction of
        their own each, so that none is taken for a replay of what the engine has done there or will do.
        """
        self._root = root
        self._spark = spark
        self._settings = settings
        self._allow_direct = allow_direct
        self._turns_at_spark = threading.BoundedSemaphore(commits_by_spark)
        self._is_writer = is_writer
        self._indexes = Indexes(settings.index_memory_mb << 20)
        row_groups = RowGroups(root / _ROWS, settings.row_disk_mb << 20)
        self._lookups = Lookups(settings, row_groups, self._driver_table)
        self._tables: dict[str, DriverTable] = {}
        self._sessions: dict[str, SparkSession] = {}
        self._lock = threading.Lock()
        self.history = History(root)
        self.ways = Ways()
        if not settings.fsync:
            durable.turn_off()

    def create(self, spec: TableSpec) -> int:
        """Make the table if it is absent, and return its newest version.

        Raises UnsupportedType, WrongFeatures, and ForeignCommit if what is there is not of our making.
        """
        schema = delta_schema(spec)
        table = self._root / spec.path
        if newest_version(table) == NO_TABLE:
            # Taken in between: what is there is checked below like any other table.
            with suppress(VersionTaken):
                put_entry(table, 0, versions.creation(spec))
        # What a loss of power has torn above it is removed once this is the writer.
        whole = torn.newest_whole_version(table)
        check_features(table, spec.name, spec.layout, whole)
        self._check_schema(spec, schema, whole)
        unknown = self.history.unknown_commits(spec.path, 0, to=whole)
        if unknown:
            raise foreign(spec.name, f"found version {unknown[0].version} of another writer, wanted only our own")
        return newest_version(table)

    def latest_version(self, path: str) -> int:
        """The newest version of a table; -1 if there is none."""
        return newest_version(self._root / path)

    def commit(self, spec: TableSpec, base: int, changes: Changes | WrittenRows, stamp: Stamp) -> int:
        """Make version `base` + 1 of the table from version `base`, and return its number.

        The attempt must be above that of every earlier version, fences included, since Spark skips
        what is not. Raises ForeignCommit, Fenced, DiskFull.
        """
        version: int | None
        if isinstance(changes, WrittenRows):
            version = self._commit_written(spec, base, changes, stamp)
        elif (version := self._commit_directly(spec, base, changes, stamp)) is None:
            with self._turns_at_spark:
                version = self._commit_by_spark(spec, base, changes, stamp)
        metrics.count(rows_written=versions.rows_written(read_entry(self._root / spec.path, version)))
        return version

    def _commit_written(self, spec: TableSpec, base: int, rows: WrittenRows, stamp: Stamp) -> int:
        self.history.require_found(spec.name, spec.path, self.latest_version(spec.path), base, stamp)
        with self._turns_at_spark:
            written = rows.write(spec, self._root / spec.path)
        faults.point("bulk.after_files")
        self.ways.took("commit", spec.name, "bulk")
        table, app = self._driver_table(spec.path), self._app(spec)
        with table.lock:
            # The writing took long enough for another engine to take over.
            if not table.catch_up() or table.state.version != base:
                raise self.history.overtaken(spec.name, spec.path, stamp, base)
            is_usual = direct.is_possible(spec, table.state)
            if not rows.all_new and not is_usual:
                raise foreign(spec.name, "found files or features that are not ours, wanted a table of our own")
            gone = {} if rows.all_new else self._stored(spec, table, written)
            with self._putting(spec, table, app, base, stamp):
                _way(spec).commit_files(table.folder, app, spec, table.state, gone, written.added, stamp)
            if self._allow_direct and is_usual:
                table.build_index(key_schema(spec))  # while Spark writes the next table
            return table.state.version

    def _stored(self, spec: TableSpec, table: DriverTable, written: Written) -> Positions:
        """The stored rows that written files replace, or whose keys are deleted."""
        columns = key_schema(spec)
        files = [read_keys(table.folder, add["path"], columns) for add in written.added]
        keys = joined([*files, fingerprints(_typed(written.deleted, columns))])
        positions = table.find(columns, keys)
        return by_reading(table.folder, table.state, columns, keys) if positions is None else positions

    def _commit_by_spark(self, spec: TableSpec, base: int, changes: Changes, stamp: Stamp) -> int:
        self.history.require_found(spec.name, spec.path, self.latest_version(spec.path), base, stamp)
        self.ways.took("commit", spec.name, "spark")
        table, session = self._root / spec.path, self._session(spec.path)
        try:
            if changes.all_new and changes.deleted is None:
                spark_commit.append(session, table, self._app(spec), changes.rows, stamp)
            else:
                spark_commit.merge(session, table, self._app(spec), spec, changes, stamp)
        except Conflict as conflict:
            raise self.history.overtaken(spec.name, spec.path, stamp, base) from conflict
        return self._verified(spec.name, spec.path, base, stamp)

    def _commit_directly(self, spec: TableSpec, base: int, changes: Changes, stamp: Stamp) -> int | None:
        """Commit without Spark; None if the change is too large for that, or the table not one that we can write to."""
        rows, deleted = changes.rows, changes.deleted
        if not self._allow_direct or isinstance(rows, DataFrame) or isinstance(deleted, DataFrame):
            return None
        if rows.num_rows + (deleted.num_rows if deleted is not None else 0) > self._settings.direct_rows:
            return None
        table = self._driver_table(spec.path)
        with table.lock:
            if not table.catch_up() or not direct.is_possible(spec, table.state):
                return None
            self.history.require_found(spec.name, spec.path, table.state.version, base, stamp)
            rows, app = rows.select(spec.schema.names).cast(spec.schema), self._app(spec)
            vanishing = self._vanishing(spec, table, rows, deleted, changes.all_new)
            if vanishing is None:
                return None
            with self._putting(spec, table, app, base, stamp):
                file = _way(spec).commit(table.folder, app, spec, table.state, vanishing.positions, rows, stamp)
            if file is not None and vanishing.new_keys is not None:
                table.know_file(file, key_schema(spec), vanishing.new_keys)
            self.ways.took("commit", spec.name, vanishing.way)
            return table.state.version

    @contextmanager
    def _putting(self, spec: TableSpec, table: DriverTable, app: str, base: int, stamp: Stamp) -> Iterator[None]:
        """Around a commit: an attempt used before, or a version that is taken, becomes the error that says so."""
        if table.state.transactions.get(app, -1) >= stamp.attempt:
            raise self.history.overtaken(spec.name, spec.path, stamp, base)
        try:
            yield
        except VersionTaken as taken:
            raise self.history.overtaken(spec.name, spec.path, stamp, base) from taken

    def _vanishing(
        self, spec: TableSpec, table: DriverTable, rows: pa.Table, deleted: pa.Table | None, all_new: bool
    ) -> _Vanishing | None:
        """The stored rows that a change replaces or deletes; None if only Spark can find them."""
        if all_new and deleted is None:
            return _Vanishing({}, "direct")
        if not spec.key:
            is_change = rows.num_rows or (deleted is not None and deleted.num_rows)
            return _Vanishing(all_rows(table.folder, table.state) if is_change else {}, "direct")
        columns = key_schema(spec)
        new_keys = fingerprints(rows.select(columns.names))
        keys = new_keys if deleted is None else joined([new_keys, fingerprints(_typed(deleted, columns))])
        if not len(keys.high):
            return _Vanishing({}, "direct")
        positions = table.find(columns, keys)
        if positions is not None:
            return _Vanishing(positions, "direct", new_keys)
        if (table.state.stored_rows or 0) > self._settings.scanned_rows:
            return None
        return _Vanishing(by_reading(table.folder, table.state, columns, keys), "direct-scan")

    def fence(self, path: str, stamp: Stamp, above: int | None = None) -> int:
        """Put an empty version that carries the attempt, and return its number.

        A commit through Spark that began before it then finds a concurrent transaction; one that
        begins after it, with the same or a lower attempt, is skipped by Spark and reported here.
        `above` is a version that was there before the attempt was given out: what has come since is of an older
        engine, which this shuts out, or of a later one. Raises Fenced if there is a later one, or if another writer
        puts versions at the same time.
        """
        table = self._root / path
        for _ in range(20):
            version = newest_version(table) + 1
            if above is not None:
                self.history.refuse_later_attempts(path, above, version, stamp)
            try:
                put_entry(table, version, versions.fence(path, version - 1, stamp))
                return version
            except VersionTaken:
                continue
        raise Fenced(f'table "{path}": version {version} was taken at every try', hint="another engine is writing")

    def restore(self, path: str, version: int, stamp: Stamp, base: int | None = None) -> int:
        """Make the content of an older version the newest one; returns the new version.

        The newest one must be `base`, if that is given. Raises Fenced, ForeignCommit, DiskFull.
        """
        found = self.latest_version(path)
        base = found if base is None else base
        self.history.require_found(path, path, found, base, stamp)
        if version == base:
            return self.fence(path, stamp, base)
        restored = self._restore_directly(path, version, stamp, base)
        return self._restore_by_spark(path, version, stamp, base) if restored is None else restored

    def _restore_directly(self, path: str, version: int, stamp: Stamp, base: int) -> int | None:
        """Restore without Spark; None if the log no longer says what the version had."""
        table = self._driver_table(path)
        with table.lock:
            wanted = restoring.state_to_restore(table.folder, version, base)
            if wanted is None or not table.catch_up():
                return None
            self.history.require_found(path, path, table.state.version, base, stamp)
            try:
                restoring.restore(table.folder, table.state, wanted, stamp)
            except VersionTaken as taken:
                raise self.history.overtaken(path, path, stamp, base) from taken
            return table.state.version

    def _restore_by_spark(self, path: str, version: int, stamp: Stamp, base: int) -> int:
        table, session = self._root / path, self._session(path)
        spark_commit.set_stamp(session, path, stamp)
        try:
            with translated(table):
                session.sql(f"RESTORE TABLE delta.{quoted(str(table))} TO VERSION AS OF {version:d}").collect()
        except Conflict as conflict:
            raise self.history.overtaken(path, path, stamp, base) from conflict
        return self._verified(path, path, base, stamp)

    def remove_torn_entries(self, path: str, published: int) -> None:
        """After a loss of power: remove the newest versions above a published one that cannot be read at all."""
        torn.remove_torn_entries(self._root / path, published)

    def is_whole(self, path: str, above: int) -> bool:
        """Whether everything that the versions above a given one have written is there."""
        table = self._root / path
        versions_above = (commit.version for commit in self.history.commits_above(path, above))
        return all(torn.is_whole(table, read_entry(table, version)) for version in versions_above)

    def frame(self, path: str, version: int, session: SparkSession | None = None) -> DataFrame:
        """A version of a table for the SQL of a session; of the engine's own if none is given.

        Spark computes the state of every new version of a Delta table by jobs of its own, for seconds. A small
        table is read by delta-rs instead and handed to Spark as Arrow (docs/decisions/2026-11-21-short-paths.md).
        """
        session = session or self._spark
        if self.is_small(path):
            rows = read_table(self._root, path, version)
            frame = frame_of(session, rows)
            return frame.coalesce(1) if rows.num_rows <= self.task_rows else frame
        return session.read.format("delta").option("versionAsOf", version).load(str(self._root / path))

    def rows(self, spec: TableSpec, version: int, columns: Sequence[str] | None = None) -> pa.Table:
        """A version of a small table, or some columns of it, read by delta-rs."""
        schema = pa.schema([spec.schema.field(name) for name in columns or spec.schema.names])
        return read_table(self._root, spec.path, version, columns).cast(schema)

    def rows_schema(self, path: str, version: int) -> pa.Schema:
        """The columns of a version of a table, as its spec has them."""
        return pa.schema(DeltaTable(str(self._root / path), version=version).schema().to_arrow())

    def is_empty(self, path: str) -> bool:
        """Whether the newest version has no file."""
        return not DeltaTable(str(self._root / path)).file_uris()

    def is_small(self, path: str) -> bool:
        """Whether the driver may hold the table."""
        if not self._allow_direct:
            return False
        table = self._driver_table(path)
        with table.lock:  # views of one level may read the same table
            if not table.catch_up() or table.state.stored_rows is None:
                return False
            return table.state.stored_rows <= self.driver_rows and table.state.stored_bytes <= self.driver_bytes

    @property
    def driver_rows(self) -> int:
        """Rows of a table, or of a view's result, that the driver may hold."""
        return self._settings.driver_rows

    @property
    def driver_bytes(self) -> int:
        """The same in bytes: of a table those of its files, of a result those of its values."""
        return self._settings.driver_mb << 20

    @property
    def task_rows(self) -> int:
        """What one task of Spark computes sooner than two that must exchange rows."""
        return self._settings.task_rows

    def lookup(self, spec: TableSpec, version: int, keys: pa.Table, wanted: Sequence[str] | None = None) -> pa.Table:
        """The rows of a version whose columns equal those of one of `keys`, column by column; NULL finds NULL.

        The columns of `keys` need not be the key of the table: a lookup by others finds any number of rows each.
        Returns these columns and `wanted`, or all, in the order of the table.
        """
        schema = _looked_up(spec, keys.column_names, wanted)
        found = self._lookups.equal(spec, version, keys, schema) if self._allow_direct else None
        self.ways.took("lookup", spec.name, "spark" if found is None else "index")
        return self._look_up_by_spark(spec, version, keys, schema) if found is None else found

    def lookup_between(
        self, spec: TableSpec, version: int, column: str, limits: Between, wanted: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows of a version whose value of a column is within the limits, as Spark orders values.

        Returns this column and `wanted`, or all, in the order of the table.
        """
        schema = _looked_up(spec, [column], wanted)
        found = self._lookups.between(spec, version, column, limits, schema) if self._allow_direct else None
        self.ways.took("lookup", spec.name, "spark" if found is None else "index")
        return self._look_up_between_by_spark(spec, version, column, limits, schema) if found is None else found

    def _look_up_between_by_spark(
        self, spec: TableSpec, version: int, column: str, limits: Between, schema: pa.Schema
    ) -> pa.Table:
        rows, value = self.frame(spec.path, version).select(*map(quoted, schema.names)), F.col(quoted(column))
        for limit, is_within in ((limits.lower, value.__ge__), (limits.upper, value.__le__)):
            rows = rows if limit is None else rows.where(is_within(F.lit(limit)))
        return rows.where(value.isNotNull()).toArrow().cast(schema)

    def _look_up_by_spark(self, spec: TableSpec, version: int, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        wanted = F.broadcast(frame_of(self._spark, keys)).alias("wanted")
        stored = self.frame(spec.path, version).select(*map(quoted, schema.names)).alias("stored")
        found = stored.join(wanted, key_match(keys.column_names, "stored", "wanted"), "left_semi").toArrow()
        return found.cast(schema)

    def _app(self, spec: TableSpec) -> str:
        return spec.path if self._is_writer else f"{spec.path}/{uuid4()}"

    def _session(self, path: str) -> SparkSession:
        with self._lock:
            if path not in self._sessions:
                self._sessions[path] = self._spark.newSession()
            return self._sessions[path]

    def _driver_table(self, path: str) -> DriverTable:
        with self._lock:
            if path not in self._tables:
                self._tables[path] = DriverTable(self._root / path, self._indexes)
            return self._tables[path]

    def _verified(self, name: str, path: str, base: int, stamp: Stamp) -> int:
        found = self.latest_version(path)
        stamped = self.history.stamp_of(path, found) if found > base else None
        if found == base + 1 and stamped == stamp:
            self._make_durable(path, found)
            return found
        raise self.history.overtaken(name, path, stamp, base)

    def _make_durable(self, path: str, version: int) -> None:
        """Bring to the disk what Spark has written: it leaves that to the operating system."""
        table = self._root / path
        durable.sync_version(table, entry_file(table, version), read_entry(table, version))

    def _check_schema(self, spec: TableSpec, wanted: str, version: int) -> None:
        metadata = DeltaTable(str(self._root / spec.path), version=version).schema().to_json()
        if _fields(metadata) != _fields(wanted):
            raise foreign(spec.name, "found other columns than the wanted ones")


def _looked_up(spec: TableSpec, by: Sequence[str], wanted: Sequence[str] | None) -> pa.Schema:
    """The columns that a lookup `by` some of them returns: these and the wanted ones, or all."""
    names = spec.schema.names if wanted is None else {*by, *wanted}
    return pa.schema([field for field in spec.schema if field.name in names])


def _way(spec: TableSpec) -> ModuleType:
    """How versions of the table say which rows are gone."""
    return plain if spec.layout == "plain" else direct


def _typed(keys: pa.Table, columns: pa.Schema) -> pa.Table:
    return keys.select(columns.names).cast(columns)


def _fields(schema: str) -> list[object]:
    # Case and order count; field metadata does not.
    return [(field["name"], field["type"], field["nullable"]) for field in orjson.loads(schema)["fields"]]

"""The tables of the warehouse, written by one engine: every version of a table is one of ours.

The parts that do the work are in the sub-packages: creation, fences and origin of versions in delta_log, the paths of
a commit in commits, the index for lookups in index. Here they share one set of settings and one state of each table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Final, Self

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc_views import metrics
from cdc_views.config import StoreSettings
from cdc_views.errors import TableUnavailable
from cdc_views.metrics import Ways
from cdc_views.store.commits.changes import Changes, WrittenRows
from cdc_views.store.commits.table_commits import TableCommits
from cdc_views.store.commits.through_spark import SparkCommits, frame_of, key_match
from cdc_views.store.delta_log import torn
from cdc_views.store.delta_log.entries import newest_version, read_entry
from cdc_views.store.delta_log.history import History
from cdc_views.store.delta_log.operations.creation import create_table
from cdc_views.store.delta_log.operations.fencing import fence_table
from cdc_views.store.delta_log.schema import TableSpec, quoted
from cdc_views.store.delta_log.versions import Stamp
from cdc_views.store.index.changed_rows import ChangedRows, RowsChanged
from cdc_views.store.index.driver_table import DriverTables, Indexes
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.known_file import Counts
from cdc_views.store.index.lookups import Lookups
from cdc_views.store.reading import ValueSearch, read_table, scan
from cdc_views.store.storage import durable

__all__ = ["Changes", "Counts", "RowsChanged", "Stamp", "TableSpec", "Warehouse", "WrittenRows"]

_DEFAULTS: Final = StoreSettings()
_ROWS: Final = ".rows"


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
        """With `allow_direct=False` Spark does all work whose files are not written yet.

        At most `commits_by_spark` commits use Spark at the same time. `is_writer=False` is for a process that makes
        tables nobody else has yet: each of its commits has a transaction id of its own, so that none is treated as a
        replay of an earlier or later commit of the engine.
        """
        self._root = root
        self._spark = spark
        self._settings = settings
        self._allow_direct = allow_direct
        self.history = History(root)
        self.ways = Ways()
        indexes = Indexes(settings.index_memory_mb << 20, folder=root / _ROWS, disk_bytes=settings.index_disk_mb << 20)
        self.tables = DriverTables(root, indexes)
        row_groups = RowGroups(root / _ROWS, settings.row_disk_mb << 20)
        self._lookups = Lookups(settings, row_groups, self.tables.table)
        self._changed_rows = ChangedRows(settings, row_groups, self.tables.table)
        self._values = ValueSearch(row_groups)
        self._commits = self._commits_of(commits_by_spark, is_writer=is_writer)
        if not settings.fsync:
            durable.turn_off()

    def beside(self) -> Self:
        """The same tables, for work beside the epochs: its commits are no attempts, and its ways are counted apart."""
        other = copy(self)
        other.ways = Ways()
        other._commits = other._commits_of(1, is_writer=False)
        return other

    def _commits_of(self, by_spark_at_once: int, *, is_writer: bool) -> TableCommits:
        return TableCommits(
            self._root,
            self._settings,
            self.tables,
            self.history,
            SparkCommits(self._root, self._spark, self.history, by_spark_at_once),
            self.ways,
            allow_direct=self._allow_direct,
            is_writer=is_writer,
        )

    def create(self, spec: TableSpec) -> int:
        """Create the table if it is absent, and return its newest version.

        Raises UnsupportedType, WrongFeatures, and ForeignCommit if a table is there that is not ours.
        """
        return create_table(self._root, spec, self.history)

    def latest_version(self, path: str) -> int:
        """The newest version of a table; -1 if there is none."""
        return newest_version(self._root / path)

    def commit(self, spec: TableSpec, base: int, changes: Changes | WrittenRows, stamp: Stamp) -> int:
        """Make version `base` + 1 of the table from version `base`, and return its number.

        The attempt must be above that of every earlier version, fences included. Raises ForeignCommit, Fenced,
        DiskFull.
        """
        return self._commits.commit(spec, base, changes, stamp)

    def fence(self, path: str, stamp: Stamp, above: int | None = None) -> int:
        """Put an empty version that carries the attempt, and return its number. Raises Fenced.

        `above` is a version that existed before the attempt was given out.
        """
        return fence_table(self._root, path, stamp, self.history, above)

    def restore(self, path: str, version: int, stamp: Stamp, base: int | None = None) -> int:
        """Make the content of an older version the newest one; returns the new version.

        The newest one must be `base`, if that is given. Raises Fenced, ForeignCommit, DiskFull.
        """
        found = self.latest_version(path)
        base = found if base is None else base
        self.history.require_found(path, path, found, base, stamp)
        if version == base:
            return self.fence(path, stamp, base)
        return self._commits.restore(path, version, stamp, base)

    def remove_torn_entries(self, path: str, published: int) -> None:
        """After a loss of power: remove the newest versions above a published one that cannot be read at all."""
        torn.remove_torn_entries(self._root / path, published)

    def has_all_files(self, path: str, above: int) -> bool:
        """Whether all files that the versions above a given one have written are there."""
        table = self._root / path
        versions_above = (commit.version for commit in self.history.commits_above(path, above))
        return all(torn.has_all_files(table, read_entry(table, version)) for version in versions_above)

    def is_whole(self, path: str, version: int) -> bool:
        """Whether this is the newest version of a table, its log can be read, and all of its files are there."""
        table = self.tables.table(path)
        try:
            with table.lock:
                if self.latest_version(path) != version or not table.catch_up() or table.state.version != version:
                    return False
                return torn.has_all_files(table.folder, [{"add": add} for add in table.state.files.values()])
        except (ValueError, TableUnavailable):  # an entry is damaged, or gone
            return False

    def frame(self, path: str, version: int, session: SparkSession | None = None) -> DataFrame:
        """A version of a table for the SQL of a session; of the engine's own if none is given.

        Spark computes the state of every new version of a Delta table by jobs of its own, which takes seconds. A small
        table is read by delta-rs instead and handed to Spark as Arrow (docs/decisions/2026-11-21-short-paths.md).
        """
        session = session or self._spark
        if self.is_small(path):
            rows = read_table(self._root, path, version)
            frame = frame_of(session, rows)
            return frame.coalesce(1) if rows.num_rows <= self.task_rows else frame
        metrics.count(rows_found=self.row_count(path) or 0)
        return session.read.format("delta").option("versionAsOf", version).load(str(self._root / path))

    def rows(self, spec: TableSpec, version: int, columns: Sequence[str] | None = None) -> pa.Table:
        """A version of a small table, or some columns of it, read by delta-rs."""
        schema = pa.schema([spec.schema.field(name) for name in columns or spec.schema.names])
        return read_table(self._root, spec.path, version, columns).cast(schema)

    def batches(self, spec: TableSpec, version: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Some columns of a version of a table, however large, read by delta-rs piece by piece."""
        for batch in pa.RecordBatchReader.from_stream(scan(self._root, spec.path, version, columns)):
            metrics.count(rows_found=batch.num_rows, rows_read=batch.num_rows)
            yield batch

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
        table = self.tables.table(path)
        with table.lock:  # views of one level may read the same table
            if not table.catch_up() or table.state.stored_rows is None:
                return False
            return table.state.stored_rows <= self.driver_rows and table.state.stored_bytes <= self.driver_bytes

    def row_count(self, path: str) -> int | None:
        """The rows in all files of the newest version, deleted ones included; None if the log does not say."""
        table = self.tables.table(path)
        with table.lock:
            return table.state.stored_rows if table.catch_up() else None

    @property
    def allows_direct(self) -> bool:
        """Whether the driver may read and write tables itself."""
        return self._allow_direct

    @property
    def lookup_keys(self) -> int:
        """How many keys `find` looks up at once."""
        return self._settings.lookup_keys

    @property
    def driver_rows(self) -> int:
        """The most rows of a table, or of a view's result, that the driver may hold."""
        return self._settings.driver_rows

    @property
    def driver_bytes(self) -> int:
        """The same in bytes: of a table's files, or of a result's values."""
        return self._settings.driver_mb << 20

    @property
    def query_bytes(self) -> int:
        """The most bytes that the stored queries of a view may take in memory."""
        return self._settings.query_memory_mb << 20

    @property
    def task_rows(self) -> int:
        """Up to this many rows one Spark task is faster than two that must exchange rows."""
        return self._settings.task_rows

    def lookup(self, spec: TableSpec, version: int, keys: pa.Table, wanted: Sequence[str] | None = None) -> pa.Table:
        """The rows of a version whose columns equal those of one of `keys`, column by column; NULL finds NULL.

        The columns of `keys` need not be the key of the table: a lookup by others finds any number of rows each.
        Returns these columns and `wanted`, or all, in the order of the table.
        """
        found = self.find(spec, version, keys, wanted)
        if found is not None:
            return found
        self.ways.took("lookup", spec.name, "spark")
        return self._look_up_by_spark(spec, version, keys, _looked_up(spec, keys, wanted))

    def find(
        self, spec: TableSpec, version: int, keys: pa.Table, wanted: Sequence[str] | None = None
    ) -> pa.Table | None:
        """Like `lookup`, but None if the index has no room, or for more keys or rows than the driver looks up."""
        schema = _looked_up(spec, keys, wanted)
        if not keys.num_rows:
            return schema.empty_table()
        found = self._lookups.equal(spec, version, keys, schema) if self._allow_direct else None
        if found is not None:
            self.ways.took("lookup", spec.name, "index")
            metrics.count(keys_looked_up=keys.num_rows, rows_found=found.num_rows)
        return found

    def first_rows(
        self, spec: TableSpec, version: int, column: str, most: int, wanted: Sequence[str], *, is_largest: bool
    ) -> pa.Table | None:
        """The `most` rows of a version with the largest values of a column, or the smallest, in no order.

        No other row has a larger one. NULL is no value: fewer rows are all that have one. Returns this column and
        `wanted`, in the order of the table; None if too many rows would have to be read.
        """
        if not self._allow_direct:
            return None
        schema = _chosen(spec, [column, *wanted])
        found = self._lookups.first(spec, version, column, most, schema, is_largest=is_largest)
        if found is not None:
            metrics.count(rows_found=found.num_rows)
        return found

    def counts(self, spec: TableSpec, version: int, keys: pa.Table) -> Counts | None:
        """How many rows of a version each of `keys` has; NULL finds NULL. None where `find` would look up nothing.

        It is for more keys than `find` looks up, whose rows are not needed.
        """
        found = self._lookups.counts(spec, version, keys) if self._allow_direct else None
        if found is not None:
            self.ways.took("lookup", spec.name, "index")
            metrics.count(keys_looked_up=keys.num_rows)
        return found

    def changed_rows(self, spec: TableSpec, base: int, version: int, columns: Sequence[str]) -> RowsChanged | None:
        """The rows of version `base` that are not in `version`, and those of `version` that are not in `base`.

        Both have exactly `columns`, at least one, in the order of the table. Rows are compared in these columns alone
        and as bags: each copy of a row cancels one copy in the other version. None if `version` is below `base`, if
        there are more rows than the driver may hold, or if the log no longer has all of a version.
        """
        if not self._allow_direct:
            return None
        changed = self._changed_rows.between(spec, base, version, _chosen(spec, columns))
        if changed is not None:
            metrics.count(rows_found=changed.old.num_rows + changed.new.num_rows)
        return changed

    def with_text(
        self, spec: TableSpec, version: int, text: str, columns: Sequence[str], *, is_prefix: bool = False
    ) -> pa.Table | None:
        """The rows of a version whose first column of `sorted_by` is a text, or begins with it, in no order.

        Reads the row groups whose bounds allow the text. None if the log no longer has the version, or for a prefix
        of more rows than the driver may hold.
        """
        field, schema = spec.schema.field(spec.sorted_by[0]), pa.schema([spec.schema.field(name) for name in columns])
        table = self.tables.table(spec.path)
        with table.lock:
            state = table.at(version)
            if state is None:
                return None
            if not is_prefix:
                return self._values.with_text(table.folder, state, field, text, schema)
            return self._values.with_prefix(table.folder, state, field, text, schema, self.driver_rows)

    def _look_up_by_spark(self, spec: TableSpec, version: int, keys: pa.Table, schema: pa.Schema) -> pa.Table:
        wanted = F.broadcast(frame_of(self._spark, keys)).alias("wanted")
        stored = self.frame(spec.path, version).select(*map(quoted, schema.names)).alias("stored")
        found = stored.join(wanted, key_match(keys.column_names, "stored", "wanted"), "left_semi").toArrow()
        return found.cast(schema)


def _looked_up(spec: TableSpec, keys: pa.Table, wanted: Sequence[str] | None) -> pa.Schema:
    """The fields that a lookup returns."""
    return _chosen(spec, spec.schema.names if wanted is None else [*keys.column_names, *wanted])


def _chosen(spec: TableSpec, columns: Sequence[str]) -> pa.Schema:
    """The fields of these columns, in the order of the table."""
    return pa.schema([field for field in spec.schema if field.name in columns])

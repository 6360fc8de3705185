"""Committing to the tables of a warehouse: by the driver where it can, else by Spark.

A commit names the version that it stands on and becomes exactly the next one. Spark promises neither, so both are
checked: the newest version before, and after it that the next version carries the attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame

from cdc_views import faults, metrics
from cdc_views.config import StoreSettings
from cdc_views.metrics import Ways
from cdc_views.store.commits.changes import Changes, Written, WrittenRows
from cdc_views.store.commits.committer import Committer, Target, can_commit
from cdc_views.store.commits.plain import PlainCommitter
from cdc_views.store.commits.replaced_rows import ReplacedRows, replaced_by_files, replaced_rows
from cdc_views.store.commits.through_spark import SparkCommits
from cdc_views.store.commits.vectors import VectorCommitter
from cdc_views.store.delta_log.deletion_vectors import StoredRows
from cdc_views.store.delta_log.entries import VersionTaken, newest_version, read_entry
from cdc_views.store.delta_log.history import History, foreign
from cdc_views.store.delta_log.operations import restoring
from cdc_views.store.delta_log.schema import Layout, TableSpec, key_schema
from cdc_views.store.delta_log.versions import Stamp, rows_written
from cdc_views.store.index.driver_table import DriverTable, DriverTables
from cdc_views.store.index.stored_keys import all_rows

_COMMITTERS: Final[Mapping[Layout, Committer]] = {"vectors": VectorCommitter(), "plain": PlainCommitter()}


class TableCommits:
    """Commits changes and restores versions; methods may be called from several threads, one per table."""

    def __init__(
        self,
        root: Path,
        settings: StoreSettings,
        tables: DriverTables,
        history: History,
        by_spark: SparkCommits,
        ways: Ways,
        *,
        allow_direct: bool,
        is_writer: bool,
    ) -> None:
        self._root = root
        self._settings = settings
        self._tables = tables
        self._history = history
        self._by_spark = by_spark
        self._ways = ways
        self._allow_direct = allow_direct
        self._is_writer = is_writer

    def commit(self, spec: TableSpec, base: int, changes: Changes | WrittenRows, stamp: Stamp) -> int:
        """Make version `base` + 1 of the table from version `base`, and return its number.

        The attempt must be above that of every earlier version, fences included, since Spark skips a commit whose
        attempt is not. Raises ForeignCommit, Fenced, DiskFull.
        """
        version: int | None
        if isinstance(changes, WrittenRows):
            version = self._commit_written(spec, base, changes, stamp)
        elif (version := self._commit_directly(spec, base, changes, stamp)) is None:
            version = self._commit_by_spark(spec, base, changes, stamp)
        metrics.count(rows_written=rows_written(read_entry(self._root / spec.path, version)), commits=1)
        return version

    def _commit_written(self, spec: TableSpec, base: int, rows: WrittenRows, stamp: Stamp) -> int:
        self._history.require_found(spec.name, spec.path, newest_version(self._root / spec.path), base, stamp)
        with self._by_spark.turn():
            written = rows.write(spec, self._root / spec.path)
        faults.point("bulk.after_files")
        self._ways.took("commit", spec.name, "bulk")
        table = self._tables.table(spec.path)
        with table.lock:
            # Another engine may have taken over while the files were written.
            if not table.catch_up() or table.state.version != base:
                raise self._history.overtaken(spec.name, spec.path, stamp, base)
            is_usual = can_commit(spec, table.state)
            if not rows.all_new and not is_usual:
                raise foreign(spec.name, "found files or features that are not ours, wanted a table of our own")
            gone = _replaced(spec, table, rows, written)
            with self._putting(spec, table, stamp) as target:
                _COMMITTERS[spec.layout].commit_files(target, gone, written.added, stamp)
            if self._allow_direct and is_usual:
                table.build_index(key_schema(spec))  # while Spark writes the next table
            return table.state.version

    def _commit_directly(self, spec: TableSpec, base: int, changes: Changes, stamp: Stamp) -> int | None:
        """Commit without Spark; None if the change is too large, or the table has a form that only Spark can handle."""
        rows, deleted = changes.rows, changes.deleted
        if not self._allow_direct or isinstance(rows, DataFrame) or isinstance(deleted, DataFrame):
            return None
        if rows.num_rows + (deleted.num_rows if deleted is not None else 0) > self._settings.direct_rows:
            return None
        table = self._tables.table(spec.path)
        with table.lock:
            if not table.catch_up() or not can_commit(spec, table.state):
                return None
            self._history.require_found(spec.name, spec.path, table.state.version, base, stamp)
            rows = rows.select(spec.schema.names).cast(spec.schema)
            if changes.all_new and deleted is None:
                replaced: ReplacedRows | None = ReplacedRows({}, "direct")
            else:
                replaced = replaced_rows(spec, table, rows, deleted, self._settings.scanned_rows)
            if replaced is None:
                return None
            with self._putting(spec, table, stamp) as target:
                file = _COMMITTERS[spec.layout].commit(target, replaced.stored, rows, stamp)
            if file is not None and replaced.new_keys is not None:
                table.know_file(file, key_schema(spec), replaced.new_keys)
            self._ways.took("commit", spec.name, replaced.path)
            return table.state.version

    def _commit_by_spark(self, spec: TableSpec, base: int, changes: Changes, stamp: Stamp) -> int:
        with self._by_spark.turn():
            self._history.require_found(spec.name, spec.path, newest_version(self._root / spec.path), base, stamp)
            self._ways.took("commit", spec.name, "spark")
            return self._by_spark.commit(spec, self._app(spec), base, changes, stamp)

    def restore(self, path: str, version: int, stamp: Stamp, base: int) -> int:
        """Make the content of an older version the next one after `base`, and return its number.

        Raises Fenced, ForeignCommit, DiskFull.
        """
        restored = self._restore_directly(path, version, stamp, base)
        return self._by_spark.restore(path, version, base, stamp) if restored is None else restored

    def _restore_directly(self, path: str, version: int, stamp: Stamp, base: int) -> int | None:
        """Restore without Spark; None if the log no longer says which files the version had."""
        table = self._tables.table(path)
        with table.lock:
            wanted = restoring.state_to_restore(table.folder, version, base)
            if wanted is None or not table.catch_up():
                return None
            self._history.require_found(path, path, table.state.version, base, stamp)
            try:
                restoring.restore(table.folder, table.state, wanted, stamp)
            except VersionTaken as taken:
                raise self._history.overtaken(path, path, stamp, base) from taken
            return table.state.version

    @contextmanager
    def _putting(self, spec: TableSpec, table: DriverTable, stamp: Stamp) -> Iterator[Target]:
        """The target of a commit; a used attempt or a taken version becomes the error that names its writer."""
        app, base = self._app(spec), table.state.version
        if table.state.transactions.get(app, -1) >= stamp.attempt:
            raise self._history.overtaken(spec.name, spec.path, stamp, base)
        try:
            yield Target(table.folder, app, spec, table.state)
        except VersionTaken as taken:
            raise self._history.overtaken(spec.name, spec.path, stamp, base) from taken

    def _app(self, spec: TableSpec) -> str:
        return spec.path if self._is_writer else f"{spec.path}/{uuid4()}"


def _replaced(spec: TableSpec, table: DriverTable, rows: WrittenRows, written: Written) -> StoredRows:
    """The stored rows that written rows replace."""
    if rows.replaces_all:
        return all_rows(table.folder, table.state)
    return {} if rows.all_new else replaced_by_files(spec, table, written)

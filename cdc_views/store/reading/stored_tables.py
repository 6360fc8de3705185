"""Versions of tables as readers need them: columns, key, single rows, and what changes between two versions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc_views.config import StoreSettings
from cdc_views.errors import TableUnavailable
from cdc_views.store.delta_log.deletion_vectors import StoredRows, file_of
from cdc_views.store.delta_log.entries import data_file, entry_identity, newest_version
from cdc_views.store.delta_log.features import KEY, KIND
from cdc_views.store.delta_log.history import History
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.delta_log.versions import RESTORE
from cdc_views.store.index.changed_rows import ChangedRows, RowsChanged
from cdc_views.store.index.driver_table import DriverTable, DriverTables, Indexes
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.hashing import fingerprints, has_fingerprints
from cdc_views.store.index.row_bags import rows_in_both, without_common_rows
from cdc_views.store.index.stored_keys import by_reading
from cdc_views.store.reading.row_search import find_rows
from cdc_views.store.reading.scans import unreadable
from cdc_views.store.reading.value_search import FEW_VALUES, ValueSearch

MOST_CHANGED: Final = 2_000_000
"""The most rows that a difference may have on each side: they are held in memory."""

CACHED_BYTES: Final = 256 << 20
"""For rows that are read again soon: of a key, or the old rows of a table whose changes are followed."""


@dataclass(frozen=True)
class StoredTable:
    """What a table is. `identity` tells it from another one that was at its path before.

    `key` is None if it was created before tables had their key among their settings. `kind` has the name of a view's
    kind as `kind`, and what its readers need; it is empty for a mirror, and for a view of kind `sql`.
    """

    schema: pa.Schema
    key: tuple[str, ...] | None
    kind: Mapping[str, Any]
    identity: str


def has_version(root: Path, path: str, version: int) -> bool:
    """Whether a version of a table can still be read: the log has it, and its files are there."""
    table = root / path
    try:
        state = TableState.of(table, version)
    except FileNotFoundError:
        return False
    if state is None:
        return False
    vectors = (file_of(table, add["deletionVector"]) for add in state.files.values() if add.get("deletionVector"))
    return all(file.exists() for file in (*(data_file(table, each) for each in state.files), *vectors))


@dataclass(frozen=True)
class TableDifference:
    """The rows that a table gains and loses from one version to another, in no order.

    `updated` are the new rows whose key is in both versions, `replaced` their old rows, in the same order. A table
    without a key has none: all its rows are inserted or deleted, each as often as the versions differ.
    """

    inserted: pa.Table
    updated: pa.Table
    replaced: pa.Table
    deleted: pa.Table


class StoredTables:
    """The tables of a warehouse for a reader. For several threads.

    It keeps the state of each table in memory, decoded rows in temporary files without a name, and indexes of the
    columns by which rows are looked up more than once.
    """

    def __init__(self, root: Path, index_bytes: int = 0, cached_bytes: int = CACHED_BYTES) -> None:
        """The indexes take at most `index_bytes` of memory. Without one, a lookup reads the columns that it is by.

        Decoded rows take at most `cached_bytes` of the disk.
        """
        self._root = root
        self._described: dict[str, StoredTable] = {}
        self._looked_up: set[tuple[str, tuple[str, ...]]] = set()
        self._is_indexed = index_bytes > 0
        self._tables = DriverTables(root, Indexes(index_bytes))
        self._entries: dict[str, tuple[int, tuple[int, int] | None]] = {}  # a version of each table, and its entry
        self._row_groups = RowGroups(Path(tempfile.gettempdir()), cached_bytes)
        self._changed_rows = ChangedRows(StoreSettings(driver_rows=MOST_CHANGED), self._row_groups, self._table)
        self._values = ValueSearch(self._row_groups)
        self._history = History(root)

    def describe(self, path: str) -> StoredTable:
        """The columns and the key of a table, which are the same in all versions at a path.

        Raises TableUnavailable, WarehouseUnusable.
        """
        if path not in self._described:
            try:
                table = DeltaTable(str(self._root / path))
            except (DeltaError, OSError) as error:
                raise unreadable(self._root / path, path, newest_version(self._root / path), error) from error
            settings = table.metadata().configuration
            key, kind = settings.get(KEY), orjson.loads(settings.get(KIND) or "{}")
            schema = pa.schema(table.schema().to_arrow())
            self._described[path] = StoredTable(
                schema, None if key is None else tuple(orjson.loads(key)), kind, str(table.metadata().id)
            )
        return self._described[path]

    def describe_current(self, path: str) -> StoredTable:
        """`describe` for a reader that lives long: the table may have been removed and created again at its path."""
        self._table(path)
        return self.describe(path)

    def identity(self, path: str, version: int) -> tuple[int, int] | None:
        """Tells a version from one of the same number of a table that was removed and created again at its path.

        None if the log no longer has it.
        """
        return entry_identity(self._root / path, version)

    def with_values(self, path: str, version: int, keys: pa.Table) -> pa.Table:
        """The rows whose columns have the values of one row of `keys`, whose columns are of the table's types.

        NULL finds NULL, NaN finds NaN, and 0.0 finds -0.0. Without columns, each row is found. The rows are in no
        particular order. Raises TableUnavailable, WarehouseUnusable.
        """
        schema = self.describe(path).schema
        with self._at(path, version) as (table, state):
            stored = self._by_index(table, state, keys)
            if stored is None:
                stored = self._by_reading(table, state, keys)
            return self._row_groups.fetch(table.folder, stored, schema)

    def with_text(self, path: str, version: int, column: str, text: str, columns: Iterable[str]) -> pa.Table:
        """The rows whose column has a text, with these columns, in no order.

        It is for a table whose files are sorted by the column: reads the row groups whose bounds allow the text.
        Raises TableUnavailable, WarehouseUnusable.
        """
        field, schema = self._field(path, column), self._schema(path, columns)
        with self._at(path, version) as (table, state):
            return self._values.with_text(table.folder, state, field, text, schema)

    def with_prefix(
        self, path: str, version: int, column: str, prefix: str, columns: Iterable[str], most: int
    ) -> pa.Table | None:
        """The same for all texts that begin so; None if there are more than `most` rows."""
        field, schema = self._field(path, column), self._schema(path, columns)
        with self._at(path, version) as (table, state):
            return self._values.with_prefix(table.folder, state, field, prefix, schema, most)

    def columns_of(self, path: str, version: int, column: str, values: pa.Array, columns: Iterable[str]) -> pa.Table:
        """Some columns of the rows whose column has one of the values, in no order.

        Up to 1,000 values are found by an index, if there is room for one, or by reading the column in all row groups
        whose bounds allow a value; then only the pages with their rows are read. Of more values, `columns` are read in
        all these row groups. Raises TableUnavailable, WarehouseUnusable.
        """
        field, schema = self._field(path, column), self._schema(path, columns)
        with self._at(path, version) as (table, state):
            if len(values) > FEW_VALUES:
                return self._values.with_values(table.folder, state, field, values, schema)
            stored = self._by_index(table, state, pa.table([values], pa.schema([field])))
            if stored is None:
                stored = self._values.places(table.folder, state, field, values)
            return self._row_groups.fetch(table.folder, stored, schema)

    @contextmanager
    def _at(self, path: str, version: int) -> Iterator[tuple[DriverTable, TableState]]:
        """A table and its state at a version. Nobody else uses the table in the block."""
        try:
            with self._table(path).lock:
                table = self._table(path)  # another thread may have found that it is another one
                state = table.at(version)
                if state is not None:
                    yield table, state
                    return
        except OSError as error:
            raise unreadable(self._root / path, path, version, error) from error
        raise TableUnavailable(f'table "{path}": the log no longer has version {version}', hint="read a newer epoch")

    def _field(self, path: str, column: str) -> pa.Field:
        return self.describe(path).schema.field(column)

    def _schema(self, path: str, columns: Iterable[str]) -> pa.Schema:
        return _fields(self.describe(path).schema, columns)

    def _by_index(self, table: DriverTable, state: TableState, keys: pa.Table) -> StoredRows | None:
        """Find rows by an index; None if there is none. It is built for the second lookup, or for many keys at once.

        Who reads one row and ends need not wait for it.
        """
        name = str(table.folder), tuple(keys.column_names)
        is_wanted = name in self._looked_up or keys.num_rows > 1
        self._looked_up.add(name)
        if not (self._is_indexed and is_wanted and keys.num_columns) or not all(
            map(has_fingerprints, keys.schema.types)
        ):
            return None
        return table.find(keys.schema, fingerprints(keys), state)

    def _by_reading(self, table: DriverTable, state: TableState, keys: pa.Table) -> StoredRows:
        if keys.num_rows > 1 and all(map(has_fingerprints, keys.schema.types)):
            return by_reading(table.folder, state, keys.schema, fingerprints(keys))
        found: StoredRows = {}
        for number in range(keys.num_rows):
            key = {name: keys.column(name)[number] for name in keys.column_names}
            for file, rows in find_rows(table.folder, state, keys.schema, key, self._row_groups.footer).items():
                found[file] = found[file] | rows if file in found else rows
        return found

    def difference(
        self, path: str, base: int, version: int, columns: Sequence[str], key: Sequence[str] | None
    ) -> TableDifference | None:
        """What changes in these columns from version `base` to `version`; rows that stay the same are in no part.

        Reads only the rows of files that one of the versions does not have, and those that only one of them has
        deleted. None if a version can no longer be read, or if more than two million rows differ.
        """
        written = self.written(path, base, version, columns)
        if written is None:
            return None
        old, new = without_common_rows(written.old, written.new)
        if key is None:
            return TableDifference(new, new.slice(0, 0), old.slice(0, 0), old)
        if key:
            of_old, of_new = rows_in_both(old.select(key), new.select(key))
        else:  # at most one row in each version
            of_old = of_new = np.arange(min(old.num_rows, new.num_rows))
        return TableDifference(_without(new, of_new), new.take(of_new), old.take(of_old), _without(old, of_old))

    def written(self, path: str, base: int, version: int, columns: Sequence[str]) -> RowsChanged | None:
        """These columns of all rows that were removed or written from version `base` to `version`.

        Rows of which only other columns have changed are in both parts. None as of `difference`.
        """
        self._table(path)
        schema = self._schema(path, columns)
        try:
            return self._changed_rows.written(TableSpec(path, path, schema, ()), base, version, schema)
        except (FileNotFoundError, TableUnavailable):
            return None

    def _table(self, path: str) -> DriverTable:
        """The table, without what is known of another one that was at the same path and was removed.

        The path of a view is that of its definition: a view that is removed and comes back has its old path.
        """
        table = self._tables.table(path)
        with table.lock:
            known = self._entries.get(path)
            if known is not None and known[1] != entry_identity(table.folder, known[0]):
                self._described.pop(path, None)
                table = self._tables.renewed(path)
            table.catch_up()
            self._entries[path] = table.state.version, entry_identity(table.folder, table.state.version)
        return table

    def is_one_epoch(self, path: str, base: int, version: int, epoch: int) -> bool:
        """Whether this epoch alone has changed rows between two versions, as far as the table's log shows.

        False if an entry is missing. What an epoch wrote before it was abandoned is rolled back by a RESTORE.
        """
        commits = self._history.commits_above(path, base, version)
        epochs: list[int | None] = []
        for commit in commits:
            if commit.operation == RESTORE:
                del epochs[-1:]
            elif commit.changes_content:
                of_commit = commit.stamp.epoch if commit.stamp is not None else None
                epochs += [] if epochs[-1:] == [of_commit] else [of_commit]
        return len(commits) == version - base and set(epochs) <= {epoch}


def _without(rows: pa.Table, numbers: Any) -> pa.Table:
    """The rows except those of these numbers."""
    is_left = np.ones(rows.num_rows, bool)
    is_left[numbers] = False
    return rows.filter(pa.array(is_left))


def _fields(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])

"""Versions of tables as readers need them: columns, key, and single rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc_views.errors import TableUnavailable
from cdc_views.store.delta_log.deletion_vectors import file_of
from cdc_views.store.delta_log.entries import data_file
from cdc_views.store.delta_log.features import KEY
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index.driver_table import DriverTables, Indexes
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.reading.row_search import find_rows
from cdc_views.store.reading.scans import unreadable


@dataclass(frozen=True)
class StoredTable:
    """What a table is. `key` is None if it was created before tables had their key among their settings."""

    schema: pa.Schema
    key: tuple[str, ...] | None


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


class StoredTables:
    """The tables of a warehouse for a reader, who keeps the state of each, but no rows. For several threads."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._described: dict[str, StoredTable] = {}
        self._tables = DriverTables(root, Indexes(0))
        self._row_groups = RowGroups(root, 0)

    def describe(self, path: str, version: int) -> StoredTable:
        """The columns and the key of a table, which are the same in all versions at a path.

        Raises TableUnavailable, WarehouseUnusable.
        """
        if path not in self._described:
            try:
                table = DeltaTable(str(self._root / path), version=version)
            except (DeltaError, OSError) as error:
                raise unreadable(self._root / path, path, version, error) from error
            key = table.metadata().configuration.get(KEY)
            schema = pa.schema(table.schema().to_arrow())
            self._described[path] = StoredTable(schema, None if key is None else tuple(orjson.loads(key)))
        return self._described[path]

    def with_key(self, path: str, version: int, key: Mapping[str, pa.Scalar]) -> pa.Table:
        """The row with a key, or none: a value for each column of the key, of the column's type.

        Raises TableUnavailable, WarehouseUnusable.
        """
        schema = self.describe(path, version).schema
        table = self._tables.table(path)
        try:
            with table.lock:
                state = table.at(version)
                if state is not None:
                    stored = find_rows(table.folder, state, _fields(schema, key), key)
                    rows = self._row_groups.fetch(table.folder, stored, schema)
                    assert rows is not None  # one row group
                    return rows
        except OSError as error:
            raise unreadable(table.folder, path, version, error) from error
        raise TableUnavailable(f'table "{path}": the log no longer has version {version}', hint="read a newer epoch")


def _fields(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])

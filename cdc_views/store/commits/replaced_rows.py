"""The stored rows that a change replaces or deletes: found by the index, or by reading the keys of every file."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from cdc_views.store.commits.changes import Written
from cdc_views.store.delta_log.deletion_vectors import StoredRows
from cdc_views.store.delta_log.schema import TableSpec, key_schema
from cdc_views.store.index.driver_table import DriverTable
from cdc_views.store.index.hashing import Fingerprints, fingerprints, joined
from cdc_views.store.index.stored_keys import all_rows, by_reading, read_keys


@dataclass(frozen=True)
class ReplacedRows:
    """Stored rows, the path that a commit of the change takes, and the keys of its new rows if they are known."""

    stored: StoredRows
    path: str
    new_keys: Fingerprints | None = None


def replaced_rows(
    spec: TableSpec, table: DriverTable, rows: pa.Table, deleted: pa.Table | None, most_scanned: int
) -> ReplacedRows | None:
    """The stored rows with the key of a new row or a deleted one.

    None if the index has no room and the table has more than `most_scanned` rows: then only Spark can find them.
    """
    if not spec.key:
        is_change = rows.num_rows or (deleted is not None and deleted.num_rows)
        return ReplacedRows(all_rows(table.folder, table.state) if is_change else {}, "direct")
    columns = key_schema(spec)
    new_keys = fingerprints(rows.select(columns.names))
    keys = new_keys if deleted is None else joined([new_keys, fingerprints(_typed(deleted, columns))])
    if not len(keys.high):
        return ReplacedRows({}, "direct")
    keys = keys.distinct()
    stored = table.find(columns, keys)
    if stored is not None:
        return ReplacedRows(stored, "direct", new_keys)
    if (table.state.stored_rows or 0) > most_scanned:
        return None
    return ReplacedRows(by_reading(table.folder, table.state, columns, keys), "direct-scan")


def replaced_by_files(spec: TableSpec, table: DriverTable, written: Written) -> StoredRows:
    """The stored rows with the key of a row of the written files, or a deleted one."""
    columns = key_schema(spec)
    files = [read_keys(table.folder, add["path"], columns) for add in written.added]
    # A key may have many rows: each copy of it would find all stored ones.
    keys = joined([*files, fingerprints(_typed(written.deleted, columns))]).distinct()
    stored = table.find(columns, keys)
    return by_reading(table.folder, table.state, columns, keys) if stored is None else stored


def _typed(keys: pa.Table, columns: pa.Schema) -> pa.Table:
    return keys.select(columns.names).cast(columns)

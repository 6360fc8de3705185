"""The rows that differ between two versions of a table, from the files and deletion vectors of both.

Only rows that one version has and the other has not are read: those of files that only one of them has, and those that
only one of two deletion vectors hides. Versions that rearrange rows are skipped, since they change none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from cdc_views.config import StoreSettings
from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import has_entry, read_entry
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.index.driver_table import DriverTable
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.row_bags import without_common_rows


@dataclass(frozen=True)
class RowsChanged:
    """Rows that only the older one of two versions has, and rows that only the newer one has; as bags, in no order."""

    old: pa.Table
    new: pa.Table


class ChangedRows:
    """The changed rows of all tables; for several threads, one per table."""

    def __init__(
        self, settings: StoreSettings, row_groups: RowGroups, driver_table: Callable[[str], DriverTable]
    ) -> None:
        self._settings = settings
        self._row_groups = row_groups
        self._driver_table = driver_table

    def between(self, spec: TableSpec, base: int, version: int, schema: pa.Schema) -> RowsChanged | None:
        """The changed rows from version `base` to `version`, with the columns of `schema`, at least one.

        None if `version` is below `base`, if there are more rows than the driver may hold, or if the log no longer has
        all of a version.
        """
        written = self.written(spec, base, version, schema)
        return None if written is None else RowsChanged(*without_common_rows(written.old, written.new))

    def written(self, spec: TableSpec, base: int, version: int, schema: pa.Schema) -> RowsChanged | None:
        """The same, and rows that were removed and written again with the same values, which are in both parts.

        Their values in other columns may differ.
        """
        if version < base:
            return None
        table = self._driver_table(spec.path)
        with table.lock:
            differing = _differing(table, base, version)
            if differing is None:
                return None
            old = self._fetch(table, [rows for rows, _ in differing], schema)
            new = None if old is None else self._fetch(table, [rows for _, rows in differing], schema)
        return None if old is None or new is None else RowsChanged(old, new)

    def _fetch(self, table: DriverTable, stored: list[StoredRows], schema: pa.Schema) -> pa.Table | None:
        if sum(len(rows) for each in stored for rows in each.values()) > self._settings.driver_rows:
            return None
        found = [self._row_groups.fetch(table.folder, each, schema) for each in stored]
        return pa.concat_tables([schema.empty_table(), *found])


def _differing(table: DriverTable, base: int, version: int) -> list[tuple[StoredRows, StoredRows]] | None:
    """The stored rows that only the first and only the last version of each changing range has."""
    differing = []
    for first, last in _changing(table.folder, base, version):
        old, new = table.at(first), table.at(last)
        if old is None or new is None or old.stored_rows is None or new.stored_rows is None:
            return None
        differing.append((_only_in(old, new, table.folder), _only_in(new, old, table.folder)))
    return differing


def _changing(folder: Path, base: int, version: int) -> Iterable[tuple[int, int]]:
    """The ranges of versions between which rows may have changed; a compaction or a fence ends one."""
    ranges: list[tuple[int, int]] = []
    for later in range(base + 1, version + 1):
        if has_entry(folder, later) and not _changes_rows(folder, later):
            continue
        first = ranges.pop()[0] if ranges and ranges[-1][1] == later - 1 else later - 1
        ranges.append((first, later))
    return ranges


def _changes_rows(folder: Path, version: int) -> bool:
    files = (action.get("add") or action.get("remove") for action in read_entry(folder, version))
    return any(file.get("dataChange", True) for file in files if file is not None)


def _only_in(state: TableState, other: TableState, folder: Path) -> StoredRows:
    """The live rows of one state that are no live rows of the other, by file and number."""
    found: StoredRows = {}
    for path, add in state.files.items():
        known = other.files.get(path)
        if known is None:
            rows = RowNumbers(range(state.rows_in(path))) - state.dead_rows(folder, path)
        elif known is add or known.get("deletionVector") == add.get("deletionVector"):
            continue
        else:
            rows = other.dead_rows(folder, path) - state.dead_rows(folder, path)
        if rows:
            found[path] = rows
    return found

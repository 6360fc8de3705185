"""Lookups in the driver: rows of a version of a table, found through an index and fetched by row number.

Data files never change and the index is per file, so an older version costs as much as the newest. The result is None
where the driver cannot do the lookup: too many keys or rows, a version that the log no longer has, a type without
fingerprints, or no room for the index. A value that an event of the log leaves unchanged is then looked up by Spark
(`Warehouse.lookup`). A view is computed in full in that epoch: no lookup of a view is a query of Spark.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from cdc_views.config import StoreSettings
from cdc_views.store.delta_log.deletion_vectors import StoredRows
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.index.driver_table import DriverTable
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.first_values import FirstValues
from cdc_views.store.index.hashing import are_among, fingerprints, has_fingerprints
from cdc_views.store.index.known_file import Counts


class Lookups:
    """Lookups in all tables; for several threads, one per table."""

    def __init__(
        self, settings: StoreSettings, row_groups: RowGroups, driver_table: Callable[[str], DriverTable]
    ) -> None:
        self._settings = settings
        self._row_groups = row_groups
        self._first_values = FirstValues(row_groups)
        self._driver_table = driver_table

    def equal(self, spec: TableSpec, version: int, keys: pa.Table, schema: pa.Schema) -> pa.Table | None:
        """The rows whose columns equal those of one of `keys`; NULL finds NULL. Returns the columns of `schema`."""
        columns = pa.schema([spec.schema.field(name) for name in keys.column_names])
        if keys.num_rows > self._settings.lookup_keys or not all(has_fingerprints(field.type) for field in columns):
            return None
        table = self._driver_table(spec.path)
        with table.lock:
            state = table.at(version)
            if state is None or state.stored_rows is None:
                return None
            wanted = fingerprints(keys.select(columns.names).cast(columns))
            found = self._fetch(table, table.find(columns, wanted, state), schema)
            if found is not None and not are_among(fingerprints(found.select(columns.names)), wanted):
                table.forget(columns)
                return None
            return found

    def counts(self, spec: TableSpec, version: int, keys: pa.Table) -> Counts | None:
        """How many rows each of `keys` has, which are at most as many as the driver may hold rows. Reads no rows."""
        columns = pa.schema([spec.schema.field(name) for name in keys.column_names])
        if keys.num_rows > self._settings.driver_rows or not all(has_fingerprints(field.type) for field in columns):
            return None
        table = self._driver_table(spec.path)
        with table.lock:
            state = table.at(version)
            if state is None or state.stored_rows is None:
                return None
            return table.counts(columns, fingerprints(keys.cast(columns)), state)

    def first(
        self, spec: TableSpec, version: int, column: str, most: int, schema: pa.Schema, *, is_largest: bool
    ) -> pa.Table | None:
        """The `most` rows with the largest values of a column, or the smallest; see FirstValues."""
        table = self._driver_table(spec.path)
        with table.lock:
            state = table.at(version)
            if state is None:
                return None
            field = spec.schema.field(column)
            found = self._first_values.rows(table.folder, state, field, most, is_largest=is_largest)
            return self._fetch(table, found, schema)

    def _fetch(self, table: DriverTable, stored: StoredRows | None, schema: pa.Schema) -> pa.Table | None:
        if stored is None or sum(map(len, stored.values())) > self._settings.driver_rows:
            return None
        return self._row_groups.fetch(table.folder, stored, schema)

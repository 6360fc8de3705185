"""Lookups in the driver: rows of a table's newest version, found through an index and fetched by position.

None is the answer where Spark has to look: too many keys or rows, an older version, a type without words, a limit of
another type, no room.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from cdc_views.config import StoreSettings
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.index.driver_table import DriverTable
from cdc_views.store.index.fetching import RowGroups
from cdc_views.store.index.fingerprints import are_among, fingerprints, has_fingerprints
from cdc_views.store.index.order_words import Between, has_order_words, order_words
from cdc_views.store.index.stored_keys import Positions


class Lookups:
    """For several threads, one per table."""

    def __init__(
        self, settings: StoreSettings, row_groups: RowGroups, driver_table: Callable[[str], DriverTable]
    ) -> None:
        self._settings = settings
        self._row_groups = row_groups
        self._driver_table = driver_table

    def equal(self, spec: TableSpec, version: int, keys: pa.Table, schema: pa.Schema) -> pa.Table | None:
        """The rows whose columns equal those of one of `keys`; NULL finds NULL. They have the columns of `schema`."""
        columns = pa.schema([spec.schema.field(name) for name in keys.column_names])
        if keys.num_rows > self._settings.lookup_keys or not all(has_fingerprints(field.type) for field in columns):
            return None
        table = self._driver_table(spec.path)
        with table.lock:
            if not _stands_at(table, version):
                return None
            wanted = fingerprints(keys.select(columns.names).cast(columns))
            found = self._fetch(table, table.find(columns, wanted), schema)
            if found is not None and not are_among(fingerprints(found.select(columns.names)), wanted):
                table.forget(columns)
                return None
            return found

    def between(
        self, spec: TableSpec, version: int, column: str, limits: Between, schema: pa.Schema
    ) -> pa.Table | None:
        """The rows whose value of a column is within the limits. They have the columns of `schema`."""
        field, table = spec.schema.field(column), self._driver_table(spec.path)
        if not has_order_words(field.type):
            return None
        try:
            first, last = limits.words(field.type)
        except (pa.ArrowException, OverflowError):
            return None
        with table.lock:
            if not _stands_at(table, version):
                return None
            found = self._fetch(table, table.find_between(field, first, last), schema)
            if found is None:
                return None
            words = order_words(found.select([column]))
            if words.low is not None or not ((first <= words.high) & (words.high <= last)).all():
                table.forget_order(field)
                return None
            return limits.keep(found, column)

    def _fetch(self, table: DriverTable, positions: Positions | None, schema: pa.Schema) -> pa.Table | None:
        if positions is None or sum(map(len, positions.values())) > self._settings.driver_rows:
            return None
        return self._row_groups.fetch(table.folder, positions, schema)


def _stands_at(table: DriverTable, version: int) -> bool:
    return table.catch_up() and table.state.version == version and table.state.stored_rows is not None

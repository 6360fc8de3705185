"""The stored queries of one view, indexed in memory from one epoch to the next.

What is kept is that of one version of the table of queries, and follows it by the rows that change from that version to
the wanted one. So an epoch that was not published, or whose table was rolled back, leaves nothing behind: its version
is not the wanted one, and a version never changes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from cdc_views.engine.views.saved.searches import SavedSearches
from cdc_views.search import QueryIndex
from cdc_views.store.warehouse import TableSpec, Warehouse

_LOGGER: Final = logging.getLogger(__name__)
_BATCH_ROWS: Final = 1000


class KeptQueries:
    """The stored queries of one view, for one thread at a time."""

    def __init__(self) -> None:
        self._kept: tuple[str, int, QueryIndex] | None = None
        self._has_warned = False

    def pieces(
        self, searches: SavedSearches, spec: TableSpec, version: int, warehouse: Warehouse
    ) -> Iterator[QueryIndex]:
        """Yield indexes that together have all queries of a version of their table, `spec`.

        It is one if they fit into the memory that they may take. Otherwise all are read, piece by piece.
        """
        index = self._followed(searches, spec, version, warehouse)
        if index is not None:
            yield index
            return
        read = self._read(searches, spec, version, warehouse)
        first = next(read)
        second = next(read, None)
        if second is None:
            self._kept = spec.path, version, first
            yield first
            return
        self._warn(spec, warehouse)
        yield first
        del first
        yield second
        yield from read

    def _followed(
        self, searches: SavedSearches, spec: TableSpec, version: int, warehouse: Warehouse
    ) -> QueryIndex | None:
        """The kept index, moved to the wanted version; None if there is none, or if it cannot be moved."""
        kept, self._kept = self._kept, None  # it is of no version until it has reached the wanted one
        if kept is None or kept[0] != spec.path:
            return None
        _, known, index = kept
        if known != version:
            columns = sorted(set(searches.columns.values()))
            delta = warehouse.changed_rows(spec, known, version, columns)
            if delta is None:
                return None
            index.remove(searches.selected(delta.old))
            index.add(searches.selected(delta.new))
            if index.size > warehouse.query_bytes:
                return None
        self._kept = spec.path, version, index
        return index

    def _read(
        self, searches: SavedSearches, spec: TableSpec, version: int, warehouse: Warehouse
    ) -> Iterator[QueryIndex]:
        """All queries, in at least one index. Each but the last is as large as one may be."""
        index = searches.index
        index.add(searches.selected(spec.schema.empty_table()))
        for batch in warehouse.batches(spec, version, sorted(set(searches.columns.values()))):
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                if index.size > warehouse.query_bytes:
                    yield index
                    index = searches.index
                rows = pa.Table.from_batches([batch.slice(start, _BATCH_ROWS)])
                index.add(
                    searches.selected(rows.cast(pa.schema([spec.schema.field(name) for name in rows.column_names])))
                )
        yield index

    def _warn(self, spec: TableSpec, warehouse: Warehouse) -> None:
        if not self._has_warned:
            text = 'the stored queries of "%s" take more than the %d MiB of store.query_memory_mb: each epoch reads all'
            _LOGGER.warning(text, spec.name, warehouse.query_bytes >> 20)
        self._has_warned = True

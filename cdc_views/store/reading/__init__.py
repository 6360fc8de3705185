"""Reading published versions of tables without a JVM.

scans.py          whole versions, by delta-rs
stored_tables.py  what a version of a table is: its columns and its key; its rows with one key; differences
value_search.py   the rows with a text, a prefix or some values in one column
row_search.py     finds the rows with one key
"""

from __future__ import annotations

from cdc_views.store.reading.scans import (
    TableScan,
    read_batches,
    read_table,
    refused,
    require_readable,
    row_count,
    scan,
)
from cdc_views.store.reading.stored_tables import (
    CACHED_BYTES,
    StoredTable,
    StoredTables,
    TableDifference,
    has_version,
)
from cdc_views.store.reading.value_search import ValueSearch

__all__ = [
    "CACHED_BYTES",
    "StoredTable",
    "StoredTables",
    "TableDifference",
    "TableScan",
    "ValueSearch",
    "has_version",
    "read_batches",
    "read_table",
    "refused",
    "require_readable",
    "row_count",
    "scan",
]

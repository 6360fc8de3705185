"""Parquet data files of a table: writing them, merging several into one, and sorting rows on the disk."""

from __future__ import annotations

from cdc_views.store.files.data_files import PAGES_IN_ROW_GROUP, ROW_GROUP, ROW_GROUP_BYTES, write_rows
from cdc_views.store.files.file_columns import column_places
from cdc_views.store.files.sorted_runs import SortedRuns
from cdc_views.store.files.statistics import bounded_columns

__all__ = [
    "PAGES_IN_ROW_GROUP",
    "ROW_GROUP",
    "ROW_GROUP_BYTES",
    "SortedRuns",
    "bounded_columns",
    "column_places",
    "write_rows",
]

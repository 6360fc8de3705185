"""Parquet data files of a table: writing them, and merging several into one."""

from __future__ import annotations

from cdc_views.store.files.data_files import ROW_GROUP, ROW_GROUP_BYTES, write_rows
from cdc_views.store.files.statistics import bounded_columns

__all__ = [
    "ROW_GROUP",
    "ROW_GROUP_BYTES",
    "bounded_columns",
    "write_rows",
]

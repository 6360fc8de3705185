"""Committing a change to a table: by the driver itself, or through Spark."""

from __future__ import annotations

from cdc_views.store.commits.changes import RowData, Written, WrittenRows
from cdc_views.store.commits.through_spark import frame_of, naming_disk_errors

__all__ = [
    "RowData",
    "Written",
    "WrittenRows",
    "frame_of",
    "naming_disk_errors",
]

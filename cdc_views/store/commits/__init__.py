"""Committing a change to a table: by the driver itself, or through Spark.

changes.py        what a commit changes in a table
table_commits.py  the commit of a table: by the driver where it can, else by Spark
committer.py      a commit without Spark
vectors.py        its layout `vectors`: a deletion vector hides the rows that are gone
plain.py          its layout `plain`: a file that loses rows is replaced
replaced_rows.py  the stored rows that a change replaces or deletes
through_spark.py  a commit through Spark: append, MERGE or RESTORE
"""

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

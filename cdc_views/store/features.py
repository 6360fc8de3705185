"""The protocol and the settings of every table of the warehouse, and the check that they still hold.

Reader 3 and writer 7 with deletion vectors and what writer 7 must list of the older features. Every
further feature locks some reader or writer out: type widening delta-rs, column mapping Polars, row
tracking and clustering the writers of delta-rs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from cdc_views.errors import WrongFeatures
from cdc_views.store.schema import TableSpec, quoted, statistics_columns

READER_FEATURES: Final = ("deletionVectors",)
WRITER_FEATURES: Final = ("deletionVectors", "invariants", "appendOnly")


def protocol() -> dict[str, Any]:
    """The protocol action of a new table."""
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(READER_FEATURES),
        "writerFeatures": list(WRITER_FEATURES),
    }


def table_properties(spec: TableSpec) -> dict[str, str]:
    """The settings of a new table (design 9)."""
    properties = {
        "delta.enableDeletionVectors": "true",
        "delta.checkpointInterval": "100",
        # Every remove younger than this is part of the state that each new version computes anew.
        "delta.deletedFileRetentionDuration": "interval 1 hour",
        # Entries are removed by upkeep alone, which knows what is still read.
        "delta.enableExpiredLogCleanup": "false",
    }
    if columns := statistics_columns(spec):
        properties["delta.dataSkippingStatsColumns"] = ",".join(quoted(column) for column in columns)
    else:
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    return properties


def check_features(table: Path, name: str) -> None:
    """Raises WrongFeatures if the newest version has a feature that our tables must not have."""
    found = DeltaTable(str(table)).protocol()
    extra = (set(found.reader_features or ()) - set(READER_FEATURES)) | (
        set(found.writer_features or ()) - set(WRITER_FEATURES)
    )
    if extra or (found.min_reader_version, found.min_writer_version) != (3, 7):
        raise WrongFeatures(
            f'table "{name}": found protocol reader {found.min_reader_version} writer {found.min_writer_version} '
            f"with {sorted(extra) or 'no further features'}, wanted reader 3 writer 7 with {sorted(WRITER_FEATURES)}",
            hint="somebody altered the table; rebuild it",
        )

"""The protocol and the settings of every table of the warehouse, and the check that they still hold.

Reader 3 and writer 7 with deletion vectors and what writer 7 must list of the older features. Every
further feature locks some reader or writer out: type widening delta-rs, column mapping Polars, row
tracking and clustering the writers of delta-rs. A table of layout `plain` has no feature at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from deltalake import DeltaTable

from cdc_views.errors import WrongFeatures
from cdc_views.store.delta_log.schema import Layout, TableSpec, quoted, statistics_columns

READER_FEATURES: Final = ("deletionVectors",)
WRITER_FEATURES: Final = ("deletionVectors", "invariants", "appendOnly")
# Of layout `plain`, reader and writer: what every reader of Delta has understood since there was Delta.
_PLAIN: Final = (1, 2)


def protocol(layout: Layout) -> dict[str, Any]:
    """The protocol action of a new table."""
    if layout == "plain":
        return {"minReaderVersion": _PLAIN[0], "minWriterVersion": _PLAIN[1]}
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(READER_FEATURES),
        "writerFeatures": list(WRITER_FEATURES),
    }


def table_properties(spec: TableSpec) -> dict[str, str]:
    """The settings of a new table (design 9)."""
    properties = {
        "delta.enableDeletionVectors": "true" if spec.layout == "vectors" else "false",
        # Checkpoints are made by upkeep alone: those of Spark get their name before their content is on the disk.
        "delta.checkpointInterval": str((1 << 31) - 1),
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


def check_features(table: Path, name: str, layout: Layout = "vectors", version: int | None = None) -> None:
    """Raises WrongFeatures if a version, or the newest one, has a feature that our tables must not have."""
    found = DeltaTable(str(table), version=version).protocol()
    readers, writers, versions = (READER_FEATURES, WRITER_FEATURES, (3, 7)) if layout == "vectors" else ((), (), _PLAIN)
    extra = (set(found.reader_features or ()) - set(readers)) | (set(found.writer_features or ()) - set(writers))
    if extra or (found.min_reader_version, found.min_writer_version) != versions:
        raise WrongFeatures(
            f'table "{name}": found protocol reader {found.min_reader_version} writer {found.min_writer_version} '
            f"with {sorted(extra) or 'no further features'}, wanted reader {versions[0]} writer {versions[1]} "
            f"with {sorted(writers) or 'none'}",
            hint="somebody altered the table; rebuild it",
        )

"""The protocol and the settings of every table of the warehouse, and the check that they still hold.

Reader 3 and writer 7 with deletion vectors and the older features that writer 7 must list. Every further feature locks
out some reader or writer: type widening delta-rs, column mapping Polars, row tracking and clustering the writers of
delta-rs. A table of layout `plain` has no feature at all.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
from deltalake import DeltaTable

from cdc_views.errors import WrongFeatures
from cdc_views.store.delta_log.schema import Layout, TableSpec, quoted, statistics_columns

READER_FEATURES: Final = ("deletionVectors",)
WRITER_FEATURES: Final = ("deletionVectors", "invariants", "appendOnly")
KEY: Final = "cdc_views.key"
"""The setting of a table that has its key: the names of the columns, as JSON."""
KIND: Final = "cdc_views.kind"
"""The setting of a view's table that has its kind, as JSON: `{"kind": name}` and what readers of that kind need.

A view of kind `sql` does not have it."""

# Reader and writer of layout `plain`: what every Delta reader has understood from the start.
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
        # Only upkeep writes checkpoints: those of Spark get their name before their content is fsynced.
        "delta.checkpointInterval": str((1 << 31) - 1),
        # Younger `remove` actions are part of the state that Spark computes for each new version.
        "delta.deletedFileRetentionDuration": "interval 1 hour",
        # Only upkeep removes entries: it knows which versions are still read.
        "delta.enableExpiredLogCleanup": "false",
        # Readers do not have the view's definition.
        KEY: orjson.dumps(spec.key).decode(),
    }
    if spec.kind:
        properties[KIND] = orjson.dumps(spec.kind).decode()
    if columns := statistics_columns(spec):
        properties["delta.dataSkippingStatsColumns"] = ",".join(quoted(column) for column in columns)
    else:
        properties["delta.dataSkippingNumIndexedCols"] = "0"
    return properties


def check_features(table: DeltaTable, name: str, layout: Layout = "vectors") -> None:
    """Raise WrongFeatures if the version that is open has a feature that our tables must not have."""
    found = table.protocol()
    readers, writers, versions = (READER_FEATURES, WRITER_FEATURES, (3, 7)) if layout == "vectors" else ((), (), _PLAIN)
    extra = (set(found.reader_features or ()) - set(readers)) | (set(found.writer_features or ()) - set(writers))
    if extra or (found.min_reader_version, found.min_writer_version) != versions:
        raise WrongFeatures(
            f'table "{name}": found protocol reader {found.min_reader_version} writer {found.min_writer_version} '
            f"with {sorted(extra) or 'no further features'}, wanted reader {versions[0]} writer {versions[1]} "
            f"with {sorted(writers) or 'none'}",
            hint="the table was altered from outside; rebuild it",
        )

"""What notifications say of the snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_views.errors import SnapshotInterrupted
from cdc_views.log.snapshot import SnapshotProgress


def after(*notifications: dict[str, Any]) -> SnapshotProgress:
    """The progress after these."""
    progress = SnapshotProgress()
    for notification in notifications:
        progress = progress.after({"aggregate_type": "Initial Snapshot", **notification})
    return progress


STARTED = {"type": "STARTED"}
SCANNED = {"type": "TABLE_SCAN_COMPLETED", "additional_data": {"total_rows_scanned": "12"}}
COMPLETED = {"type": "COMPLETED"}


def test_progress_counts_tables_and_rows() -> None:
    progress = after(STARTED, SCANNED, SCANNED)
    assert (progress.tables_done, progress.rows, progress.completed) == (2, 24, False)


def test_completed_snapshot_stays_so_when_the_connector_restarts() -> None:
    assert after(STARTED, SCANNED, COMPLETED, {"type": "SKIPPED"}).completed


@pytest.mark.parametrize("second", [STARTED, {"type": "ABORTED"}])
def test_snapshot_that_was_cut_off_is_an_error(second: dict[str, Any]) -> None:
    with pytest.raises(SnapshotInterrupted):
        after(STARTED, SCANNED, second)


def test_other_snapshots_do_not_count() -> None:
    assert not SnapshotProgress().after({"aggregate_type": "Incremental Snapshot", "type": "COMPLETED"}).completed

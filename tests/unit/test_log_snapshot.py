"""What notifications say of the snapshot."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_views.errors import SnapshotInterrupted
from cdc_views.log.debezium.snapshot import SnapshotProgress, wait_snapshot
from tests.unit.log_records import log_settings


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


def test_snapshot_that_is_skipped_before_it_was_taken_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_views.log.debezium.snapshot.admin_client", lambda settings: None)
    monkeypatch.setattr("cdc_views.log.debezium.snapshot.begin_offsets", lambda admin, partitions: {})
    monkeypatch.setattr("cdc_views.log.debezium.snapshot.Reader", _Silent)
    told = [{"aggregate_type": "Initial Snapshot", "type": "SKIPPED"}]
    monkeypatch.setattr("cdc_views.log.debezium.snapshot._notifications", lambda reader: told)
    with pytest.raises(SnapshotInterrupted, match="was skipped: Connect has stored offsets of an earlier connector"):
        wait_snapshot(log_settings(), lambda progress: None)


class _Silent:
    def __init__(self, settings: object) -> None:
        pass

    def assign(self, offsets: object) -> None:
        pass

    def close(self) -> None:
        pass

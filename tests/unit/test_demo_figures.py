"""The demo's figures, from control records written by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from cdc_views.demo.figures import changes_of, freshness_s, stage_medians_ms, strategies_taken
from cdc_views.store.control.control_log import ControlRecord

START = datetime(2026, 1, 1, tzinfo=UTC)


def epoch(number: int, marker_s: float, published_s: float, changes: int, views_ms: int = 0) -> ControlRecord:
    detail = {"changes": {"public.t": changes}, "stage_ms": {"views": views_ms}} if changes else {}
    return ControlRecord(
        number, 1, "w", "publish", number, number,
        committed_at=START + timedelta(seconds=marker_s), published_at=START + timedelta(seconds=published_s),
        detail=detail,
    )  # fmt: skip


def test_freshness_is_from_commit_to_publication() -> None:
    records = [epoch(1, 0, 0, 0), epoch(2, 10, 12, 100)]
    p50, p99 = freshness_s(records, since=START)
    # Commits are spread from 0 to 10 s and all published at 12 s.
    assert 6.5 < p50 < 7.5
    assert 11.5 < p99 < 12


def test_freshness_counts_epochs_by_their_changes() -> None:
    records = [epoch(1, 0, 0, 0), epoch(2, 1, 2, 1), epoch(3, 2, 102, 99)]
    assert freshness_s(records, since=START)[0] > 99


def test_strategies_are_counted_by_view() -> None:
    ways = [{"b": "keys", "a": "full"}, {"b": "keys"}, {"b": "full"}]
    records = [replace(epoch(n, n, n, changes=1), detail={"ways": {"view": each}}) for n, each in enumerate(ways)]
    assert strategies_taken(records) == {"a": "1 full", "b": "2 keys, 1 full"}


def test_changes_and_medians_leave_empty_epochs_out() -> None:
    records = [epoch(1, 0, 1, 5, 10), epoch(2, 1, 2, 0), epoch(3, 2, 3, 7, 30)]
    assert [changes_of(record) for record in records] == [5, 0, 7]
    assert stage_medians_ms(records)["views"] == 20

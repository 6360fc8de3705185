"""How long we may have been away."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_views.errors import LogGap
from cdc_views.log.kafka.retention import LogRetention
from cdc_views.log.kafka.topics import Topic, check_topic

HOUR_MS = 3600 * 1000


def topic(lag_ms: int, retention_ms: int, policy: str = "compact") -> Topic:
    """A topic with these settings."""
    lags = {"min.compaction.lag.ms": str(lag_ms), "delete.retention.ms": str(retention_ms)}
    settings = {"cleanup.policy": policy, **lags}
    return Topic("app.public.orders", "id", 4, settings)


def away(seconds: float, every_version: bool = False) -> LogRetention:
    """Be away for so long from a topic that keeps versions for an hour and tombstones for two more."""
    orders = topic(HOUR_MS, 2 * HOUR_MS)
    retention = LogRetention([orders], [orders] if every_version else [])
    retention.start(datetime.fromtimestamp(1_000_000, UTC))
    retention.caught_up(1_000_000 + seconds)
    return retention


def test_away_for_less_than_tombstones_stay_is_good() -> None:
    assert away(2.9 * 3600).validity_s == 3540


def test_away_for_longer_than_tombstones_stay_is_a_gap() -> None:
    with pytest.raises(LogGap):
        away(3.1 * 3600)


def test_away_for_longer_than_versions_stay_is_a_gap_where_all_are_needed() -> None:
    with pytest.raises(LogGap):
        away(1.1 * 3600, every_version=True)


def test_first_cut_has_no_gap() -> None:
    LogRetention([topic(HOUR_MS, 0)], []).caught_up(1_000_000)


def test_topic_that_compacts_within_ten_minutes_is_refused() -> None:
    assert "wanted at least 600000" in check_topic(topic(599_999, HOUR_MS))[0]


def test_topic_that_is_not_only_compacted_is_refused() -> None:
    assert 'wanted "compact"' in check_topic(topic(HOUR_MS, HOUR_MS, "compact,delete"))[0]


def test_look_is_due_once_an_interval_and_after_the_clock_was_set_back() -> None:
    retention = LogRetention([topic(HOUR_MS, 0)], [])
    assert [retention.is_due(now_s) for now_s in (1e6, 1e6 + 1, 1e6 - 3600, 1e6 - 3599)] == [True, False, True, False]

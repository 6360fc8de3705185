"""What is known of the slot, of the services and of the age of each table."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta

import pytest

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.base.rate import Rate
from cdc_views.serve.watch.freshness import Freshness
from cdc_views.serve.watch.offset_bytes import OffsetBytes
from cdc_views.serve.watch.sampled import OVERDUE, Sampled
from cdc_views.serve.watch.status import _slot_line
from cdc_views.serve.watch.wal_times import WalTimes
from cdc_views.serve.watch.watch import TopicState, total
from cdc_views.serve.watch.words import in_words, kept_wal, size_in_words
from cdc_views.store.control import ControlRecord, TableVersion
from tests.logged import logged
from tests.unit.watched import EPOCH, MB, NOON, Watched, backlog
from tests.waiting import wait_for

LIVE = {"v": TableVersion("views/v/1", 1, "live", "view")}
FAILED = {"v": TableVersion("views/v/1", 1, "failed", "view")}


def test_freshness_of_a_failed_view_is_that_of_its_last_good_epoch() -> None:
    later = NOON + timedelta(seconds=40)
    good, failed = replace(EPOCH, tables=LIVE), replace(EPOCH, tables=FAILED, committed_at=later)
    assert Freshness([good, failed]).seconds(later) == {"v": 40}
    assert Freshness([failed, replace(good, committed_at=later)]).seconds(later) == {"v": 0}
    assert Freshness([failed]).seconds(later) == {"v": 0}


def test_freshness_grows_while_nothing_is_published_and_falls_with_an_idle_epoch() -> None:
    fresh = Freshness([replace(EPOCH, tables=LIVE)])
    assert fresh.seconds(NOON + timedelta(seconds=90)) == {"v": 90}
    fresh.take(replace(EPOCH, kind="intent", published_at=None))
    fresh.take(replace(EPOCH, tables=LIVE, detail={}, committed_at=NOON + timedelta(seconds=88)))
    assert fresh.seconds(NOON + timedelta(seconds=90)) == {"v": 2}


def _read(epoch: int, offset: int, size: int) -> ControlRecord:
    """An epoch that ends at an offset and has read this many bytes; without any, one that has not counted them."""
    detail = {"log_bytes": {"public.t": size}} if size else {}
    return replace(EPOCH, seq=epoch, epoch=epoch, offsets={"app.public.t/0": offset}, detail=detail)


def test_bytes_of_a_lag_are_the_mean_of_the_last_epochs() -> None:
    records = [_read(1, 0, 0), _read(2, 10, 1000), _read(3, 30, 1000)]
    sizes = OffsetBytes({"app.public.t": TableName("public", "t")}, records)
    assert sizes.estimate("app.public.t", 3) == 200
    sizes.take(_read(4, 500, 0))  # by Spark: nobody has counted
    sizes.take(replace(_read(5, 9_000, 1), published_at=None))
    assert sizes.estimate("app.public.t", 3) == 200
    sizes.take(_read(6, 700, 1))  # that before it was not seen
    assert sizes.estimate("app.public.t", 3) == 200
    for number in range(1, 10):
        sizes.take(_read(6 + number, 700 + 20_000 * number, 20_000 * 7))
    assert round(sizes.estimate("app.public.t", 1000) or 0, -3) == 7000


def test_bytes_of_a_lag_are_not_known_before_an_epoch_has_counted_them() -> None:
    sizes = OffsetBytes({"app.public.t": TableName("public", "t")})
    assert (sizes.estimate("app.public.t", 3), sizes.estimate("app.public.t", 0)) == (None, 0)
    sizes.take(_read(1, 10, 1000))
    sizes.take(replace(_read(2, 20, 1000), generation="another"))  # its topics are new
    assert sizes.estimate("app.public.t", 3) is None


def test_watch_that_was_not_asked_for_some_epochs_takes_all_of_them() -> None:
    records = [_read(number, 10 * number, 1000) for number in range(1, 6)]
    watched = Watched(records[:2])
    watched.answers.behind = {"app.public.t": 3}
    watched.watch.catch_up([*records[:4], replace(records[4], detail={"log_bytes": {"public.t": 6000}})])
    watched.look()
    assert watched.watch.topics == {"app.public.t": TopicState(3, 675)}  # 9,000 bytes in 40 offsets
    watched.watch.catch_up(records[:1])  # of another control log
    assert watched.watch.freshness.last == records[0]


def test_bytes_of_all_topics_are_not_known_if_those_of_one_are_not() -> None:
    assert total({"a": TopicState(3, 200), "b": TopicState(0, 0)}) == TopicState(3, 200)
    assert total({"a": TopicState(3, 200), "b": TopicState(1000, None)}) == TopicState(1003, None)


def test_lag_of_an_idle_source_does_not_grow() -> None:
    watched = Watched([EPOCH])
    watched.answers.backlog = backlog(confirmed=100, wal_end=100)
    for _ in range(3):
        watched.look(after_s=600)
    assert watched.watch.slot is not None
    assert watched.watch.slot.lag_seconds == 0


def test_lag_of_a_slot_counts_from_when_its_position_was_the_end_of_the_wal() -> None:
    watched = Watched([EPOCH])
    for second in range(1, 61):
        watched.answers.backlog = backlog(confirmed=100, wal_end=100 + second, limit=160)
        watched.look(after_s=1)
    slot = watched.watch.slot
    assert slot is not None
    assert slot.lag_seconds == 60
    assert slot.backlog.lag_bytes == 60 * MB
    assert slot.bytes_per_second == MB
    assert slot.seconds_to_limit == 100
    assert kept_wal(slot) == (
        "Postgres keeps 62.9 MB of WAL for it, and the limit of 167.8 MB will be reached in about 100 s"
    )


def test_moments_of_a_long_outage_are_thinned_and_the_lag_stays() -> None:
    times = WalTimes()
    for second in range(100_000):
        times.add(Lsn(second), NOON + timedelta(seconds=second))
        times.forget_before(Lsn(7))
    assert len(times._times) <= 2000
    assert times.since(Lsn(7)) is not None
    assert times.since(Lsn(7)) <= NOON + timedelta(seconds=60)  # type: ignore[operator]
    assert times.bytes_per_second() == pytest.approx(1)


def test_moments_of_another_server_are_forgotten_after_a_failover() -> None:
    times = WalTimes()
    times.add(Lsn(0x9000), NOON)
    for second in range(1, 4):
        times.add(Lsn(second * 0x100), NOON + timedelta(seconds=second))
    assert times.since(Lsn(0x100)) == NOON + timedelta(seconds=1)
    assert times.bytes_per_second() == pytest.approx(0x100)


def test_error_after_a_look_does_not_end_the_looking(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise ValueError("of a caller")

    sampled = Sampled(lambda: 1, 0.01, limit_s=1, on_look=fail)
    sampled.look()
    sampled.look()
    assert (sampled.value, sampled.failure, len(caplog.records)) == (1, None, 2)


def test_rate_is_over_the_last_minute() -> None:
    rate = Rate(timedelta(minutes=1))
    assert rate.per_second() is None
    for second, value in ((0, 1000), (30, 1000), (60, 1300), (90, 1600)):
        rate.add(value, NOON + timedelta(seconds=second))
    assert rate.per_second() == 10
    rate.add(5, NOON + timedelta(seconds=100))  # of a topic that was created again
    assert rate.per_second() is None
    rate.add(25, NOON + timedelta(seconds=110))
    assert rate.per_second() == 2


def test_slot_without_a_limit_is_named_as_one() -> None:
    watched = Watched()
    watched.answers.backlog = backlog(confirmed=100, wal_end=103)
    watched.look()
    slot = watched.watch.slot
    assert slot is not None
    assert slot.seconds_to_limit is None
    assert kept_wal(slot) == "Postgres keeps 3.1 MB of WAL for it, without a limit (max_slot_wal_keep_size)"


def test_slot_that_was_idle_for_too_long_is_named_as_one() -> None:
    watched = Watched()
    watched.answers.backlog = replace(
        backlog(confirmed=100, wal_end=103, wal_status="lost"), invalidation="idle_timeout"
    )
    watched.look()
    slot = watched.watch.slot
    assert slot is not None
    assert kept_wal(slot) == "nobody has used it for as long as idle_replication_slot_timeout allows"


def test_slot_in_status_is_unknown_gone_or_behind() -> None:
    watched = Watched([EPOCH])
    lines = [_slot_line(watched.watch)]
    watched.look()
    lines.append(_slot_line(watched.watch))
    for second in range(1, 61):
        watched.answers.backlog = backlog(confirmed=100, wal_end=100 + second)
        watched.look(after_s=1)
    lines.append(_slot_line(watched.watch))
    watched.answers.backlog = backlog(confirmed=100, wal_end=160, limit=160)  # which has no reader
    watched.look(after_s=1)
    lines.append(_slot_line(watched.watch))
    assert [line.removeprefix('slot "cdc_views": ') for line in lines] == [
        "no answer",
        "gone",
        "62.9 MB behind (60 s), keeps 62.9 MB of WAL without a limit",
        "62.9 MB behind (61 s), keeps 62.9 MB of WAL of at most 167.8 MB, reached in about 102 s, nobody reads from it",
    ]


def test_service_that_does_not_return_is_overdue_and_delays_nobody() -> None:
    go_on = threading.Event()
    sampled = Sampled(go_on.wait, 0.01, limit_s=0.02)
    sampled.start()
    wait_for(lambda: sampled.failure == OVERDUE, 10)
    assert sampled.value is None
    go_on.set()
    wait_for(lambda: sampled.value, 10)
    sampled.close()


def test_look_that_raises_is_counted_and_its_value_is_not_repeated() -> None:
    watched = Watched([EPOCH])
    watched.answers.behind = {"app.public.t": 3}
    watched.look()
    assert watched.watch.kafka.value == {"app.public.t": 3}
    watched.answers.behind = None
    watched.look()
    assert (watched.watch.kafka.value, watched.watch.kafka.failure) == (None, "NotRunning")
    assert watched.watch.kafka.failures == {"NotRunning": 1}


def test_connector_that_stops_is_logged_with_what_is_kept_for_it_and_again_each_minute() -> None:
    watched = Watched([EPOCH])
    watched.answers.backlog = backlog(confirmed=100, wal_end=101, limit=1000)
    with logged() as said:
        watched.look()
        watched.answers.state = None
        watched.look(after_s=2)
        assert said == []  # one look alone may fail
        watched.look(after_s=4)
        watched.look(after_s=4)
        assert len(said) == 1
        assert said[0].startswith(
            'Kafka Connect does not answer, so connector "cdc-views" may not run: '
            "Postgres keeps 1.0 MB of WAL for it, and the limit of 1.0 GB "
        )
        watched.look(after_s=60)
        assert len(said) == 2
        watched.answers.state = "RUNNING"
        watched.look(after_s=4)
        watched.look(after_s=4)
    assert said[2:] == ['connector "cdc-views" runs again, after 72 s']


def test_connector_that_was_deleted_is_logged_although_its_state_is_that_of_one_that_starts() -> None:
    watched = Watched()
    with logged() as said:
        watched.look()
        watched.answers.state = "STARTING"
        watched.look(after_s=20)
        assert said == []
        watched.look(after_s=20)
        watched.look(after_s=2)
    assert [line.partition(":")[0] for line in said] == [
        'the task of connector "cdc-views" is STARTING, wanted RUNNING'
    ]


def test_failed_task_is_logged_and_a_starting_one_is_not() -> None:
    watched = Watched()
    with logged() as said:
        watched.answers.state = "STARTING"
        for _ in range(3):
            watched.look(after_s=2)
        assert said == []
        watched.answers.state = "FAILED"
        for _ in range(3):
            watched.look(after_s=2)
    assert said == ['the task of connector "cdc-views" is FAILED, wanted RUNNING: Postgres does not answer either']


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0.4 s"), (42, "42 s"), (125, "2 min"), (9000, "2.5 h"), (200_000, "2.3 days")]
)
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


@pytest.mark.parametrize(("count", "words"), [(12, "12 bytes"), (1200, "1.2 kB"), (34e5, "3.4 MB"), (5e9, "5.0 GB")])
def test_sizes_in_words(count: float, words: str) -> None:
    assert size_in_words(count) == words

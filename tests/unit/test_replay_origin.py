"""From where a rebuild reads, and in which steps it catches up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_views.engine.input.bulk import Progress
from cdc_views.errors import BadReplay
from cdc_views.log.kafka.record import TopicPartition
from cdc_views.replay.origin import Origin, parse_origin
from cdc_views.replay.shadow_tables import MOST_OFFSETS, steps
from cdc_views.store.control.control_log import ControlRecord

ONE = TopicPartition("a.b/c", 0)


@pytest.mark.parametrize(
    ("start", "onto", "origin"),
    [
        ("earliest", None, Origin("earliest")),
        ("snapshot", None, Origin("snapshot")),
        ("epoch:12", None, Origin("epoch", 12)),
        ("offset:app.public.t/3/40", "epoch:2", Origin("offset", 2, TopicPartition("app.public.t", 3), 40)),
    ],
)
def test_parse_origin_reads_each_form(start: str, onto: str | None, origin: Origin) -> None:
    assert parse_origin(start, onto) == origin


@pytest.mark.parametrize(
    ("start", "onto", "problem"),
    [
        ("latest", None, "is not an origin of a rebuild"),
        ("epoch:", None, "is not an origin of a rebuild"),
        ("epoch:-1", None, "is not an origin of a rebuild"),
        ("offset:app.public.t/3/40", None, "needs an epoch to replay onto"),
        ("offset:app.public.t/3/40", "5", '--onto is "5"'),
        ("offset:app.public.t/3", "epoch:5", "--onto"),
        ("earliest", "epoch:5", "--onto"),
    ],
)
def test_parse_origin_refuses_what_is_no_place(start: str, onto: str | None, problem: str) -> None:
    with pytest.raises(BadReplay, match=problem):
        parse_origin(start, onto)


def test_progress_tells_rate_and_time_left() -> None:
    progress = Progress("t", 30, 120, 2.0)
    assert (progress.per_second, progress.seconds_left) == (15.0, 6.0)
    assert Progress("t", 0, 120, 2.0).seconds_left is None


def epoch_at(number: int, offset: int) -> ControlRecord:
    return ControlRecord(number, 1, "w", "publish", number, number, offsets={str(ONE): offset})


def test_steps_end_at_the_target_and_stay_small_where_epochs_allow_it() -> None:
    offsets = [0, 10, MOST_OFFSETS, MOST_OFFSETS + 20, MOST_OFFSETS + 30, 5 * MOST_OFFSETS, 5 * MOST_OFFSETS + 1]
    epochs = [epoch_at(number, offset) for number, offset in enumerate(offsets, 1)]
    taken = [epoch.epoch for epoch in steps(epochs, epochs[0], epochs[-1])]
    assert taken == [3, 5, 6, 7]
    assert list(steps(epochs, epochs[-1], epochs[-1])) == []
    assert list(steps([replace(epochs[0], seq=9)], epochs[0], epochs[1])) == []

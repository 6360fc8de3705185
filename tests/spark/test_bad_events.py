"""Bad events in the topics of a harness: stopped at, parked, tried again, discarded; with crashes in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyspark.sql import SparkSession

from cdc_views.engine.input.quarantine import Entry
from cdc_views.errors import BadEvent, UnknownEvent, UnsupportedType
from cdc_views.errors.log_offset import LogOffset
from cdc_views.replay.bad_events import listed
from cdc_views.store.control.control_log import read_control
from cdc_views.testing import Delete, HandClock, Insert, Update, ViewHarness
from cdc_views.testing.memory.memory_log import TOAST_BYTES

TABLES = [
    "CREATE TABLE t (id bigint PRIMARY KEY, n double precision, body text)",
    "CREATE TABLE other (id bigint PRIMARY KEY, n int)",
]
TOTAL = "CREATE MATERIALIZED VIEW total (rows, n) AS SELECT count(*), sum(CAST(n AS DECIMAL(12,2))) FROM t"
LONG, LONGER = "l" * (TOAST_BYTES + 1), "m" * (TOAST_BYTES + 1)

Start = Callable[[str], ViewHarness]


@pytest.fixture
def start(tmp_path: Path, spark: SparkSession) -> Iterator[Start]:
    """Make a harness with this setting of on_bad_event; keys 1 to 3 of `t` are there."""
    with ExitStack() as resources:

        def make(on_bad_event: Any) -> ViewHarness:
            made = ViewHarness(TABLES, spark, warehouse=tmp_path, clock=HandClock(), on_bad_event=on_bad_event)
            harness = resources.enter_context(made)
            harness.apply([Insert("t", {"id": key, "n": key, "body": LONG}) for key in (1, 2, 3)])
            return harness

        yield make


def key(number: int) -> bytes:
    return orjson.dumps({"id": number})


def event(harness: ViewHarness, op: str, number: int, n: Any, body: Any = "x") -> bytes:
    """An event of `t` as of now."""
    commit, lsn = str(int(harness.position)), str(int(harness.position) + 1)
    source = {"sequence": orjson.dumps([commit, lsn]).decode(), "ts_ms": 0, "ts_us": 0}
    after = None if op == "d" else {"id": number, "n": n, "body": body}
    return orjson.dumps({"op": op, "before": None, "after": after, "source": source})


def mirror(harness: ViewHarness) -> dict[int, Any]:
    return {number: n for number, n, _ in harness.rows("t")}


def states(harness: ViewHarness) -> list[tuple[int, str]]:
    """The events in quarantine: their key and state."""
    found = sorted(entries(harness), key=lambda each: (each.record.key(), each.place))
    return [(orjson.loads(each.record.key() or b"{}").get("id", 0), each.state) for each in found]


def entries(harness: ViewHarness) -> list[Entry]:
    return listed(harness.warehouse)


def assert_stopped(harness: ViewHarness, place: LogOffset, raw: bytes | None) -> None:
    before = [record for record in harness.records if record.published_at is not None]
    with pytest.raises(BadEvent) as error:
        harness.run_epoch()
    assert str(place) in error.value.message
    assert "secret" not in str(error.value)
    assert [record for record in harness.records if record.published_at is not None] == before
    [entry] = entries(harness)
    assert (entry.place, entry.record.value(), entry.state, entry.table) == (place, raw, "stopped", "public.t")
    assert "secret" not in entry.reason


@pytest.mark.parametrize("raw", [b"secret{", b'"secret"', b'{"op":"u","source":{"sequence":"[1]"}}', b"\xff\xfe"])
def test_event_that_is_no_json_stops_before_it_and_is_kept(start: Start, raw: bytes) -> None:
    harness = start("stop")
    place = harness.put("t", key(1), raw)
    assert_stopped(harness, place, raw)
    with pytest.raises(BadEvent):
        harness.restart()  # again, and it is kept once
    assert len(entries(harness)) == 1


def test_value_of_another_shape_stops_with_its_offset(start: Start) -> None:
    harness = start("stop")
    raw = event(harness, "u", 1, {"secret": 1})
    assert_stopped(harness, harness.put("t", key(1), raw), raw)


def test_value_that_delta_cannot_hold_stops_with_its_offset(start: Start) -> None:
    harness = start("stop")
    place = harness.put("t", key(1), event(harness, "u", 1, "NaN"))
    with pytest.raises(UnsupportedType) as error:
        harness.run_epoch()
    assert error.value.message.startswith(str(place))


def test_discard_of_what_stopped_lets_the_next_start_go_on(start: Start) -> None:
    harness = start("stop")
    places = [harness.put("t", key(1), b"{"), harness.put("t", key(2), b"}")]
    with pytest.raises(BadEvent):
        harness.run_epoch()
    assert states(harness) == [(1, "stopped"), (2, "stopped")]
    harness.discard(places[0])
    with pytest.raises(BadEvent, match=f"offset {places[1].offset}"):
        harness.restart()
    harness.discard(places[1])
    harness.restart()
    harness.apply([Insert("other", {"id": 1, "n": 1})])
    assert mirror(harness) == {1: 1, 2: 2, 3: 3}
    assert states(harness) == [(1, "discarded"), (2, "discarded")]
    last = harness.records[-1]
    assert last.tables["public.t"].status == "discarded"
    assert last.detail["discarded"] == {"public.t": 2}


def test_discarded_event_is_forgotten_when_a_whole_row_follows(start: Start) -> None:
    harness = start("stop")
    place = harness.put("t", key(1), b"{")
    with pytest.raises(BadEvent):
        harness.run_epoch()
    harness.discard(place)
    harness.restart()
    harness.apply([Update("t", {"id": 1}, {"n": 7.0, "body": "new"})])
    assert mirror(harness)[1] == 7.0
    assert (entries(harness), harness.records[-1].tables["public.t"].status) == ([], "live")


def test_unchanged_text_after_a_discarded_event_is_parked(start: Start) -> None:
    harness = start("park")
    place = harness.put("t", key(1), b"{")
    harness.run_epoch()
    harness.discard(place)
    harness.apply([Update("t", {"id": 1}, {"n": 7.0})])  # the text is in no event, and may be in the discarded one
    assert states(harness) == [(1, "discarded"), (1, "bad")]
    assert '"body" was left unchanged' in entries(harness)[1].reason
    assert mirror(harness)[1] == 1


def test_park_keeps_the_last_good_row_and_everything_else_goes_on(start: Start) -> None:
    harness = start("park")
    harness.create_view(TOTAL)
    harness.put("t", key(1), b"{")
    harness.apply([Update("t", {"id": 1}, {"n": 10.0, "body": "x"}), Update("t", {"id": 2}, {"n": 20.0})])
    harness.apply([Delete("t", {"id": 1}), Insert("other", {"id": 1, "n": 1})])
    assert mirror(harness) == {1: 1, 2: 20, 3: 3}
    assert harness.rows("total") == [(3, 24.0)]
    assert states(harness) == [(1, "bad"), (1, "waiting"), (1, "waiting"), (1, "waiting")]
    last = harness.records[-1]
    assert last.tables["public.t"].status == "parked"
    assert last.tables["public.other"].status == "live"
    assert last.detail["parked"] == {"public.t": 1}
    assert harness.run_epoch(idle_interval_s=0).detail["parked"] == {"public.t": 1}  # type: ignore[union-attr]


def test_bad_value_that_a_later_event_of_the_epoch_replaces_is_no_matter(start: Start) -> None:
    harness = start("park")
    harness.put("t", key(1), event(harness, "u", 1, "NaN"))
    harness.put("t", key(2), event(harness, "u", 2, "NaN"))
    harness.put("t", key(1), event(harness, "u", 1, 5.0))
    harness.run_epoch()
    assert (mirror(harness)[1], states(harness)) == (5.0, [(2, "bad")])


def test_good_changes_before_a_bad_one_of_the_same_epoch_are_applied(start: Start) -> None:
    harness = start("park")
    harness.put("t", key(1), event(harness, "u", 1, 5.0))
    harness.put("t", key(1), event(harness, "u", 1, [5]))
    harness.put("t", key(1), event(harness, "u", 1, "x"))
    harness.put("t", b"not a key", event(harness, "u", 1, 1.0))
    harness.run_epoch()
    assert mirror(harness) == {1: 5.0, 2: 2, 3: 3}
    assert sorted(states_of(entries(harness))) == ["bad", "bad", "waiting"]


def states_of(found: list[Entry]) -> list[str]:
    return [each.state for each in found]


def test_row_that_moves_from_a_parked_key_parks_the_new_key(start: Start) -> None:
    harness = start("park")
    harness.put("t", key(1), b"{")
    harness.apply([Update("t", {"id": 1}, {"id": 9})])
    harness.apply([Update("t", {"id": 9}, {"n": 90.0})])
    assert mirror(harness) == {1: 1, 2: 2, 3: 3}
    assert {number for number, _ in states(harness)} == {1, 9}
    bad = next(each.place for each in entries(harness) if each.state == "bad")
    harness.discard(bad)
    # The text was not changed since the discarded event, which may have changed it.
    assert mirror(harness) == {2: 2, 3: 3}
    assert set(states(harness)) >= {(9, "bad")}
    harness.apply([Update("t", {"id": 9}, {"body": "whole"})])
    harness.retry()
    assert mirror(harness) == {2: 2, 3: 3, 9: 90.0}
    assert (entries(harness), harness.records[-1].tables["public.t"].status) == ([], "live")


def test_retry_applies_what_is_good_now_and_leaves_the_rest(start: Start) -> None:
    harness = start("park")
    harness.put("t", key(1), event(harness, "u", 1, "NaN"))
    harness.put("t", key(2), event(harness, "u", 2, "NaN"))
    harness.run_epoch()
    harness.apply([Update("t", {"id": 1}, {"n": 11.0, "body": "x"})])
    assert states(harness) == [(1, "bad"), (1, "waiting"), (2, "bad")]
    record = harness.retry()
    assert mirror(harness) == {1: 11.0, 2: 2, 3: 3}
    assert states(harness) == [(2, "bad")]
    assert record.detail["parked"] == {"public.t": 1}


@pytest.mark.proves(
    wrong="`cdc-views quarantine retry` or `discard` names an event that is not in quarantine",
    seen="`UnknownEvent`",
    do="run `cdc-views quarantine list`",
)
def test_retry_of_one_key_leaves_the_others(start: Start) -> None:
    harness = start("park")
    first = harness.put("t", key(1), event(harness, "u", 1, "NaN"))
    harness.put("t", key(2), event(harness, "u", 2, "NaN"))
    harness.run_epoch()
    harness.apply([Update("t", {"id": number}, {"n": 11.0, "body": "x"}) for number in (1, 2)])
    harness.retry(first)
    assert mirror(harness) == {1: 11.0, 2: 2, 3: 3}
    with pytest.raises(UnknownEvent):
        harness.retry(first)


def test_discard_applies_the_later_changes_of_the_key(start: Start) -> None:
    harness = start("park")
    place = harness.put("t", key(1), b"{")
    harness.apply([Update("t", {"id": 1}, {"n": 10.0, "body": "x"})])
    harness.discard(place)
    assert (mirror(harness)[1], entries(harness)) == (10.0, [])


def test_parked_keys_stay_parked_when_the_setting_is_stop_again(start: Start) -> None:
    harness = start("park")
    harness.put("t", key(1), b"{")
    harness.run_epoch()
    harness.on_bad_event = "stop"
    harness.restart()
    harness.apply([Update("t", {"id": 1}, {"n": 10.0, "body": "x"})])
    assert (mirror(harness)[1], states(harness)) == (1, [(1, "bad"), (1, "waiting")])
    harness.put("t", key(2), b"{")
    with pytest.raises(BadEvent):
        harness.run_epoch()


def test_event_that_stopped_is_parked_when_the_setting_is_park(start: Start) -> None:
    harness = start("stop")
    harness.put("t", key(1), b"{")
    with pytest.raises(BadEvent):
        harness.run_epoch()
    harness.on_bad_event = "park"
    harness.restart()
    assert states(harness) == [(1, "bad")]
    assert mirror(harness) == {1: 1, 2: 2, 3: 3}


def test_warehouse_without_bad_events_has_no_quarantine(start: Start) -> None:
    harness = start("stop")
    harness.restart()
    assert not (harness.warehouse / "_quarantine").exists()
    assert "_quarantine" not in harness.records[-1].tables


POINTS = ("epoch.after_intent", "quarantine.after_commit", "mirrors.after_first_commit", "epoch.before_publish")


@pytest.mark.parametrize("point", POINTS)
def test_crash_while_parking_is_repeated_and_leaves_the_same(start: Start, point: str) -> None:
    harness = start("park")
    harness.put("t", key(1), b"{")
    with harness.crash_at(point):
        harness.apply([Update("t", {"id": 1}, {"n": 10.0, "body": "x"}), Update("t", {"id": 2}, {"n": 20.0})])
    harness.restart()
    assert mirror(harness) == {1: 1, 2: 20, 3: 3}
    assert states(harness) == [(1, "bad"), (1, "waiting")]
    assert harness.records[-1].detail["parked"] == {"public.t": 1}
    assert [record.kind for record in read_control(harness.warehouse)].count("abandon") == 0


@pytest.mark.parametrize("point", POINTS)
def test_crash_while_trying_again_takes_it_back(start: Start, point: str) -> None:
    harness = start("park")
    harness.put("t", key(1), event(harness, "u", 1, "NaN"))
    harness.run_epoch()
    harness.apply([Update("t", {"id": 1}, {"n": 11.0, "body": "x"})])
    before = states(harness)
    with harness.crash_at(point):
        harness.retry()
    harness.restart()
    assert (mirror(harness), states(harness)) == ({1: 1, 2: 2, 3: 3}, before)
    harness.retry()
    assert (mirror(harness)[1], entries(harness)) == (11.0, [])


def test_crash_in_an_epoch_with_parked_keys_then_stop_is_abandoned(start: Start) -> None:
    harness = start("park")
    harness.put("t", key(1), b"{")
    with harness.crash_at("quarantine.after_commit"):
        harness.apply([Update("t", {"id": 2}, {"n": 20.0})])
    harness.on_bad_event = "stop"
    with pytest.raises(BadEvent):
        harness.restart()
    assert states(harness) == [(1, "stopped")]
    harness.on_bad_event = "park"
    harness.restart()
    assert (mirror(harness), states(harness)) == ({1: 1, 2: 20, 3: 3}, [(1, "bad")])

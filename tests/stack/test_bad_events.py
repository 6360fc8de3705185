"""Bad records in a captured table's topic, by a producer that is not the connector's: stopped at, discarded, parked."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from confluent_kafka import Producer

from cdc_views.base.names import TableName
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.topics import topic_name
from cdc_views.replay.bad_events import listed
from cdc_views.store.control.control_log import read_control
from tests.fix_project import SOURCE, Project
from tests.logged import messages
from tests.waiting import wait_for

PARK = ("--set", "log.on_bad_event=park")
SECRET = "s3cret"
LARGE = 4_000_000  # bytes; Debezium may write 10 MiB
LIMIT_S = 120


def put(project: Project, key: bytes, value: bytes) -> LogOffset:
    """Write a record into the topic of accounts, in the partition of the key; returns where it is."""
    log, placed = project.capture.settings.log, list[LogOffset]()
    # As Java's producer chooses the partition of a key.
    producer = Producer({"bootstrap.servers": log.bootstrap_servers, "partitioner": "murmur2_random", "log_level": 2,
                         "message.max.bytes": 2 * LARGE})  # fmt: skip

    def told(error: object, message: object) -> None:
        assert error is None
        placed.append(LogOffset(message.topic(), message.partition(), message.offset()))  # type: ignore[attr-defined]

    producer.produce(topic_name(log.topic_prefix, TableName("public", "accounts")), value, key, on_delivery=told)
    assert producer.flush(30) == 0
    return placed[0]


def quarantined(project: Project) -> list[tuple[str, int, int, str]]:
    """Topic, partition, offset and state, as the command prints them."""
    done = project.here("quarantine", "list", "--json")
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [(row["topic"], row["partition"], row["offset"], row["state"]) for row in rows]


def words(place: LogOffset) -> tuple[str, ...]:
    return tuple(map(str, place))


def is_equal(project: Project) -> bool:
    return project.has_published() and all(project.rows(name) == project.expected(name) for name in SOURCE)


@pytest.mark.proves(
    wrong="A record that Debezium did not write, or one with another structure",
    seen="`BadEvent` with topic, partition and offset; with `log.on_bad_event: park` its key is parked",
    do="see [bad_events.md](bad_events.md)",
)
def test_bad_record_stops_the_engine_then_is_discarded_and_the_next_is_parked(project: Project) -> None:
    project.capture.start()
    raw = f'{{"op":"u","{SECRET}"'.encode() + b" " * LARGE
    first = put(project, b'{"id":1}', raw)
    project.database.execute("UPDATE accounts SET balance = balance + 1 WHERE id IN (1, 3)")
    stopped = project.here("run", "--until-caught-up")
    assert stopped.returncode == 1, stopped.stderr
    assert f"BadEvent: {first}: " in stopped.stderr
    assert SECRET not in stopped.stderr
    assert not project.has_published()
    assert quarantined(project) == [(*first, "stopped")]
    [entry] = listed(project.warehouse)
    assert (entry.record.key(), entry.record.value()) == (b'{"id":1}', raw)

    discarded = project.here("quarantine", "discard", *words(first))
    assert discarded.returncode == 0, discarded.stderr
    with project.start(*PARK, "run") as engine:
        try:
            wait_for(lambda: is_equal(project), LIMIT_S)
            assert quarantined(project) == []  # the update after it has the whole row
            second = put(project, b'{"id":2}', b"null")
            project.database.execute("UPDATE accounts SET balance = balance + 7 WHERE id IN (2, 3)")
            wait_for(lambda: has_parked(project, second), LIMIT_S)
            retried = project.here("quarantine", "retry", *words(second))
            assert retried.returncode == 0, retried.stderr
            assert "1 keys are still parked" in retried.stderr
            discarded = project.here("quarantine", "discard", *words(second))
            assert discarded.returncode == 0, discarded.stderr
            assert "0 keys are still parked" in discarded.stderr
            assert engine.poll() is None
        finally:
            engine.terminate()
            _, said = engine.communicate(timeout=60)
    parked = 'table "public.accounts" has 1 parked keys: see "cdc-views quarantine list"'
    assert parked in messages(said)
    assert listed(project.warehouse) == []
    project.assert_equal_to_postgres()


def has_parked(project: Project, bad: LogOffset) -> bool:
    """Whether the bad event of key 2 and the update after it are parked, and all else is applied."""
    if [(each.place, each.state) for each in listed(project.warehouse)][:1] != [(bad, "bad")]:
        return False
    shown = {row["table"]: row for row in map(json.loads, project.here("status", "--json").stdout.splitlines())}
    assert shown.keys() == {"public.accounts", "balances"}
    wanted = {row[0]: row for row in project.expected("public.accounts")}
    equal = {row[0]: row == wanted[row[0]] for row in project.rows("public.accounts")}
    is_parked = (shown["public.accounts"]["status"], shown["public.accounts"]["parked"]) == ("parked", 1)
    return is_parked and len(listed(project.warehouse)) == 2 and equal == {1: True, 2: False, 3: True}


@pytest.mark.nightly
def test_bad_record_in_a_bulk_reading_stops_with_its_offset_or_is_parked(project: Project) -> None:
    bulk = ("--set", "log.bulk_offsets=1")
    project.capture.start()
    raw = f'{{"op":"u","{SECRET}"'.encode()
    bad = put(project, b'{"id":2}', raw)
    stopped = project.here(*bulk, "run", "--until-caught-up")
    assert stopped.returncode == 1, stopped.stderr
    assert f"BadEvent: {bad}: " in stopped.stderr
    assert SECRET not in stopped.stderr
    [entry] = listed(project.warehouse)
    assert (entry.place, entry.record.value(), entry.state) == (bad, raw, "stopped")

    shutil.rmtree(project.warehouse)
    jvm: Any = project.spark._jvm
    jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # it keeps what it has read, by path
    of_no_row = put(project, b"null", raw)
    parked = project.here(*bulk, *PARK, "run", "--until-caught-up")
    assert parked.returncode == 0, parked.stderr
    assert [record.kind for record in read_control(project.warehouse)].count("abandon") == 1
    assert {(each.place, each.state) for each in listed(project.warehouse)} == {(bad, "bad"), (of_no_row, "bad")}
    project.assert_equal_to_postgres()  # the bad events have changed nothing there


@pytest.mark.proves(
    wrong="A table with parked keys is rebuilt from a snapshot and swapped in",
    seen="its rows equal Postgres again, and no key is parked; a rollback to an earlier epoch raises `BadReplay`",
    do="nothing; run `cdc-views rebuild TABLE --from snapshot --swap` where an event is lost for good",
)
@pytest.mark.nightly
def test_table_with_a_parked_key_is_whole_again_after_a_rebuild(project: Project) -> None:
    project.capture.start()
    assert project.here(*PARK, "run", "--until-caught-up").returncode == 0
    bad = put(project, b'{"id":2}', b"null")
    project.database.execute("UPDATE accounts SET balance = balance + 7 WHERE id IN (2, 3)")
    parked = project.here(*PARK, "run", "--until-caught-up")
    assert parked.returncode == 0, parked.stderr
    assert [(each.place, each.state) for each in listed(project.warehouse)][:1] == [(bad, "bad")]
    assert project.rows("public.accounts") != project.expected("public.accounts")

    rebuilt = project.here(*PARK, "rebuild", "accounts", "--from", "snapshot", "--swap")
    assert rebuilt.returncode == 0, rebuilt.stderr
    assert listed(project.warehouse) == []
    project.assert_equal_to_postgres()

    back = project.here(*PARK, "rollback", "accounts")
    assert back.returncode != 0
    assert "BadReplay: " in back.stderr
    assert "has parked events" in back.stderr
    project.database.execute("UPDATE accounts SET balance = balance + 7 WHERE id IN (2, 3)")
    assert project.here(*PARK, "run", "--until-caught-up").returncode == 0
    project.assert_equal_to_postgres()

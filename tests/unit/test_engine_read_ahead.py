"""When the next piece of a table is read ahead, and when what was read is not taken."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pydantic import SecretStr

from cdc_views.base.names import TableName
from cdc_views.config import Settings, SourceSettings
from cdc_views.engine.capture import read_ahead
from cdc_views.engine.capture.declared import Declared
from cdc_views.engine.capture.read_ahead import ReadAhead, Reading, TableAhead
from cdc_views.engine.input.bulk import Ahead, BulkReader, Progress
from cdc_views.engine.input.bulk_files import Range
from cdc_views.engine.tables import mirror_spec
from cdc_views.errors import BadEvent, NotRunning
from cdc_views.log.kafka.record import Offsets, TopicPartition
from cdc_views.log.kafka.topics import Topic
from cdc_views.source.catalog import SourceIdentity
from cdc_views.store.commits.changes import Written
from cdc_views.testing.memory.ddl import PLACEHOLDER, read_tables
from tests.logged import logged
from tests.unit.log_records import log_settings
from tests.waiting import wait_for

A, B = (TopicPartition("t", number) for number in (0, 1))
[TABLE] = read_tables("CREATE TABLE t (id bigint PRIMARY KEY)")
SPEC = mirror_spec(TABLE.source, "generation")
END = {A: 50, B: 0}
START = {A: 10, B: 0}
LIMIT_S = 10
LATER = datetime.now(UTC) + timedelta(days=1)
PAST = datetime.now(UTC) - timedelta(hours=1)
NOTHING = Written([], pa.table({"id": pa.array([], pa.int64())}))


def table_ahead() -> TableAhead:
    begin = {A: 10, B: 0}
    read = {each: Range(each, at, at) for each, at in begin.items()}
    return TableAhead(TABLE.source, SPEC, begin, read, {A: 3, B: 3}, LATER, ends=begin, moved_s=0)


def due(table: TableAhead, now_s: float, a: int, b: int) -> list[tuple[int, int]]:
    return [(piece.start, piece.end) for piece in table.due({A: a, B: b}, now_s)]


def test_piece_is_due_when_it_is_long_enough_or_nothing_comes_any_more() -> None:
    table = table_ahead()
    assert due(table, 0, 25_009, 20) == []
    assert due(table, 1, 100_010, 20) == [(10, 100_010)]
    table.take_in(Range(A, 10, 100_010), NOTHING)
    assert due(table, 2, 150_009, 20) == []
    assert due(table, 3, 150_010, 99) == [(100_010, 150_010)]
    assert due(table, 4.9, 150_009, 99) == []
    assert due(table, 6.8, 150_009, 99) == []
    assert due(table, 6.9, 150_009, 99) == [(100_010, 150_009), (0, 99)]
    assert due(table, 7, 10_000_000, 99) == [(100_010, 500_010)]


def test_progress_is_of_all_that_the_topic_has_so_far() -> None:
    table = table_ahead()
    table.due({A: 40_010, B: 10_000}, 0)
    table.take_in(Range(A, 10, 30_010), NOTHING)
    table.reading_s = 2
    progress = table.progress(Progress("public.t", done=5000, total=20_000, seconds=3))
    assert progress == Progress("public.t", done=35_000, total=50_000, seconds=5)
    assert (progress.per_second, progress.seconds_left) == (7000, 15_000 / 7000)


def new_reading(spark: Any = None) -> Reading:
    return Reading(*project(), lambda: spark)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is logged."""
    with logged() as messages:
        yield messages


def project() -> tuple[Settings, Declared]:
    source = SourceSettings(dsn=SecretStr("none"), tables=(TableName("public", "t"),))
    return Settings(source=source, log=log_settings()), Declared([TABLE.source], SourceIdentity("1", 1, 17), [])


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    reading = new_reading()
    table = table_ahead()
    table.take_in(Range(A, 10, 50), NOTHING)
    reading.tables[SPEC.name] = table
    monkeypatch.setattr(read_ahead, "committed_ends", lambda admin, partitions: ({}, {A: 3, B: 3}))
    return reading


def test_what_was_read_is_taken_once(reading: Reading) -> None:
    taken = reading.take(TABLE.source, SPEC, START, END)
    assert taken == Ahead({A: Range(A, 50, 50, (NOTHING,)), B: Range(B, 0, 0)}, LATER)
    assert reading.take(TABLE.source, SPEC, START, END) is None


def test_what_was_read_from_another_offset_is_not_taken(reading: Reading) -> None:
    assert reading.take(TABLE.source, SPEC, {A: 11, B: 0}, END) is None


def test_what_was_read_beyond_the_cut_is_not_taken(reading: Reading) -> None:
    assert reading.take(TABLE.source, SPEC, START, {A: 49, B: 0}) is None


def test_what_was_read_of_other_topics_is_not_taken(reading: Reading) -> None:
    assert reading.take(TABLE.source, mirror_spec(TABLE.source, "another"), START, END) is None


def test_what_was_read_of_another_table_is_not_taken(reading: Reading) -> None:
    source = replace(TABLE.source, replica_identity="full")
    assert reading.take(source, SPEC, START, END) is None


def test_what_was_read_under_another_leader_is_not_taken(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "committed_ends", lambda admin, partitions: ({}, {A: 3, B: 4}))
    assert reading.take(TABLE.source, SPEC, START, END) is None


def test_what_was_read_too_long_ago_is_not_taken(reading: Reading) -> None:
    reading.tables[SPEC.name].until = PAST
    assert reading.take(TABLE.source, SPEC, START, END) is None


@pytest.mark.parametrize(("until", "wanted"), [(LATER, [[(50, 60)]]), (PAST, [[(50, 60)], [(10, 60)]])])
def test_what_has_become_too_old_meanwhile_is_read_again(
    until: datetime, wanted: list[list[tuple[int, int]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[tuple[int, int]]] = []

    def write(source: object, spec: object, folder: object, ranges: Iterable[Range], **kind: object) -> dict[Any, Any]:
        read.append([(each.start, each.end) for each in ranges])
        return {}

    ahead = Ahead({A: Range(A, 50, 50, (NOTHING,))}, until)
    reader = BulkReader(None, log_settings(), lambda progress: None, take_ahead=lambda *wanted: ahead)  # type: ignore[arg-type]
    monkeypatch.setattr(reader, "write", write)
    reader.rows(TABLE.source, {A: 10}, {A: 60}).write(SPEC, Path("none"))
    assert read == wanted


@dataclass
class Brokers:
    """Two partitions of one topic: what they say, and which pieces were read."""

    epochs: list[int] = field(default_factory=lambda: [3, 3])
    away: int = 0
    problem: Exception | None = None
    read: list[tuple[int, int]] = field(default_factory=list)

    def describe_topics(self, admin: object, names: Collection[str]) -> dict[str, Topic]:
        settings = {"min.compaction.lag.ms": "3600000", "delete.retention.ms": "3600000"}
        return {name: Topic(name, "id", 2, settings) for name in names}

    def begin_offsets(self, admin: object, partitions: Iterable[TopicPartition]) -> Offsets:
        return dict.fromkeys(partitions, 0)

    def committed_ends(self, admin: object, partitions: Iterable[TopicPartition]) -> tuple[Offsets, Offsets]:
        if self.away:
            self.away -= 1
            raise NotRunning("Kafka does not answer")
        ends = {each: 300_000 - each.partition for each in partitions}
        return ends, {each: self.epochs[each.partition] for each in ends if each.partition < len(self.epochs)}

    def reader(self, *settings: object) -> SimpleNamespace:
        return SimpleNamespace(write=self.write)

    def write(
        self, source: object, spec: object, folder: object, pieces: Iterable[Range], *, all_new: bool
    ) -> Mapping[TopicPartition, Written]:
        if self.problem is not None:
            raise self.problem
        pieces = list(pieces)
        self.read += [(piece.start, piece.end) for piece in pieces]
        return {piece.partition: NOTHING for piece in pieces}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    for name in ("describe_topics", "begin_offsets", "committed_ends"):
        monkeypatch.setattr(read_ahead, name, getattr(brokers, name))
    monkeypatch.setattr(read_ahead, "BulkReader", brokers.reader)
    monkeypatch.setattr(read_ahead, "read_placeholder", lambda log: PLACEHOLDER)
    monkeypatch.setattr(read_ahead, "_POLL_S", 0.001)
    return brokers


@dataclass
class Jobs:
    """Of Spark, what a reading needs: the tags of its jobs."""

    tags: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    @property
    def spark(self) -> Any:
        context = SimpleNamespace(addJobTag=self.tags.append, cancelJobsWithTag=self.cancelled.append)
        return SimpleNamespace(sparkContext=context)


PIECES = [(0, 299_999), (0, 300_000)]


def test_table_under_another_leader_is_read_anew(brokers: Brokers, said: list[str]) -> None:
    reading = new_reading(Jobs().spark)
    reading.start()
    wait_for(lambda: len(brokers.read) == 2, LIMIT_S)
    brokers.epochs = [3, 4]
    wait_for(lambda: len(brokers.read) == 4, LIMIT_S)
    reading.end()
    reading.join()
    assert sorted(brokers.read) == sorted(2 * PIECES)
    assert said == ['table "public.t" is read again: its topic has another leader']
    [table] = reading.tables.values()
    assert sorted(table.leader_epochs.values()) == [3, 4]
    assert [len(read.ahead) for read in table.read.values()] == [1, 1]


def test_brokers_that_are_away_are_waited_for(brokers: Brokers, said: list[str]) -> None:
    brokers.away = 3
    reading = new_reading(Jobs().spark)
    reading.start()
    wait_for(lambda: len(brokers.read) == 2, LIMIT_S)
    reading.end()
    reading.join()
    assert said == []


def test_table_with_a_bad_event_is_left_out_and_said(brokers: Brokers, said: list[str]) -> None:
    brokers.problem = BadEvent("broken")
    reading = new_reading(Jobs().spark)
    reading.start()
    reading.join()
    assert said == ['table "public.t" is not read while the snapshot goes on: BadEvent: broken']


def test_unexpected_error_is_said_without_the_values_in_its_message(brokers: Brokers, said: list[str]) -> None:
    brokers.problem = ValueError("Could not convert 'secret of ada' to int")
    reading = new_reading(Jobs().spark)
    reading.start()
    reading.join()
    [line] = said
    assert re.fullmatch(
        r'table "public\.t" is not read while the snapshot goes on: ValueError( in .*, line \d+)?', line
    )
    assert reading.tables == {}


def test_brokers_that_do_not_tell_their_leader_are_not_read_ahead(brokers: Brokers, said: list[str]) -> None:
    brokers.epochs = [3]
    reading = new_reading(Jobs().spark)
    reading.start()
    reading.join()
    assert (said, brokers.read, reading.tables) == ([], [], {})


def test_forgotten_reading_is_cancelled_and_another_begins(brokers: Brokers) -> None:
    jobs = Jobs()
    spark = jobs.spark
    ahead = ReadAhead(*project(), lambda: spark)
    with ahead:
        ahead.begin()
        wait_for(lambda: len(brokers.read) == 2, LIMIT_S)
        ahead.forget()
        assert jobs.cancelled == jobs.tags
        assert ahead.take(TABLE.source, SPEC, START, END) is None
        ahead.begin()
        wait_for(lambda: len(brokers.read) == 4, LIMIT_S)
    assert len(set(jobs.tags)) == 2

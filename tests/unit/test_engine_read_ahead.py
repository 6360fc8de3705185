"""When the next piece of a table is read ahead, and when what was read is not taken."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pydantic import SecretStr

from cdc_views.config import Settings, SourceSettings
from cdc_views.engine import read_ahead
from cdc_views.engine.bulk_files import Range
from cdc_views.engine.declared import Declared
from cdc_views.engine.read_ahead import Reading, TableAhead
from cdc_views.engine.tables import mirror_spec
from cdc_views.log.record import TopicPartition
from cdc_views.names import TableName
from cdc_views.source.catalog import SourceIdentity
from cdc_views.store.commit import Written
from cdc_views.testing.ddl import read_tables
from tests.unit.log_records import log_settings

A, B = (TopicPartition("t", number) for number in (0, 1))
[TABLE] = read_tables("CREATE TABLE t (id bigint PRIMARY KEY)")
SPEC = mirror_spec(TABLE.source, "generation")
END = {A: 50, B: 0}
NOTHING = Written([], pa.table({"id": pa.array([], pa.int64())}))


def table_ahead() -> TableAhead:
    begin = {A: 10, B: 0}
    read = {each: Range(each, at, at) for each, at in begin.items()}
    return TableAhead(TABLE.source, SPEC, begin, read, {A: 3, B: 3}, ends=begin, moved_s=0)


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


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading:
    source = SourceSettings(dsn=SecretStr("none"), tables=(TableName("public", "t"),))
    settings = Settings(source=source, log=log_settings())
    reading = Reading(settings, Declared([TABLE.source], SourceIdentity("1", 1, 17), []))
    table = table_ahead()
    table.take_in(Range(A, 10, 50), NOTHING)
    reading.tables[SPEC.name] = table
    monkeypatch.setattr(read_ahead, "committed_ends", lambda admin, partitions: ({}, {A: 3, B: 3}))
    return reading


def test_what_was_read_is_taken_once(reading: Reading) -> None:
    taken = reading.take(TABLE.source, SPEC, {A: 10, B: 0}, END)
    assert taken == {A: Range(A, 50, 50, (NOTHING,)), B: Range(B, 0, 0)}
    assert reading.take(TABLE.source, SPEC, {A: 10, B: 0}, END) == {}


def test_what_was_read_from_another_offset_is_not_taken(reading: Reading) -> None:
    assert reading.take(TABLE.source, SPEC, {A: 11, B: 0}, END) == {}


def test_what_was_read_beyond_the_cut_is_not_taken(reading: Reading) -> None:
    assert reading.take(TABLE.source, SPEC, {A: 10, B: 0}, {A: 49, B: 0}) == {}


def test_what_was_read_of_other_topics_is_not_taken(reading: Reading) -> None:
    assert reading.take(TABLE.source, mirror_spec(TABLE.source, "another"), {A: 10, B: 0}, END) == {}


def test_what_was_read_of_another_table_is_not_taken(reading: Reading) -> None:
    source = replace(TABLE.source, replica_identity="full")
    assert reading.take(source, SPEC, {A: 10, B: 0}, END) == {}


def test_what_was_read_under_another_leader_is_not_taken(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "committed_ends", lambda admin, partitions: ({}, {A: 3, B: 4}))
    assert reading.take(TABLE.source, SPEC, {A: 10, B: 0}, END) == {}

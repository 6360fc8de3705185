"""Tables in memory refuse what Postgres refuses, and their log is what the fold reads back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from cdc_views.capture.fold import Fold
from cdc_views.errors import (
    BadChange,
    BadValue,
    CdcViewsError,
    DuplicateKey,
    LogGap,
    NoSuchRow,
    NullNotAllowed,
    UnknownTable,
)
from cdc_views.host.clock import SYSTEM_CLOCK
from cdc_views.testing import Change, Delete, HandClock, Insert, Update
from cdc_views.testing.histories import RandomHistory, histories
from cdc_views.testing.memory.ddl import PLACEHOLDER, read_tables
from cdc_views.testing.memory.memory_log import MemoryLog
from cdc_views.testing.memory.memory_source import MemorySource
from cdc_views.testing.rows import assert_equal
from tests.samples import SEEDS

ORDERS = """CREATE TYPE state AS ENUM ('new', 'paid');
CREATE TABLE orders (id bigserial PRIMARY KEY, name varchar(5) NOT NULL, total numeric(12,2) DEFAULT 1.5,
                     state state DEFAULT 'new', tags text[])"""


def source() -> MemorySource:
    made = MemorySource(read_tables(ORDERS), HandClock())
    made.commit([Insert("orders", {"name": "a"}), Insert("public.orders", {"name": "b", "total": 2.005})])
    return made


def test_insert_takes_defaults() -> None:
    first = {"id": 1, "name": "a", "total": Decimal("1.50"), "state": "new", "tags": None}
    assert source().rows("orders") == [first, first | {"id": 2, "name": "b", "total": Decimal("2.01")}]


def test_update_keeps_what_it_does_not_name_and_may_change_the_key() -> None:
    made = source()
    made.commit([Update("orders", {"id": "1"}, {"id": 7, "tags": ["x", None]}), Delete("orders", {"name": "b"})])
    assert made.rows("orders") == [
        {"id": 7, "name": "a", "total": Decimal("1.50"), "state": "new", "tags": ["x", None]}
    ]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (Insert("orders", {"id": 1, "name": "a"}), DuplicateKey),
        (Insert("orders", {}), NullNotAllowed),
        (Insert("orders", {"name": "too long"}), BadValue),
        (Insert("orders", {"name": "a", "state": "lost"}), BadValue),
        (Insert("orders", {"name": "a", "tags": "x"}), BadValue),
        (Insert("orders", {"name": "a", "nothing": 1}), BadChange),
        (Insert("others", {"name": "a"}), UnknownTable),
        (Update("orders", {"id": 1}, {"id": 2}), DuplicateKey),
        (Update("orders", {"id": 3}, {"name": "c"}), NoSuchRow),
        (Update("orders", {"id": 1, "name": "b"}, {"name": "c"}), NoSuchRow),
        (Update("orders", {"id": 1}, {"name": None}), NullNotAllowed),
        (Delete("orders", {"state": "new"}), NoSuchRow),
        ("DELETE", BadChange),
    ],
)
def test_change_that_is_refused_takes_its_transaction_with_it(change: Any, error: type[CdcViewsError]) -> None:
    made = source()
    before = made.rows("orders")
    with pytest.raises(error):
        made.commit([Delete("orders", {"id": 2}), Insert("orders", {"id": 2, "name": "z"}), change])
    assert_equal([tuple(row.values()) for row in made.rows("orders")], [tuple(row.values()) for row in before])


@settings(max_examples=30 * SEEDS, deadline=None, database=None, derandomize=True)
@given(histories())
def test_log_folds_to_the_rows_of_every_history(history: RandomHistory) -> None:
    tables = read_tables(history.schema.ddl())
    made = MemorySource(tables, SYSTEM_CLOCK)
    log = MemoryLog([table.source for table in tables], SYSTEM_CLOCK, partitions=2, validity_s=60)
    mirrors: dict[str, dict[Any, tuple[Any, ...]]] = {table.name: {} for table in tables}
    offsets, position = log.begin(), None
    for epoch, state in zip(history.epochs, history.states, strict=True):
        for transaction in epoch:
            log.write(made.commit(transaction))
        cut = log.cut(offsets, position)
        folds = {table.name: Fold(table.source) for table in tables}
        for record in log.records(cut):
            folds[str(log.table_of(record.topic))].add(record)
        for table in tables:
            folded = folds[table.name].finish({})
            mirror, key = mirrors[table.name], table.source.key
            for row in folded.deletes.to_pylist():
                mirror.pop(tuple(row[name] for name in key), None)
            for row in folded.upserts.to_pylist():
                mirror[tuple(row[name] for name in key)] = tuple(row.values())
            assert_equal(mirror.values(), [tuple(row.values()) for row in state[table.source.name.table]])
        offsets, position = cut.end, cut.position


def topic(changes: list[Change], identity: str = "") -> list[tuple[Any, ...]]:
    """Operation, key, old row, new text and headers of each record."""
    tables = read_tables(f"CREATE TABLE t (id int PRIMARY KEY, body text); {identity}")
    made = MemorySource(tables, SYSTEM_CLOCK)
    log = MemoryLog([tables[0].source], SYSTEM_CLOCK, partitions=1, validity_s=60)
    log.write(made.commit(changes))
    return [
        (
            record.value and record.value["op"],
            record.key["id"],
            record.value and record.value["before"],
            record.value and record.value["after"] and record.value["after"]["body"],
            {name.removeprefix("__debezium."): value.decode() for name, value in record.headers.items()},
        )
        for record in log.records(log.cut(log.begin(), None))
    ]


def test_change_of_key_is_written_as_debezium_does() -> None:
    found = topic([Insert("t", {"id": 1, "body": "a"}), Update("t", {"id": 1}, {"id": 2}), Delete("t", {"id": 2})])
    assert found == [
        ("c", 1, None, "a", {}),
        ("d", 1, None, None, {"newkey": '{"id":2}'}),
        (None, 1, None, None, {"newkey": '{"id":2}'}),
        ("c", 2, None, "a", {"oldkey": '{"id":1}'}),
        ("d", 2, None, None, {}),
        (None, 2, None, None, {}),
    ]


def test_large_value_that_is_not_changed_is_left_out() -> None:
    changes: list[Change] = [Insert("t", {"id": 1, "body": "x" * 3000}), Update("t", {"id": 1}, {"id": 2})]
    assert topic(changes)[-1][3] == PLACEHOLDER
    with_old_row = topic(changes, "ALTER TABLE t REPLICA IDENTITY FULL")
    assert with_old_row[-1][3] == "x" * 3000
    assert with_old_row[1][2] == {"id": 1, "body": "x" * 3000}


def test_cut_is_not_repeatable_when_compaction_may_have_begun() -> None:
    clock = HandClock()
    log = MemoryLog([read_tables(ORDERS)[0].source], clock, partitions=1, validity_s=60)
    cut = log.cut(log.begin(), None)
    clock.advance(60)
    log.require_repeatable(cut)
    clock.advance(1)
    with pytest.raises(LogGap):
        log.require_repeatable(cut)

"""What is held between two cuts, and when it is too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_views.errors import SequenceRegressed
from cdc_views.log.holding import Holding, TooLong
from cdc_views.log.record import Record, TopicPartition
from cdc_views.lsn import Lsn
from cdc_views.names import TableName
from tests.unit.log_records import PARTITION, change, log_settings

ORDERS, ITEMS = TableName("public", "orders"), TableName("public", "items")
OF_ITEMS = TopicPartition("app.public.items", 0)
TABLES = {PARTITION.topic: ORDERS, OF_ITEMS.topic: ITEMS}
START = {PARTITION: 0, OF_ITEMS: 0}


def holding(**settings: object) -> Holding:
    """Two tables of which only `orders` may be too long, from two records on."""
    made = Holding(log_settings(**{"bulk_offsets": 2, **settings}), TABLES, [PARTITION, OF_ITEMS], may_be_bulk=[ORDERS])
    made.begin(START, None)
    return made


def of_items(offset: int, commit: int) -> Record:
    """A change of the other table."""
    return replace(change(offset, commit, commit), topic=OF_ITEMS.topic)


def test_take_gives_what_is_below_the_position_and_the_next_begins_behind_it() -> None:
    held = holding()
    assert all(held.add(record) for record in (change(0, 100, 101), change(1, 200, 201), of_items(0, 100)))
    assert not held.is_empty_below(Lsn(101))
    end, records = held.take(Lsn(200))
    assert end == held.start == {PARTITION: 1, OF_ITEMS: 1}
    assert [record.offset for found in records.values() for record in found] == [0, 0]
    assert held.goes_on_from(end)
    assert not held.goes_on_from(START)
    assert held.is_empty_below(Lsn(200))


def test_nothing_is_held_before_it_begins() -> None:
    assert not Holding(log_settings(), TABLES, [PARTITION], []).goes_on_from({})


def test_record_of_another_topic_is_not_held() -> None:
    assert not holding().add(replace(change(0, 100, 101), topic="app.public.others"))


def test_table_that_is_too_long_is_named_and_another_is_held_however_long_it_is() -> None:
    held = holding()
    for offset in range(5):
        held.add(of_items(offset, 100))
    held.require_not_too_long()
    held.add(change(0, 100, 101))
    held.require_not_too_long()
    held.add(change(1, 100, 102))
    with pytest.raises(TooLong) as found:
        held.require_not_too_long()
    assert found.value.tables == {ORDERS}


def test_offsets_count_also_where_no_record_is_left() -> None:
    held = holding(bulk_offsets=50)
    held.add(change(10, 100, 101))
    assert held.too_long(START, {PARTITION: 49, OF_ITEMS: 90}) == frozenset()
    assert held.too_long(START, {PARTITION: 50, OF_ITEMS: 90}) == {ORDERS}


def test_without_a_limit_everything_is_held_for_one_cut() -> None:
    held = holding()
    held.begin(START, None, has_limit=False)
    for offset in range(4):
        held.add(change(offset, 100 + offset, 300))
    held.require_not_too_long()
    held.take(Lsn(102))
    with pytest.raises(TooLong):
        held.require_not_too_long()


def test_records_of_a_bulk_table_are_in_the_cut_but_not_in_what_is_taken() -> None:
    held = holding()
    held.begin(START, None, frozenset({ORDERS}), {PARTITION: 40})
    held.add(change(40, 100, 101))
    held.add(of_items(0, 100))
    end, records = held.take(Lsn(200))
    assert (end, records.keys()) == ({PARTITION: 41, OF_ITEMS: 1}, {OF_ITEMS})
    assert held.bulk == frozenset()


def test_what_comes_again_is_an_error_under_exactly_once_and_left_out_without() -> None:
    again = [change(0, 100, 101), change(1, 200, 201), change(2, 100, 101)]
    exactly_once, at_least_once = holding(), holding(offsets_topic="offsets")
    with pytest.raises(SequenceRegressed):
        [exactly_once.add(record) for record in again]
    assert all(at_least_once.add(record) for record in again)
    end, records = at_least_once.take(Lsn(300))
    assert end[PARTITION] == 3
    assert [record.offset for record in records[PARTITION]] == [0, 1]

"""Redelivered records are distinguished from new ones, whenever a worker was killed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cdc_views.log.kafka.at_least_once import Redeliveries
from cdc_views.log.kafka.record import Record
from tests.unit.log_records import change, tombstone


def kept(records: list[Record]) -> list[int]:
    """The offsets of those that are not redeliveries."""
    redeliveries = Redeliveries()
    return [record.offset for record in records if not redeliveries.is_redelivery(record)]


def test_older_change_comes_again() -> None:
    assert kept([change(0, 100, 101), change(1, 200, 201), change(2, 100, 101), change(3, 300, 301)]) == [0, 1, 3]


def test_equal_orders_of_a_copy_are_no_repetition() -> None:
    assert kept([change(0, 100, 101), change(1, 100, 101)]) == [0, 1]


def test_older_change_of_the_same_transaction_comes_again() -> None:
    assert kept([change(0, 100, 101), change(1, 100, 105), change(2, 100, 101)]) == [0, 1]


def delete(offset: int, commit: int, key: int = 1) -> list[Record]:
    """A delete and its tombstone, at two offsets."""
    both = [change(offset, commit, 0, "d"), tombstone(offset + 1)]
    return [replace(each, key={"id": key}) for each in both]


def test_tombstone_goes_with_its_delete() -> None:
    other_key = replace(tombstone(5), key={"id": 2})
    assert kept([*delete(0, 100), change(2, 200, 201), *delete(3, 100), other_key]) == [0, 1, 2, 5]


def test_tombstone_that_stands_alone_is_kept() -> None:
    again = delete(3, 100)
    assert kept([*delete(0, 100), change(2, 200, 201), *again, replace(again[1], offset=5)]) == [0, 1, 2, 5]


def test_snapshot_reads_are_no_repetition_of_each_other_and_come_before_all_commits() -> None:
    reads = [change(0, None, 90, "r"), change(1, None, 95), change(2, None, 80)]
    assert kept([*reads, change(3, 100, 101), change(4, None, 95)]) == [0, 1, 2, 3]


def test_record_that_could_not_be_parsed_is_kept() -> None:
    bad = replace(tombstone(2), problem="is not an event of Debezium")
    assert kept([change(0, 100, 101), change(1, 50, 51), bad]) == [0, 2]


def test_partitions_are_apart() -> None:
    other = replace(change(0, 100, 101), partition=7)
    assert kept([change(0, 200, 201), other]) == [0, 0]


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[int, list[int]]:
    """How many changes there are, and their numbers as they are delivered, with kills: each goes back some way."""
    count, at = draw(st.integers(1, 30)), 0
    delivered: list[int] = []
    for _ in range(draw(st.integers(0, 4))):
        reached = draw(st.integers(at, count))
        delivered += range(at, reached)
        at = draw(st.integers(0, reached))
    return count, [*delivered, *range(at, count)]


@given(deliveries(), st.data())
def test_no_change_is_lost_and_none_goes_back_whatever_comes_again(given: tuple[int, list[int]], data: Any) -> None:
    count, numbers = given
    deletes = data.draw(st.sets(st.integers(0, count - 1)))
    delivered: list[Record] = []
    for number in numbers:
        commit, offset = 100 * (number + 1), len(delivered)
        delivered += delete(offset, commit) if number in deletes else [change(offset, commit, 0)]

    offsets = kept(delivered)
    left = [delivered[offset] for offset in offsets]
    commits = [record.order.commit for record in left if record.order is not None]
    assert commits == sorted(commits)
    assert set(commits) == {100 * (number + 1) for number in range(count)}
    # Of each delete both halves are left or none is.
    assert [offset + 1 for offset in offsets if is_delete(delivered[offset])] == [
        record.offset for record in left if record.value is None
    ]


def is_delete(record: Record) -> bool:
    """Whether it has a tombstone behind it."""
    return record.value is not None and record.value["op"] == "d"

"""The rule of the cut, without Kafka."""

from __future__ import annotations

import pytest

from cdc_views.base.lsn import Lsn
from cdc_views.errors import LogDiscontinuity, SequenceRegressed
from cdc_views.log.cuts.cut import PartitionBuffer
from cdc_views.log.kafka.record import Record
from tests.unit.log_records import PARTITION, change, tombstone


def held(*records: Record, start: int = 0, floor: int | None = None) -> PartitionBuffer:
    """A partition with these records."""
    partition = PartitionBuffer(PARTITION, start, None if floor is None else Lsn(floor))
    for record in records:
        partition.add(record)
    return partition


def test_change_is_in_the_cut_only_below_the_position() -> None:
    partition = held(change(0, 100, 101), change(1, 200, 201), change(2, 300, 301))
    assert [partition.prefix(position) for position in (100, 200, 201, 301)] == [0, 1, 2, 3]


def test_cut_ends_at_the_first_record_that_is_held_back() -> None:
    partition = held(change(0, 100, 101), change(4, 200, 201), change(6, 300, 301))
    assert partition.end(partition.prefix(200)) == 4


def test_cut_of_everything_ends_behind_the_last_record() -> None:
    partition = held(change(3, 100, 101))
    assert partition.end(partition.prefix(200)) == 4


def test_cut_of_an_empty_partition_ends_where_it_started() -> None:
    assert held(start=9).end(0) == 9


def test_tombstone_shares_the_fate_of_its_delete() -> None:
    partition = held(change(0, 100, 101), change(1, 200, 201, "d"), tombstone(2), change(3, 300, 301))
    assert (partition.prefix(200), partition.prefix(300)) == (1, 3)


def test_tombstone_without_its_delete_goes_with_what_is_before_it() -> None:
    assert held(tombstone(0), change(1, 200, 201)).prefix(200) == 1


def test_snapshot_reads_and_the_first_transaction_are_in_every_cut() -> None:
    partition = held(change(0, None, 90, "r"), change(1, None, 95), change(2, None, 80), change(3, 100, 101))
    assert partition.prefix(1) == 3


def test_equal_orders_of_a_copy_are_taken() -> None:
    assert held(change(0, 100, 101), change(1, 100, 101)).prefix(200) == 2


def test_take_leaves_what_is_held_back_for_the_next_cut() -> None:
    partition = held(change(0, 100, 101), change(1, 200, 201))
    assert [record.offset for record in partition.take(1, Lsn(200))] == [0]
    assert (partition.start, partition.prefix(300), partition.end(1)) == (1, 1, 2)


@pytest.mark.parametrize(
    "later", [change(1, 99, 300), change(1, 100, 100), change(1, None, 300), change(1, None, 300, "r")]
)
def test_order_below_the_partitions_maximum_is_an_error(later: Record) -> None:
    with pytest.raises(SequenceRegressed, match="partition 0 offset 1"):
        held(change(0, 100, 101), later)


@pytest.mark.parametrize("first", [change(1, 99, 300), change(1, None, 300)])
def test_order_before_the_published_position_is_an_error(first: Record) -> None:
    with pytest.raises(LogDiscontinuity, match="published position 0/64"):
        held(first, floor=100)


def test_order_before_a_position_that_was_taken_is_an_error() -> None:
    partition = held(change(0, 100, 101))
    partition.take(1, Lsn(200))
    with pytest.raises(LogDiscontinuity, match=r"the highest before it is \(0/64, 0/65\)"):
        partition.add(change(1, 150, 151))

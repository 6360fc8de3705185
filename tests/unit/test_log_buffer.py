"""What is held between two cuts, and when it is too much."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import pytest

from cdc_views.base.lsn import Lsn
from cdc_views.base.names import TableName
from cdc_views.errors import CutTooLarge, SequenceRegressed
from cdc_views.log.cuts.buffer import BufferFull, CutBuffer
from cdc_views.log.kafka.memory_limit import event_bytes
from cdc_views.log.kafka.record import Record, TopicPartition, parse_records
from tests.unit.log_records import PARTITION, FakeMessage, change, log_settings

ORDERS, ITEMS = TableName("public", "orders"), TableName("public", "items")
OF_ITEMS = TopicPartition("app.public.items", 0)
TABLES = {PARTITION.topic: ORDERS, OF_ITEMS.topic: ITEMS}
START = {PARTITION: 0, OF_ITEMS: 0}


def holding(**settings: object) -> CutBuffer:
    """Two tables of which only `orders` may be too long, from two records on."""
    made = CutBuffer(
        log_settings(**{"bulk_offsets": 2, **settings}), TABLES, [PARTITION, OF_ITEMS], may_be_bulk=[ORDERS]
    )
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
    assert held.continues_from(end)
    assert not held.continues_from(START)
    assert held.is_empty_below(Lsn(200))


def test_nothing_is_held_before_it_begins() -> None:
    assert not CutBuffer(log_settings(), TABLES, [PARTITION], []).continues_from({})


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
    with pytest.raises(BufferFull) as found:
        held.require_not_too_long()
    assert found.value.tables == {ORDERS}


def test_offsets_count_also_where_no_record_is_left() -> None:
    held = holding(bulk_offsets=50)
    held.add(change(10, 100, 101))
    assert held.too_long(START, {PARTITION: 49, OF_ITEMS: 90}) == frozenset()
    assert held.too_long(START, {PARTITION: 50, OF_ITEMS: 90}) == {ORDERS}


def test_without_a_limit_everything_is_held_for_one_cut() -> None:
    held = holding()
    held.begin(START, None, is_all_held=True)
    for offset in range(4):
        held.add(change(offset, 100 + offset, 300))
    held.require_not_too_long()
    held.take(Lsn(102))
    with pytest.raises(BufferFull):
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


MIB = 1 << 20
OF_MANY = [TopicPartition(f"app.public.t{number}", 0) for number in range(60)]
MANY = {each.topic: TableName("public", each.topic.rpartition(".")[2]) for each in OF_MANY}


def of_many(may_be_bulk: Collection[TableName]) -> CutBuffer:
    """Sixty tables, none of which is too long by itself, and a driver that may hold 1 MiB."""
    made = CutBuffer(log_settings(driver_mb=1), MANY, OF_MANY, may_be_bulk)
    made.begin(dict.fromkeys(OF_MANY, 0), Lsn(50))
    return made


def fill(held: CutBuffer, offsets: Iterable[int], tables: Sequence[TopicPartition]) -> None:
    """Read the log table by table: at offset n of each is a change of the n-th transaction, of about 2 KiB."""
    for offset in offsets:
        for each in tables:
            commit = 100 * (offset + 1)
            held.add(replace(change(offset, commit, commit + 1), topic=each.topic))
            held.require_not_too_long()


def read_within_bounds(
    held: CutBuffer, bulk: frozenset[TableName], rounds: int = 0
) -> tuple[frozenset[TableName], int]:
    """Read forty offsets of each table as a log does; which are bulk in the end, and how often it began again."""
    held.begin(dict.fromkeys(OF_MANY, 0), Lsn(50), bulk, dict.fromkeys(OF_MANY, 0))
    try:
        fill(held, range(40), [each for each in OF_MANY if MANY[each.topic] not in bulk])
    except BufferFull as found:
        return read_within_bounds(held, bulk | found.tables, rounds + 1)
    return bulk, rounds


def test_many_tables_of_middle_size_are_held_within_the_bound_and_the_others_are_bulk() -> None:
    held = of_many(MANY.values())
    bulk, rounds = read_within_bounds(held, frozenset())
    assert 0 < len(bulk) < len(OF_MANY)
    assert held.held_bytes <= MIB
    assert rounds <= 4


def test_tables_that_are_too_many_are_bulk_before_they_are_read() -> None:
    held = of_many(MANY.values())
    start, end = dict.fromkeys(OF_MANY, 0), {each: 20 + number for number, each in enumerate(OF_MANY)}
    found = held.too_long(start, end)
    assert sum(2048 * (end[each] - start[each]) for each in OF_MANY if MANY[each.topic] not in found) <= MIB
    assert min(end[each] for each in OF_MANY if MANY[each.topic] in found) >= max(
        end[each] for each in OF_MANY if MANY[each.topic] not in found
    )


def test_table_that_must_be_held_is_never_bulk() -> None:
    held = of_many(MANY.values())
    held.never_bulk = frozenset(MANY.values())
    assert held.too_long(dict.fromkeys(OF_MANY, 0), dict.fromkeys(OF_MANY, 200_000)) == frozenset()


def test_lookup_table_beyond_the_bound_is_cut_at_a_commit_of_which_all_was_read() -> None:
    held = of_many([])
    lookup, quiet = OF_MANY[0], OF_MANY[1]
    held.add(replace(change(0, 100, 101), topic=quiet.topic))
    with pytest.raises(BufferFull) as found:
        fill(held, range(2000), [lookup])
    assert found.value.tables == frozenset()
    read = held.of(MANY[lookup.topic])[0].next
    assert held.position_reached({lookup, quiet}) == Lsn(100)
    assert held.slowest({lookup, quiet}) == {quiet}
    reached = held.position_reached({lookup})
    assert reached == Lsn(100 * read)
    assert held.first_after(reached).offset == read - 1
    end, records = held.take(reached)
    assert end[lookup] == read - 1
    assert [len(records[each]) for each in (lookup, quiet)] == [read - 1, 1]
    assert held.held_bytes == event_bytes(change(0, 1, 1))


def test_part_of_a_cut_that_is_too_large_by_itself_is_an_error_before_memory_is_exhausted() -> None:
    held = of_many([])
    held.end_soon()
    with pytest.raises(CutTooLarge, match=r'of 1 MiB, wanted at most 1: .*largest tables are "public.t0" 1') as error:
        fill(held, range(2000), OF_MANY[:1])
    assert "log.driver_mb" in str(error.value.hint)
    assert held.held_bytes <= MIB + 4096


def test_event_is_counted_by_its_uncompressed_bytes() -> None:
    small, large = parse_records([FakeMessage({"op": "c", "text": "x" * size, "source": {"sequence": "[null,null]"}})
                                  for size in (10, 100_010)])  # fmt: skip
    assert event_bytes(large) - event_bytes(small) == 4 * 100_000

"""Parsing of records."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_views.errors import BadEvent
from cdc_views.log.record import (
    KeptRecord,
    LogOffset,
    Order,
    TopicPartition,
    find_place,
    parse_order,
    parse_record,
    require_event,
)
from tests.unit.log_records import FakeMessage


def parse(value: Any, **more: Any) -> Any:
    """Parse a message with this value."""
    return parse_record(FakeMessage(value, **more))


def test_parse_of_an_event_gives_its_order() -> None:
    record = parse({"op": "u", "source": {"sequence": '["22269464","22269500"]'}})
    assert (record.order, record.offset, record.timestamp_ms) == (Order(22269464, 22269500), 7, 1234)


def test_parse_of_the_first_transaction_gives_no_commit() -> None:
    assert parse_order('[null,"22269500"]') == Order(None, 22269500)


def test_parse_of_a_tombstone_gives_no_order() -> None:
    record = parse(None, headers=[("__debezium.newkey", b"{}")])
    assert (record.order, record.value, record.headers) == (None, None, {"__debezium.newkey": b"{}"})


@pytest.mark.parametrize(
    "value",
    [
        b"not json",
        b"null",
        b"\xff",
        b"[" * 5000,
        b"3",
        {"op": "u"},
        *({"source": {"sequence": text}} for text in ("[1]", "[1,2]", '["1","-2"]', '["1_0","2"]', '{"1":0,"2":0}', 7)),
        {"source": {"sequence": f'["{2**64}","1"]'}},
    ],
)
def test_parse_of_something_else_has_a_problem_that_does_not_quote_it(value: Any) -> None:
    record = parse(value)
    assert (record.key, record.value, record.order) == ({"id": 1}, None, None)
    with pytest.raises(BadEvent, match="partition 0 offset 7: is not an event of Debezium") as error:
        require_event(record)
    assert "not json" not in str(error.value)


def test_parse_of_a_null_key_has_a_problem() -> None:
    message = KeptRecord(LogOffset("app.public.t", 1, 5), 0, None, None, None)
    record = parse_record(message)
    assert (record.problem is not None, record.raw) == (True, message)


def test_place_in_a_message_is_found_again() -> None:
    place = LogOffset("app.public.t", 3, 77)
    assert find_place(f"{place}: no") == place
    assert find_place("nowhere") is None


def test_topic_partition_is_read_as_it_is_printed() -> None:
    partition = TopicPartition("app.public.a-b", 12)
    assert TopicPartition.parse(str(partition)) == partition

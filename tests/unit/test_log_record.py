"""Parsing of records."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_views.errors import BadEvent
from cdc_views.log.record import Order, TopicPartition, parse_order, parse_record
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


@pytest.mark.parametrize("value", [b"not json", {"op": "u"}, {"source": {"sequence": "[1]"}}, b"3"])
def test_parse_of_something_else_is_refused_without_quoting_it(value: Any) -> None:
    with pytest.raises(BadEvent, match="partition 0 offset 7") as error:
        parse(value)
    assert "not json" not in str(error.value)


def test_topic_partition_is_read_as_it_is_printed() -> None:
    partition = TopicPartition("app.public.a-b", 12)
    assert TopicPartition.parse(str(partition)) == partition

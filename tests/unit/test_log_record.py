"""Parsing of records."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from cdc_views.errors import BadEvent, EventError, UnresolvedToast, UnsupportedType, WrongReplicaIdentity
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.record import (
    KeptRecord,
    Order,
    TopicPartition,
    bad_event,
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


def test_bad_event_has_its_offset_and_its_problem_apart() -> None:
    record = parse(b"not json")
    error = bad_event(record, "is bad", hint="look")
    assert (error.log_offset, error.problem, error.hint) == (record.log_offset, "is bad", "look")
    assert error.message == f"{record.log_offset}: is bad"


@pytest.mark.parametrize("kind", [BadEvent, UnsupportedType, UnresolvedToast, WrongReplicaIdentity])
def test_error_that_is_given_its_offset_has_it_also_when_a_task_has_sent_it(kind: type[EventError]) -> None:
    at = LogOffset("app.public.t", 3, 77)
    sent = pickle.loads(pickle.dumps(kind("no", hint="look").at(at)))
    assert (type(sent), sent.log_offset, sent.problem, sent.hint) == (kind, at, "no", "look")
    assert str(sent) == f"{at}: no\nhint: look"
    assert sent.at(LogOffset("other", 0, 0)).log_offset == at


def test_topic_partition_is_read_as_it_is_printed() -> None:
    partition = TopicPartition("app.public.a-b", 12)
    assert TopicPartition.parse(str(partition)) == partition

"""One record to one change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdc_views.capture.envelope import Envelope
from cdc_views.errors import BadEvent
from tests.unit.capture_records import PLACEHOLDER, Topic, row, table

WHERE = 'topic "app.public.t" partition 0 offset 0: '


def test_read_create_gives_raw_values_and_key() -> None:
    change = Envelope(table()).read(Topic().write("c", 1, row(1, 2, "x")))
    assert (change.op, change.key, change.after, change.old_key) == ("c", (1,), row(1, 2, "x"), None)


def test_read_tombstone_is_its_own_operation() -> None:
    change = Envelope(table()).read(Topic().write(None, 1))
    assert (change.op, change.key, change.after) == ("t", (1,), None)


def test_read_delete_of_a_change_of_key_has_the_new_key() -> None:
    assert Envelope(table()).read(Topic().write("d", 1, newkey=2)).new_key == (2,)


@pytest.mark.parametrize(
    "header", [b'{"id":7}', b'{"schema":{"type":"struct"},"payload":{"id":7}}', b' {"id" : 7}'],
)  # fmt: skip
def test_read_old_key_header_with_and_without_schema_is_understood(header: bytes) -> None:
    record = replace(Topic().write("c", 1, row(1, 2, "x")), headers={"__debezium.oldkey": header})
    assert Envelope(table()).read(record).old_key == (7,)


def test_read_old_key_header_with_a_bare_line_break_is_understood() -> None:
    record = replace(Topic().write("c", 1, row(1, 2, "x")), headers={"__debezium.oldkey": b'{"id":"a\nb"}'})
    assert Envelope(table()).read(record).old_key == ("a\nb",)


@pytest.mark.parametrize(
    ("op", "after", "problem"),
    [
        ("x", row(1, 2, "x"), 'operation "x", wanted one of'),
        ("t", None, 'operation "t", wanted one of'),
        ("u", None, 'operation "u" without the row after it'),
        ("u", {"id": 1, "n": 2}, 'no column "body"'),
        ("c", row(1, 2, "x") | {"extra": 1}, 'unknown column "extra"'),
        ("c", {"id": 1, "n": 2, "text": ""}, 'no column "body" and unknown column "text"'),
    ],
)
def test_read_wrong_value_names_topic_partition_and_offset(op: str, after: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadEvent) as caught:
        Envelope(table()).read(Topic().write(op, 1, after))
    assert caught.value.message.startswith(WHERE + problem)


@pytest.mark.parametrize("key", [None, {}, {"id": None}, {"other": 1}, {"id": 1, "n": 2}])
def test_read_wrong_key_names_topic_partition_and_offset(key: Any) -> None:
    record = replace(Topic().write("c", 1, row(1, 2, "x")), key=key)
    with pytest.raises(BadEvent, match="a key"):
        Envelope(table()).read(record)


@pytest.mark.parametrize("header", [b"", b"7", b"nonsense", b'{"payload":{"id":1}}'])
def test_read_wrong_header_is_a_bad_event(header: bytes) -> None:
    record = replace(Topic().write("c", 1, row(1, 2, "x")), headers={"__debezium.oldkey": header})
    with pytest.raises(BadEvent, match="key"):
        Envelope(table()).read(record)


def test_read_key_that_is_only_a_placeholder_is_a_bad_event() -> None:
    record = replace(Topic().write("u", 1, row(1, 2, "x")), key={"id": PLACEHOLDER})
    with pytest.raises(BadEvent, match="a key stored out of line"):
        Envelope(table()).read(record)

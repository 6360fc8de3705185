"""The rows that the delta-rs baseline merges."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import orjson

from bench.deltars import rows_of
from cdc_views.testing.memory.ddl import read_tables


def test_last_events_become_rows_and_marks_of_what_is_gone() -> None:
    [declared] = read_tables("CREATE TABLE t (id bigint PRIMARY KEY, paid numeric(8,2), at timestamptz)")
    after = {"id": 1, "paid": "2.50", "at": "2026-01-02T03:04:05.000006Z"}
    last = {
        b'{"id": 1}': orjson.dumps({"op": "u", "after": after}),
        b'{"id": 2}': orjson.dumps({"op": "d", "after": None}),
        b'{"id": 3}': None,
    }
    assert rows_of(declared.source, last).to_pylist() == [
        {"id": 1, "paid": Decimal("2.50"), "at": datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "_deleted": False},
        {"id": 2, "paid": None, "at": None, "_deleted": True},
        {"id": 3, "paid": None, "at": None, "_deleted": True},
    ]

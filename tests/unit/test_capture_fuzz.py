"""Mutated events through every reader of events: rows that the bytes say, or an error of ours that quotes nothing.

What the bytes say is read here by a reader of its own (`Plain`), which knows only which JSON a column may have and
applies one event after the other.
"""

from __future__ import annotations

import json
import math
import os
import random
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import orjson
import pytest

from cdc_views.base.names import TableName
from cdc_views.capture.fold import Fold
from cdc_views.capture.latest import Latest
from cdc_views.capture.sift import Sifted, sift
from cdc_views.capture.unchanged import forms_of
from cdc_views.errors import EventError
from cdc_views.errors.log_offset import LogOffset
from cdc_views.log.kafka.record import KeptRecord, parse_record
from cdc_views.source.catalog import SourceColumn, SourceTable
from tests.unit.capture_records import PLACEHOLDER

SEED = 20_261_122
HISTORIES = int(os.environ.get("CDC_VIEWS_FUZZ", "200"))  # `just nightly`: 6000
LENGTH = 3  # events in a history; of five, three are mutated
SECRET = "s3cret"

NUMERIC = ((6 << 16) | 2) + 4
COLUMNS = (
    SourceColumn("id", 1, "int8", -1, None, True, False),
    SourceColumn("n", 2, "int4", -1, None, False, False),
    SourceColumn("f", 3, "float8", -1, None, False, False),
    SourceColumn("price", 4, "numeric", NUMERIC, None, False, False),
    SourceColumn("total", 5, "numeric", -1, None, False, False),
    SourceColumn("ok", 6, "bool", -1, None, False, False),
    SourceColumn("day", 7, "date", -1, None, False, False),
    SourceColumn("at", 8, "timestamp", -1, None, False, False),
    SourceColumn("moment", 9, "timestamptz", -1, None, False, False),
    SourceColumn("raw", 10, "bytea", -1, None, False, False),
    SourceColumn("tags", 11, "_int4", -1, "int4", False, False),
    SourceColumn("place", 12, "point", -1, None, False, False),
    SourceColumn("span", 13, "interval", -1, None, False, False),
    SourceColumn("pairs", 14, "hstore", -1, None, False, False),
    SourceColumn("flags", 15, "bit", 4, None, False, False),
    SourceColumn("body", 16, "text", -1, None, False, False),
)
TABLE = SourceTable(TableName("public", "t"), 1, COLUMNS, ("id",), False, "full", PLACEHOLDER)
GOOD: dict[str, list[Any]] = {
    "n": [None, 0, -5, 2**31 - 1],
    "f": [None, 1, 0.5, -1e300],
    "price": [None, "0.00", "-12.34"],
    "total": [None, "1E-10", "12.500", "NAN"],
    "ok": [None, True, False],
    "day": [None, 0, 20_000],
    "at": [None, 0, 1_700_000_000_000_000],
    "moment": [None, "2026-01-02T03:04:05.123456Z"],
    "raw": [None, "", "AAEC"],
    "tags": [None, [], [1, None, -2]],
    "place": [None, {"x": 1.5, "y": -2, "wkb": "AQ==", "srid": None}],
    "span": [None, "P1Y2M3DT4H5M6.7S"],
    "pairs": [None, '{"a":"b","c":null}'],
    "flags": [None, "BQ=="],
    "body": [None, "", SECRET, "\u2603"],
}
# What a mutation puts in the place of any part of an event.
ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1.5,
    2**63,
    2**64,
    -(2**63) - 1,
    10**400,
    1e308,
    "",
    "1",
    SECRET,
    "NaN",
    "Infinity",
    "1e5",
    "\x00",
    "\ud7ff\u2603",
    [],
    [[]],
    [None],
    [SECRET],
    {},
    {"a": SECRET},
    {"x": 1},
    {"wkb": "AAAA"},
    "__debezium_unavailable_value",
    *forms_of(PLACEHOLDER),
    "[null,null]",
    '["5","4"]',
    '["x","1"]',
    "[1,2]",
    "u",
    "d",
    "r",
    "t",
    "m",
    "9" * 5000,
    "[" * 3000,
    '{"a":' * 3000,
    "AA=",
    "A" * 20_000,
    "-1",
    "+1",
    "1_000",
    " 1",
    "\u0661",
    "0000-01-01T00:00:00Z",
    "infinity",
    "9999-12-31T23:59:59-01:00",
    "P1Y",
    '{"b":[1]}',
    "7" * 40,
    "0.001",
    "1e-400",
    "99999.99",
]
RAW = [
    b"",
    b"null",
    b"{",
    b"}",
    b"\xff\xfe",
    b"[" * 3000,
    b"NaN",
    b"0",
    b'"u"',
    b"{}",
    b"[]",
    b'{"id":NaN}',
    b"1" * 5000,
]


def row(chance: random.Random, key: int) -> dict[str, Any]:
    return {"id": key, **{name: deepcopy(chance.choice(values)) for name, values in GOOD.items()}}


def event(chance: random.Random, offset: int) -> tuple[Any, Any]:
    """Key and value as Debezium writes them; the value None is a tombstone."""
    key, op = chance.randrange(1, 4), chance.choice("cuurdt")
    if op == "t":
        return {"id": key}, None
    source = {"version": "3", "sequence": f'["{100 + offset}","{200 + offset}"]', "ts_ms": 1, "ts_us": 1}
    after = None if op == "d" else row(chance, key)
    before = row(chance, key) if op in "ud" else None
    return {"id": key}, {"before": before, "after": after, "source": source, "transaction": None, "op": op, "ts_ms": 2}


def dumped(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def mutated(chance: random.Random, key: Any, value: Any) -> tuple[bytes | None, bytes | None]:
    """The bytes of an event of which something was changed, most often one thing."""
    parts = {"key": key, "value": value}
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        chance.choice([replace_part, replace_part, remove_part, add_part])(chance, parts)
    raw = {name: None if part is None else dumped(part) for name, part in parts.items()}
    for name in ("key", "value"):
        if chance.random() < 0.08:
            raw[name] = chance.choice([cut, flip, anything])(chance, raw[name] or b"")
    if chance.random() < 0.01:
        raw["key"] = None
    return raw["key"], raw["value"]


def holders(part: Any) -> Iterator[dict[str, Any] | list[Any]]:
    if isinstance(part, dict | list) and part:
        yield part
        for inner in part.values() if isinstance(part, dict) else part:
            yield from holders(inner)


def a_place(chance: random.Random, parts: dict[str, Any]) -> tuple[Any, Any]:
    holder: Any = chance.choice(list(holders(parts)))
    return holder, chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))


def replace_part(chance: random.Random, parts: dict[str, Any]) -> None:
    holder, at = a_place(chance, parts)
    holder[at] = deepcopy(chance.choice(ODD))


def remove_part(chance: random.Random, parts: dict[str, Any]) -> None:
    holder, at = a_place(chance, parts)
    if holder is not parts:
        del holder[at]


def add_part(chance: random.Random, parts: dict[str, Any]) -> None:
    holder, _ = a_place(chance, parts)
    if isinstance(holder, dict) and holder is not parts:
        holder[chance.choice(["extra", "id", "after", "op", "n"])] = deepcopy(chance.choice(ODD))


def cut(chance: random.Random, raw: bytes) -> bytes:
    return raw[: chance.randrange(len(raw) + 1)]


def flip(chance: random.Random, raw: bytes) -> bytes:
    at = chance.randrange(len(raw) + 1)
    return raw[:at] + bytes([chance.randrange(256)]) + raw[at + 1 :]


def anything(chance: random.Random, raw: bytes) -> bytes:
    return chance.choice(RAW)


@cache
def histories(*, are_good: bool = False, count: int = HISTORIES) -> Sequence[Sequence[KeptRecord]]:
    """Histories of mutated events, or the same ones before they were mutated."""
    chance, made = random.Random(SEED), []
    for _ in range(count):
        events = [event(chance, offset) for offset in range(LENGTH)]
        good = [(dumped(key), None if value is None else dumped(value)) for key, value in events]
        raw = [mutated(chance, key, value) for key, value in events]
        made.append(
            [
                KeptRecord(LogOffset("app.public.t", 0, offset), 0, key, value, None)
                for offset, (key, value) in enumerate(good if are_good else raw)
            ]
        )
    return made


Rows = dict[int, dict[str, Any] | None]


class Plain:
    """The rows after some events, in JSON; None for a deleted one. Raises ValueError for what is no event."""

    def __init__(self) -> None:
        self.rows: Rows = {}

    def add(self, record: KeptRecord, *, is_strict: bool = True) -> None:
        key = orjson.loads(record.key() or b"")
        raw = record.value()
        if list(key) != ["id"] or type(key["id"]) is not int:
            raise ValueError("key")
        if raw is None:
            self.rows[key["id"]] = None
            return
        value = orjson.loads(raw)
        if is_strict:
            commit, lsn = orjson.loads(value["source"]["sequence"])
            if any(type(each) is not str for each in (commit, lsn) if each is not None):
                raise ValueError("sequence")
        after = None if value["op"] == "d" else value["after"]
        if value["op"] not in ("c", "u", "d", "r") or (after is not None and after["id"] != key["id"]):
            raise ValueError("op")
        self.rows[key["id"]] = after


def rows_of(sifted_or_folded: Any) -> Rows:
    folded = sifted_or_folded.folded if isinstance(sifted_or_folded, Sifted) else sifted_or_folded
    rows: Rows = {each["id"]: each for each in folded.upserts.to_pylist()}
    assert len(rows) == folded.upserts.num_rows
    gone = folded.deletes.column("id").to_pylist()
    assert not rows.keys() & set(gone)
    return rows | dict.fromkeys(gone)


def expected(records: Sequence[KeptRecord], *, is_strict: bool = True) -> Rows:
    plain = Plain()
    for record in records:
        plain.add(record, is_strict=is_strict)
    return plain.rows


def assert_says(found: Rows, wanted: Rows) -> None:
    """The decoded rows are those of the JSON, as far as a column's JSON is the value."""
    assert found.keys() == wanted.keys()
    for key, decoded in found.items():
        raw = wanted[key]
        assert (decoded is None) == (raw is None)
        if decoded is None or raw is None:
            continue
        assert decoded.keys() == raw.keys()
        for name in ("id", "n", "ok", "tags", "body"):
            assert (type(decoded[name]), decoded[name]) == (type(raw[name]), raw[name]), name
        assert {name for name in raw if decoded[name] is None} == {name for name in raw if raw[name] is None}
        assert decoded["f"] is None or (math.isfinite(decoded["f"]) and decoded["f"] == raw["f"])


def in_fold(records: Sequence[KeptRecord]) -> Rows:
    fold = Fold(TABLE)
    for record in records:
        fold.add(parse_record(record))
    assert fold.lookups() == set()
    return rows_of(fold.finish({}))


def last_of_each_key(records: Sequence[KeptRecord]) -> list[KeptRecord]:
    return sorted({record.key(): record for record in records}.values(), key=KeptRecord.offset)


def in_latest(records: Sequence[KeptRecord]) -> Rows:
    latest = Latest(TABLE)
    latest.add(records)
    return rows_of(latest.finish())


@pytest.mark.parametrize(("read", "is_strict"), [(in_fold, True), (in_latest, False)])
def test_fuzzed_events_give_what_they_say_or_an_error_of_ours(
    read: Callable[[Sequence[KeptRecord]], Rows], is_strict: bool
) -> None:
    outcomes = {True: 0, False: 0}
    for records in histories():
        said = ""
        try:
            found = read(records)
        except EventError as error:
            said = str(error)
        outcomes[not said] += 1
        assert SECRET not in said
        if not said:
            assert_says(found, expected(records if is_strict else last_of_each_key(records), is_strict=is_strict))
    assert min(outcomes.values()) > HISTORIES / 20, outcomes


def test_enough_events_are_mutated() -> None:
    pairs = zip(histories(), histories(are_good=True), strict=True)
    assert sum(a != b for found, good in pairs for a, b in zip(found, good, strict=True)) >= 5 * HISTORIES // 3


def test_fuzzed_events_are_sifted_into_those_that_give_rows_and_those_that_are_bad() -> None:
    parked, count = 0, HISTORIES // 3
    for records in histories(count=count):
        sifted = sift(TABLE, [parse_record(record) for record in records], lambda fold: {})
        left_out = {each.log_offset.offset: each for each in sifted.parked}
        assert_says(rows_of(sifted), expected([each for each in records if each.offset() not in left_out]))
        for each in left_out.values():
            assert each.error is None or str(each.log_offset) in str(each.error)
            assert SECRET not in each.reason
        parked += len(left_out)
    assert parked > count


def test_events_that_nobody_has_touched_are_all_applied() -> None:
    for records in histories(are_good=True, count=HISTORIES // 2):
        rows = in_fold(records)
        assert_says(rows, expected(records))
        assert in_latest(records) == rows
        assert not sift(TABLE, [parse_record(record) for record in records], lambda fold: {}).parked

"""What Postgres stores of a value, and that what is written of it is what the product decodes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import orjson
import pytest

from cdc_views.base.names import TableName
from cdc_views.capture import types as capture
from cdc_views.errors import BadValue
from cdc_views.source.catalog import SourceColumn
from cdc_views.testing.memory.values import TYPES, numeric_typmod, stored, written

TABLE = TableName("public", "t")
MONEY = numeric_typmod(12, 2)
EAST = timezone(timedelta(hours=2))

# Shapes and ranges that nobody computes views of; a test that has them is refused by name.
WITHOUT = {"point", "line", "lseg", "box", "path", "polygon", "circle", "tstzmultirange"}
CASES: list[tuple[str, int, Any, Any]] = [
    ("int2", -1, "7", 7),
    ("int4", -1, 2.5, 2),
    ("int4", -1, Decimal("2.5"), 3),
    ("int8", -1, 2**62, 2**62),
    ("oid", -1, 2**32 - 1, 2**32 - 1),
    ("bool", -1, "yes", True),
    ("bool", -1, 0, False),
    ("float4", -1, 0.1, 0.10000000149011612),
    ("float8", -1, "1e17", 1e17),
    ("numeric", MONEY, 2.005, Decimal("2.01")),
    ("numeric", MONEY, "-2.005", Decimal("-2.01")),
    ("numeric", MONEY, 5, Decimal("5.00")),
    ("numeric", MONEY, "-0.001", Decimal("0.00")),
    ("numeric", numeric_typmod(3, -2), 1250, Decimal("1300")),
    ("numeric", numeric_typmod(38, 10), "1234567890123456789012345678.0123456789",
     Decimal("1234567890123456789012345678.0123456789")),
    ("numeric", numeric_typmod(40, 2), "1.5", "1.50"),
    ("numeric", -1, Decimal("1E+3"), "1000"),
    ("numeric", -1, "12.500", "12.500"),
    ("numeric", -1, "NaN", "NaN"),
    ("money", -1, "$1,000.5", "1000.50"),
    ("text", -1, "a\nb", "a\nb"),
    ("text", -1, 7, "7"),
    ("varchar", 9, "abc     ", "abc  "),
    ("bpchar", 7, "a ", "a"),
    ("name", -1, "x" * 70, "x" * 63),
    ("char", -1, "ab", "a"),
    ("uuid", -1, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    ("json", -1, '{"b":1,  "a": 2}', '{"b":1,  "a": 2}'),
    ("json", -1, {"b": [1, None]}, '{"b": [1, null]}'),
    ("jsonb", -1, '{"bb":1,"a":2,"a":1.50}', '{"a": 1.50, "bb": 1}'),
    ("hstore", -1, {"a": 1, "b": None}, '{"a": "1", "b": null}'),
    ("date", -1, "2026-01-02", date(2026, 1, 2)),
    ("date", -1, datetime(2026, 1, 2, 23), date(2026, 1, 2)),
    ("timestamp", -1, "2026-01-02 03:04:05.5", datetime(2026, 1, 2, 3, 4, 5, 500_000, UTC)),
    ("timestamp", 0, datetime(2026, 1, 2, 3, 4, 5, 500_000), datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)),
    ("timestamp", -1, datetime(1, 1, 1), datetime(1, 1, 1, tzinfo=UTC)),
    ("timestamptz", -1, datetime(2026, 1, 2, 3, tzinfo=EAST), datetime(2026, 1, 2, 1, tzinfo=UTC)),
    ("timestamptz", -1, "2026-01-02T03:04:05.123456+02:00", datetime(2026, 1, 2, 1, 4, 5, 123456, UTC)),
    ("time", -1, time(1, 2, 3, 500_000), "01:02:03.5"),
    ("time", -1, "24:00:00", "24:00:00"),
    ("timetz", -1, "03:00:00+02:00", "01:00:00+00"),
    ("interval", -1, timedelta(days=1, hours=2, milliseconds=1500), "1 day 02:00:01.5"),
    ("interval", -1, timedelta(hours=-1), "-01:00:00"),
    ("interval", -1, "P1Y2DT3S", "1 year 2 days 00:00:03"),
    ("interval", -1, "1 year -2 mons +3 days -04:05:06.7", "1 year -2 mons +3 days -04:05:06.7"),
    ("numeric", -1, "-Infinity", "-Infinity"),
    ("bytea", -1, b"\x00\xff", b"\x00\xff"),
    ("bytea", -1, "\\x00ff", b"\x00\xff"),
    ("inet", -1, "10.0.0.1", "10.0.0.1"),
]  # fmt: skip


@pytest.mark.parametrize(("pg_type", "typmod", "given", "wanted"), CASES)
def test_value_is_stored_as_postgres_does_and_written_as_the_product_reads(
    pg_type: str, typmod: int, given: Any, wanted: Any
) -> None:
    found = stored(given, pg_type, typmod, "c")
    assert (found, type(found)) == (wanted, type(wanted))
    raw = orjson.loads(orjson.dumps(written(found, pg_type)))
    decoded = capture.column_type(TABLE, SourceColumn("c", 1, pg_type, typmod, None, False, False))
    assert decoded.array(decoded.values([raw, None])).to_pylist() == [wanted, None]
    assert stored(found, pg_type, typmod, "c") == found


def test_every_type_that_the_product_decodes_can_be_written() -> None:
    assert {*capture._TYPES, "numeric"} - TYPES.keys() == WITHOUT


def test_null_is_null_in_every_type() -> None:
    assert {written(stored(None, name, -1, "c"), name) for name in TYPES} == {None}


@pytest.mark.parametrize(
    ("pg_type", "typmod", "given", "problem"),
    [
        ("int2", -1, 40000, "out of range"),
        ("int4", -1, "x", 'found a str that is no "int4"'),
        ("bool", -1, "o", "no"),
        ("bool", -1, 2, "no"),
        ("numeric", numeric_typmod(4, 2), "99.995", r"does not fit numeric\(4,2\)"),
        ("varchar", 7, "abcd", "4 characters, wanted at most 3"),
        ("bpchar", 7, "abcd", "4 characters, wanted at most 3"),
        ("text", -1, "a\0", "NUL"),
        ("text", -1, b"a", "found a bytes"),
        ("json", -1, "{", 'no "json"'),
        ("date", -1, "2026-02-30", 'no "date"'),
        ("uuid", -1, "x", 'no "uuid"'),
        ("bytea", -1, 1, 'no "bytea"'),
        ("interval", -1, "P", 'no "interval"'),
    ],
)
def test_value_that_does_not_fit_is_refused_without_being_shown(
    pg_type: str, typmod: int, given: Any, problem: str
) -> None:
    with pytest.raises(BadValue, match=problem) as raised:
        stored(given, pg_type, typmod, 'column "c"')
    assert str(given) not in raised.value.message or len(str(given)) < 3

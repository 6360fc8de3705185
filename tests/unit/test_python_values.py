"""Values of Arrow as values of Python and back, with times that Python does not have."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc_views.base.exact_value import exact_scalar
from cdc_views.base.python_values import (
    arrow_rows,
    far_scalar,
    plain_values,
    python_rows,
    python_value,
    python_values,
    scalar_of_text,
)

UTC_TIME = pa.timestamp("us", "UTC")
KINDS = [pa.date32(), UTC_TIME, *(pa.timestamp(unit) for unit in ("s", "ms", "us"))]
SECOND = 10**6
DAY = 86400 * SECOND
FAR_DAY = 3_663_383


def array(kind: pa.DataType, *values: Any) -> pa.Array:
    """Times by their number."""
    return pa.array(values, kind)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.date32(), FAR_DAY, "12000-01-02"),
        (pa.date32(), -735_160, "-0043-03-15"),
        (pa.date32(), -719_528, "0000-01-01"),
        (pa.date32(), 2**31 - 1, "infinity"),
        (pa.date32(), -(2**31) + 1, "-infinity"),
        (pa.date32(), -(2**31), "-5877641-06-23"),
        (UTC_TIME, FAR_DAY * DAY + 11045 * SECOND + 6, "12000-01-02T03:04:05.000006+00:00"),
        (UTC_TIME, -(2**63), "-290308-12-21T19:59:05.224192+00:00"),
        (UTC_TIME, 2**63 - 2, "294247-01-10T04:00:54.775806+00:00"),
        (UTC_TIME, 2**63 - 1, "infinity"),
        (UTC_TIME, -(2**63) + 1, "-infinity"),
        (pa.timestamp("us"), -735_160 * DAY, "-0043-03-15T00:00:00.000000"),
        (pa.timestamp("s"), FAR_DAY * 86400, "12000-01-02T00:00:00"),
        (pa.timestamp("ms"), FAR_DAY * 86400_000 + 7, "12000-01-02T00:00:00.007"),
    ],
)
def test_far_time_is_a_text_that_stands_for_it(kind: pa.DataType, value: int, text: str) -> None:
    assert python_values(array(kind, value)) == [text]
    assert scalar_of_text(text, kind).value == value
    assert exact_scalar(text, kind).value == value


@pytest.mark.parametrize("kind", KINDS)
@given(value=st.integers(-(2**63), 2**63 - 1))
@example(value=2**63 - 1)
@example(value=-(2**63))
@example(value=0)
def test_every_time_comes_back(kind: pa.DataType, value: int) -> None:
    if pa.types.is_date32(kind):
        value >>= 32
    rows = pa.record_batch({"at": array(kind, value)})
    found = python_rows(rows)
    assert arrow_rows(found, rows.schema).equals(rows)
    if isinstance(found[0]["at"], str):
        assert scalar_of_text(found[0]["at"], kind).value == value


def test_far_times_within_other_values_come_back() -> None:
    nested = pa.struct([("at", UTC_TIME), ("days", pa.list_(pa.date32())), ("by", pa.map_(pa.string(), pa.date32()))])
    schema = pa.schema([("id", pa.int64()), ("at", UTC_TIME), ("in", nested), ("price", pa.decimal128(5, 2))])
    far: dict[str, Any] = {"at": FAR_DAY * DAY, "days": [0, FAR_DAY, None], "by": [("a", FAR_DAY), ("b", 0)]}
    rows = pa.RecordBatch.from_pylist(
        [
            {"id": 1, "at": FAR_DAY * DAY, "in": far, "price": Decimal("1.50")},
            {"id": 2, "at": datetime(2026, 1, 2, tzinfo=UTC), "in": None, "price": None},
        ],
        schema,
    )
    found = python_rows(rows)
    text = "12000-01-02T00:00:00.000000+00:00"
    day = date(1970, 1, 1)
    assert found == [
        {"id": 1, "at": text, "price": Decimal("1.50"),
         "in": {"at": text, "days": [day, "12000-01-02", None], "by": [("a", "12000-01-02"), ("b", day)]}},
        {"id": 2, "at": datetime(2026, 1, 2, tzinfo=UTC), "in": None, "price": None},
    ]  # fmt: skip
    assert arrow_rows(found, schema).equals(rows)
    assert arrow_rows(found, pa.schema([schema.field("in")])).equals(rows.select(["in"]))


def test_rows_without_columns_are_as_many() -> None:
    assert python_rows(pa.table({"a": [1, 2]}).select([])) == [{}, {}]


def test_times_are_compared_as_numbers() -> None:
    assert plain_values(pa.chunked_array([array(UTC_TIME, 5, None, 2**62)])) == [5, None, 2**62]
    assert plain_values(pa.chunked_array([array(pa.date32(), FAR_DAY)])) == [FAR_DAY]
    assert plain_values(pa.chunked_array([["b", None]])) == ["b", None]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("12000-01-02T03:04:05Z", UTC_TIME, FAR_DAY * DAY + 11045 * SECOND),
        ("12000-01-02 05:04:05+02:00", UTC_TIME, FAR_DAY * DAY + 11045 * SECOND),
        ("10000-01-01T00:30:00+01:00", UTC_TIME, 253_402_299_000 * SECOND),  # the last minutes of 9999
        ("9999-12-31T23:30:00-01:00", UTC_TIME, 253_402_302_600 * SECOND),
        ("2026-11-26", pa.date32(), 20783),
        ("7", pa.int64(), 7),
    ],
)
def test_text_stands_for_a_value(text: str, kind: pa.DataType, value: int) -> None:
    scalar = scalar_of_text(text, kind)
    assert getattr(scalar, "value", None) == value or scalar.as_py() == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("12000-02-30", pa.date32()),
        ("12000-01-02T03:04:05Z", pa.date32()),
        ("9999999-01-01", pa.date32()),
        ("12000-01-02", UTC_TIME),
        ("12000-01-02T03:04:05", UTC_TIME),  # in no zone
        ("12000-01-02T03:04:05Z", pa.timestamp("us")),
        ("12000-01-02T25:04:05Z", UTC_TIME),
        ("294248-01-01T00:00:00Z", UTC_TIME),
        ("12000-01-02T03:04:05.5", pa.timestamp("s")),
        ("99999999999999999999-01-01", pa.date32()),
        ("infinity", pa.int64()),
        ("x", pa.list_(pa.int64())),
    ],
)
def test_text_that_stands_for_no_value_is_an_error(text: str, kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match=r"."):
        scalar_of_text(text, kind)


def test_text_is_a_time_only_where_a_time_is_far() -> None:
    assert far_scalar("2026-01-02", pa.date32()) is None
    assert far_scalar("12000-01-02", pa.string()) is None
    assert python_value(pa.scalar("infinity")) == "infinity"
    for other in ("2026-01-02", 5, FAR_DAY):
        with pytest.raises(ValueError, match=r"."):
            exact_scalar(other, pa.date32())
    assert scalar_of_text(None, pa.int64()).as_py() is None

"""The type of every mirror column, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cdc_views.base.names import TableName
from cdc_views.capture.printed import printed_array
from cdc_views.capture.types import ColumnType, arrow_schema, column_type
from cdc_views.errors import BadEvent, UnsupportedType
from cdc_views.source.catalog import SourceColumn, SourceTable

TABLE = TableName("public", "t")
MICROS = pa.timestamp("us", tz="UTC")


def numeric_typmod(precision: int, scale: int) -> int:
    return ((precision << 16) | (scale & 0x7FF)) + 4


def type_of(type_name: str, typmod: int = -1, element: str | None = None) -> ColumnType:
    return column_type(TABLE, SourceColumn("c", 1, type_name, typmod, element, False, False))


def text_of(type_name: str) -> ColumnType:
    return column_type(TABLE, SourceColumn("c", 1, type_name, -1, None, False, False, as_text=True))


def decimal_of(precision: int, scale: int, element: str | None = None) -> ColumnType:
    name = "numeric" if element is None else f"_{element}"
    column = SourceColumn("c", 1, name, -1, element, False, False, as_decimal=(precision, scale))
    return column_type(TABLE, column)


def roundtrip(kind: ColumnType, raw: Sequence[Any]) -> list[Any]:
    found = kind.array(kind.values(raw))
    assert kind.decoded(raw).equals(found), "all values at once give what they give one by one"
    return found.to_pylist()


@pytest.mark.parametrize(
    ("type_name", "raw", "arrow", "value"),
    [
        ("int2", 7, pa.int16(), 7),
        ("int4", -7, pa.int32(), -7),
        ("int8", 2**62, pa.int64(), 2**62),
        ("bool", True, pa.bool_(), True),
        ("float8", 1.5, pa.float64(), 1.5),
        ("float8", 2, pa.float64(), 2.0),
        ("float4", 0.5, pa.float32(), 0.5),
        ("numeric", "1E-10", pa.string(), "0.0000000001"),
        ("numeric", "12.500", pa.string(), "12.500"),
        ("numeric", "NAN", pa.string(), "NaN"),
        ("text", "a\nb", pa.string(), "a\nb"),
        ("bpchar", "a  ", pa.string(), "a"),
        ("bpchar", "   ", pa.string(), ""),
        ("bpchar", "\ta\u00a0 ", pa.string(), "\ta\u00a0"),
        ("jsonb", '{"a": 1}', pa.string(), '{"a": 1}'),
        ("enum", "red", pa.string(), "red"),
        ("date", 0, pa.date32(), date(1970, 1, 1)),
        ("date", -719162, pa.date32(), date(1, 1, 1)),
        ("date", 2932896, pa.date32(), date(9999, 12, 31)),
        ("timestamp", 1_500_000, MICROS, datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)),
        ("timestamp", -62135596800000000, MICROS, datetime(1, 1, 1, tzinfo=UTC)),
        ("timestamptz", "2026-01-02T03:04:05.123456Z", MICROS, datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)),
        ("timestamptz", "2026-01-02T03:04:05Z", MICROS, datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),
        ("time", 3_661_500_000, pa.string(), "01:01:01.5"),
        ("time", 86_400_000_000, pa.string(), "24:00:00"),
        ("timetz", "12:34:56Z", pa.string(), "12:34:56+00"),
        ("bytea", "AAH/", pa.binary(), b"\x00\x01\xff"),
        ("bytea", "", pa.binary(), b""),
    ],
)
def test_decode_value_of_each_type_gives_its_exact_form(
    type_name: str, raw: Any, arrow: pa.DataType, value: Any
) -> None:
    kind = type_of(type_name)
    assert kind.arrow == arrow
    assert roundtrip(kind, [raw, None]) == [value, None]
    assert kind.value(raw) == value


@pytest.mark.parametrize(
    ("precision", "scale", "arrow"),
    [
        (12, 2, pa.decimal128(12, 2)),
        (38, 38, pa.decimal128(38, 38)),
        (3, -2, pa.decimal128(5, 0)),
        (2, 4, pa.decimal128(4, 4)),
        (39, 2, pa.string()),
        (1000, 0, pa.string()),
        (37, -2, pa.string()),
    ],
)
def test_column_type_of_numeric_follows_its_modifier(precision: int, scale: int, arrow: pa.DataType) -> None:
    assert type_of("numeric", numeric_typmod(precision, scale)).arrow == arrow


def test_decode_decimal_keeps_every_digit() -> None:
    kind = type_of("numeric", numeric_typmod(38, 10))
    assert roundtrip(kind, ["1234567890123456789012345678.0123456789"]) == [
        Decimal("1234567890123456789012345678.0123456789")
    ]


def test_decode_float4_equals_what_the_mirror_gives_back() -> None:
    kind = type_of("float4")
    assert kind.value(0.1) == roundtrip(kind, [0.1])[0]


@pytest.mark.parametrize(
    ("element", "raw", "value"),
    [
        ("text", ["a", None, ""], ["a", None, ""]),
        ("int4", [1, 2], [1, 2]),
        ("date", [0, None], [date(1970, 1, 1), None]),
        ("bytea", ["AA=="], [b"\x00"]),
        ("text", [], []),
    ],
)
def test_decode_array_gives_a_list(element: str, raw: list[Any], value: list[Any]) -> None:
    kind = type_of("_" + element, element=element)
    assert roundtrip(kind, [raw, None]) == [value, None]


@pytest.mark.parametrize(
    ("type_name", "raw"),
    [
        ("float8", "NaN"),
        ("float8", "Infinity"),
        ("float4", "-Infinity"),
        ("date", 2932897),
        ("date", -719163),
        ("timestamp", 9223372036825200000),
        ("timestamp", -9223372036832400000),
        ("timestamptz", "infinity"),
        ("timestamptz", "-infinity"),
        ("timestamptz", "+10000-01-01T00:00:00Z"),
        ("timestamptz", "-0044-03-15T00:00:00Z"),
        ("timestamptz", "0001-01-01T00:00:00+05:00"),
    ],
)
def test_decode_value_without_exact_form_names_table_and_column(type_name: str, raw: Any) -> None:
    for decode in (type_of(type_name).values, type_of(type_name).decoded):
        with pytest.raises(UnsupportedType, match=r'table "public\.t": column "c"') as caught:
            decode([raw])
        assert str(raw) not in str(caught.value).replace("an infinity", "")


def test_decode_decimal_not_a_number_is_refused() -> None:
    with pytest.raises(UnsupportedType, match="not a number"):
        type_of("numeric", numeric_typmod(5, 2)).decoded(["1.25", "NAN"])


@pytest.mark.parametrize(
    ("element", "raw"),
    [("int4", [None, None]), ("text", ["[Ljava.lang.String;@31aa4611"]), ("uuid", ["[[Ljava.util.UUID;@652ec951"])],
)
def test_decode_array_of_two_dimensions_is_refused(element: str, raw: list[Any]) -> None:
    with pytest.raises(UnsupportedType, match="more than one dimension"):
        type_of(f"_{element}", element=element).value(raw)


def test_decode_array_of_brackets_is_no_array_of_java() -> None:
    assert type_of("_text", element="text").value(["[Ljava.lang.String;@x", "[L"]) == ["[Ljava.lang.String;@x", "[L"]


@pytest.mark.parametrize(
    ("type_name", "raw"),
    [("int4", 1.5), ("int4", "1"), ("int4", True), ("text", 1), ("bool", 1), ("date", "x"), ("bytea", "_"),
     ("timestamptz", "nonsense"), ("timestamptz", 5), ("time", -1), ("text", {"a": 1}), ("point", {"x": 1.0}),
     ("path", {"wkb": "AQ=="}), ("box", {"wkb": "AQIAAAAAAAAA"}), ("interval", "P1D"), ("hstore", "[]"),
     ("timetz", "12:00"), ("float8", "nonsense"), ("pg_lsn", "_")],
)  # fmt: skip
def test_decode_json_of_another_shape_is_a_bad_event(type_name: str, raw: Any) -> None:
    for decode in (type_of(type_name).values, type_of(type_name).decoded):
        with pytest.raises(BadEvent, match='column "c" has JSON of another shape'):
            decode([raw])


def test_array_value_beyond_the_type_is_refused_without_showing_it() -> None:
    kind = type_of("numeric", numeric_typmod(4, 2))
    with pytest.raises(UnsupportedType, match="does not fit") as caught:
        kind.decoded(["98765.43"])
    assert "98765" not in str(caught.value)


def test_column_type_unknown_to_debezium_is_the_text_that_postgres_prints() -> None:
    assert type_of("pair").value("KDEs4piDKQ==") == "(1,☃)"


@pytest.mark.parametrize(
    ("type_name", "element"), [("varbit", None), ("bit", None), ("geometry", None), ("_time", "time"), ("_x", "x")]
)
def test_column_type_refused_names_table_column_and_type(type_name: str, element: str | None) -> None:
    with pytest.raises(UnsupportedType, match=rf'table "public\.t": column "c" .* "{element or type_name}"'):
        type_of(type_name, element=element)


@pytest.mark.parametrize("type_name", ["text", "int4", "interval"])
def test_column_type_as_text_of_another_type_is_refused(type_name: str) -> None:
    with pytest.raises(UnsupportedType, match=r"source\.text_columns takes date, float4, float8"):
        text_of(type_name)


@pytest.mark.parametrize(
    ("type_name", "raw", "text"),
    [
        ("numeric", "NAN", "NaN"),
        ("numeric", "NEGATIVE_INFINITY", "-Infinity"),
        ("float8", "NaN", "NaN"),
        ("float8", 1e15, "1e+15"),
        ("float8", 123456789012345.0, "123456789012345"),
        ("float8", -0.0, "-0"),
        ("float8", 1.25e-7, "1.25e-07"),
        ("float4", 1.4e-45, "1e-45"),
        ("float4", 999999, "999999"),
        ("float4", 1e6, "1e+06"),
        ("date", 2146033979, "infinity"),
        ("date", -625821272, "-infinity"),
        ("date", -719163, "0001-12-31 BC"),
        ("date", 2932897, "10000-01-01"),
        ("timestamp", -62135596800000001, "0001-12-31 23:59:59.999999 BC"),
        ("timestamp", 2**63 - 1, "infinity"),
        ("timestamptz", "-0043-03-15T12:34:56.780000Z", "0044-03-15 12:34:56.78+00 BC"),
        ("timestamptz", "+10000-01-01T00:00:00Z", "10000-01-01 00:00:00+00"),
        ("timestamptz", "-infinity", "-infinity"),
    ],
)
def test_text_form_of_a_value_is_what_postgres_prints(type_name: str, raw: Any, text: str) -> None:
    assert text_of(type_name).value(raw) == text


def test_text_form_of_a_time_that_overflowed_stops() -> None:
    with pytest.raises(UnsupportedType, match="year 294247"):
        text_of("timestamp").value(-9223372036853775810)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("1.5", "1.50"),
        ("1.5000000", "1.50"),
        ("-999.99", "-999.99"),
        ("0E-50", "0.00"),
        ("-0.00", "0.00"),
        ("1E+2", "100.00"),
        ("1." + "0" * 60, "1.00"),
    ],
)
def test_number_that_fits_a_declared_decimal_is_that_number(raw: str, value: str) -> None:
    kind = decimal_of(5, 2)
    assert kind.arrow == pa.decimal128(5, 2)
    assert roundtrip(kind, [raw, None]) == [Decimal(value), None]
    assert roundtrip(decimal_of(5, 2, "numeric"), [[raw, None]]) == [[Decimal(value), None]]


@pytest.mark.parametrize(
    "raw",
    [
        *("1000", "-1000", "0.001", "1E-40", "1E+50", "1." + "0" * 60 + "1", "NAN", "POSITIVE_INFINITY"),
        *("NEGATIVE_INFINITY", "NaN", "Infinity", "999.995"),
    ],
)
def test_number_that_does_not_fit_a_declared_decimal_stops_without_its_value(raw: str) -> None:
    for kind, value in ((decimal_of(5, 2), raw), (decimal_of(5, 2, "numeric"), [raw])):
        with pytest.raises(UnsupportedType, match=r'"c" holds a value that does not fit decimal\(5,2\)') as caught:
            kind.decoded([None, value])
        assert raw not in caught.value.message
        assert "source.decimal_columns" in str(caught.value.hint)
        printed = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}.get(raw, raw)
        column = SourceColumn("c", 1, "numeric", -1, None, False, False, as_decimal=(5, 2))
        with pytest.raises(UnsupportedType, match="does not fit"):
            printed_array(column, decimal_of(5, 2), [printed])


def test_declared_decimal_of_another_type_is_refused() -> None:
    column = SourceColumn("c", 1, "text", -1, None, False, False, as_decimal=(5, 2))
    with pytest.raises(UnsupportedType, match=r'column "c" has type "text", and source\.decimal_columns takes numeric'):
        column_type(TABLE, column)


def test_padding_of_char_is_dropped_in_arrays_too() -> None:
    assert roundtrip(type_of("_bpchar", 9, "bpchar"), [["a    ", None, "     "], []]) == [["a", None, ""], []]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('["2024-01-01 01:00:00.5+01",)', '["2024-01-01 00:00:00.5+00",)'),
        ('(,"2024-07-01 02:00:00+05:30")', '(,"2024-06-30 20:30:00+00")'),
        ("empty", "empty"),
        ("(,infinity]", "(,infinity]"),
        ('["0044-03-15 00:00:00+00 BC",)', '["0044-03-15 00:00:00+00 BC",)'),
    ],
)
def test_decode_range_of_times_is_at_utc(raw: str, text: str) -> None:
    assert type_of("tstzrange").value(raw) == text


def test_decode_range_of_times_bc_in_another_zone_stops() -> None:
    with pytest.raises(UnsupportedType, match="another zone than UTC"):
        type_of("tstzrange").value('["0044-03-15 00:00:00+01 BC",)')


def test_arrow_schema_keeps_the_tables_order() -> None:
    columns = (
        SourceColumn("b", 1, "int8", -1, None, True, False),
        SourceColumn("a", 2, "_text", -1, "text", False, True),
    )
    table = SourceTable(TABLE, 1, columns, ("b",), False, "default")
    assert arrow_schema(table) == pa.schema([pa.field("b", pa.int64()), pa.field("a", pa.list_(pa.string()))])


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (SourceColumn("a", 1, "_text", -1, "text", True, False), "is an array"),
        (SourceColumn("a", 1, "float8", -1, None, True, False), "is a float"),
        (SourceColumn("a", 1, "timetz", -1, None, True, False), "is a time with time zone"),
        (SourceColumn("a", 1, "date", -1, None, True, False, as_text=True), r"is in source\.text_columns"),
        (SourceColumn("a", 1, "numeric", -1, None, True, False, as_decimal=(5, 2)), r"is in source\.decimal_columns"),
        (SourceColumn("a", 1, "bpchar", -1, None, True, False), "is a bpchar without a length"),
    ],
)
def test_arrow_schema_with_a_key_that_tells_no_rows_apart_is_refused(column: SourceColumn, problem: str) -> None:
    with pytest.raises(UnsupportedType, match=f'key column "a" {problem}'):
        arrow_schema(SourceTable(TABLE, 1, (column,), ("a",), False, "default"))

"""The type of every mirror column: its Arrow type, and how Debezium's JSON is converted to it.

Assumes the connector settings that define the JSON: decimals and intervals as strings, times in microseconds, hstore as
JSON, bytea as base64, no schemas in the values, and a type that Debezium does not know as the base64 of what Postgres
prints. To add a type, add a line to one of the tables below. A type is mirrored as the text that Postgres prints unless
Delta has it exactly. docs/types.md lists every type; it is generated from the cases that tests/stack/test_types.py
compares with a real server.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdc_views.base.column_options import MAX_DECIMAL_DIGITS
from cdc_views.base.names import TableName
from cdc_views.capture import texts
from cdc_views.capture.inexact import DoesNotFitError, InexactValueError, OtherShapeError
from cdc_views.errors import RESET, BadEvent, UnsupportedType
from cdc_views.source.catalog import SourceColumn, SourceTable
from cdc_views.source.checks.refusals import REFUSED_REMEDY, TEXT_TYPES, key_refusal, refusal
from cdc_views.source.toast import numeric_size

_NULL: Final[type] = type(None)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = (date.min - _EPOCH.date()).days
_LAST_DAY: Final = (date.max - _EPOCH.date()).days
_DAY_US: Final = 86_400_000_000

Decode = Callable[[Any], Any]
Cast = Callable[[Sequence[Any], pa.DataType], pa.Array]


@dataclass(frozen=True)
class ColumnType:
    """The type of a column in the mirror.

    `decode` converts one JSON value, not null, to what `pa.array` takes and `to_pylist` returns; None if they are the
    same. `cast` gives the same array as `decode` for all values at once, or raises an error of Arrow. `json` has the
    Python types that the JSON value may have. `has_text`: source.text_columns can mirror the column as text, which
    holds every value.
    """

    arrow: pa.DataType
    decode: Decode | None
    json: frozenset[type]
    table: TableName
    column: str
    has_text: bool = False
    cast: Cast | None = None

    def value(self, raw: Any) -> Any:
        """Decode one value. Raises UnsupportedType, BadEvent."""
        return self.values([raw])[0]

    def values(self, raw: Sequence[Any]) -> Sequence[Any]:
        """Decode values; None stays None. Raises UnsupportedType, BadEvent."""
        unexpected = set(map(type, raw)) - self.json
        # Arrow would accept 1.5 for an integer. A float may be a string, "NaN", for which `decode` has a better error.
        if unexpected and (self.decode is None or unexpected != {str}):
            raise self._other_shape()
        if self.decode is None:
            return raw
        decode = self.decode
        try:
            return [None if value is None else decode(value) for value in raw]
        except InexactValueError as error:
            raise self.inexact(error) from None
        except (TypeError, ValueError, LookupError, InvalidOperation, OverflowError, RecursionError, struct.error):
            raise self._other_shape() from None

    def decoded(self, raw: Sequence[Any]) -> pa.Array:
        """Decode values to Arrow. Raises UnsupportedType, BadEvent."""
        if self.cast is not None and set(map(type, raw)) <= self.json:
            # One by one takes ten times as long, but finds which value has no exact form.
            with suppress(pa.ArrowException, OverflowError, UnicodeEncodeError):
                return self.cast(raw, self.arrow)
        return self.array(self.values(raw))

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Convert decoded values to Arrow. Raises UnsupportedType."""
        try:
            return pa.array(values, self.arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            # Arrow's own message holds the value.
            raise UnsupportedType(
                f'table "{self.table}": column "{self.column}" holds a value that does not fit {self.arrow}',
                hint="the column's type may have changed since the mirror was created",
            ) from None

    def inexact(self, error: InexactValueError) -> UnsupportedType:
        """Return the error of a value that the column cannot hold."""
        if isinstance(error, DoesNotFitError):
            return UnsupportedType(
                f'table "{self.table}": column "{self.column}" holds {error}, which source.decimal_columns gives it',
                hint="change the value at the source, or give the column more digits in source.decimal_columns and "
                f"{RESET}",
            )
        return UnsupportedType(
            f'table "{self.table}": column "{self.column}" holds {error}, which has no exact form in Delta',
            hint=_stop_hint(self.table, self.column) if self.has_text else "change the value at the source",
        )

    def _other_shape(self) -> BadEvent:
        return BadEvent(
            f'table "{self.table}": column "{self.column}" has JSON of another shape than its type has',
            hint="the connector's settings, or the column's type, have changed since the mirror was created",
        )


def column_type(table: TableName, column: SourceColumn) -> ColumnType:
    """Return the mirror's type of a column. Raises UnsupportedType with table, column and type."""
    if reason := refusal(column):
        raise UnsupportedType(f'table "{table}": column "{column.name}" {reason}', hint=REFUSED_REMEDY)
    has_text, cast = False, None
    if column.as_text:
        decode, json = _TEXT_FORMS[column.type_name]
        form: _Form = (pa.string(), decode, json)
    elif column.element is not None:
        arrow, decode_one, json = _form(column.element, column)
        form = (pa.list_(arrow), _list_of(decode_one, json, column.element), frozenset({list, _NULL}))
    else:
        form = _form(column.type_name, column)
        has_text = column.type_name in TEXT_TYPES
        cast = _CASTS.get(form[1]) if column.as_decimal is None else _cast_exact_decimals
    return ColumnType(*form, table, column.name, has_text, cast)


def _form(name: str, column: SourceColumn) -> _Form:
    typmod = column.typmod
    if column.as_decimal is not None:
        return pa.decimal128(*column.as_decimal), exact_decimal(*column.as_decimal), _TEXT
    if name == "numeric":
        return _numeric(typmod)
    if name == "bit":
        return (pa.string(), _bit, _BOOL) if typmod == 1 else (pa.string(), texts.bits(typmod), _TEXT)
    return _TYPES.get(name, _UNKNOWN)


def _stop_hint(table: TableName, column: str) -> str:
    return (
        f'change the value at the source, or list "{table}.{column}" in source.text_columns and {RESET}: '
        "the column is then mirrored as the text that Postgres prints"
    )


def column_types(table: SourceTable) -> dict[str, ColumnType]:
    """Return the types of all columns, in the table's order. Raises UnsupportedType."""
    types = {column.name: column_type(table.name, column) for column in table.columns}
    for column in table.columns:
        if column.name in table.key:
            if reason := key_refusal(column):
                hint = "make another unique column the primary key"
                raise UnsupportedType(f'table "{table.name}": key column "{column.name}" {reason}', hint=hint)
            types[column.name] = replace(types[column.name], has_text=False)
    return types


def arrow_schema(table: SourceTable) -> pa.Schema:
    """Return the mirror's columns, in the table's order.

    All may be NULL: the source can add or drop NOT NULL without a change of the mirror.
    """
    return pa.schema([pa.field(name, kind.arrow) for name, kind in column_types(table).items()])


def prints_in_zone(table: SourceTable) -> bool:
    """Whether values of a table may be printed in, or shifted by, the time zone of the connector's session.

    For a type that only Postgres knows, such as a composite type, this cannot be told. Debezium converts times in
    arrays through Java's time zone.
    """
    kinds = {column.element or column.type_name for column in table.columns}
    return bool(kinds - _ZONELESS) or any(column.element in _TIMES for column in table.columns)


def _list_of(decode: Decode | None, json: frozenset[type], element: str) -> Decode:
    def decoded(values: list[Any]) -> list[Any]:
        found = set(map(type, values))
        if str in found and any(map(_is_java_array, values)):
            raise InexactValueError("an array of more than one dimension")
        if found == {_NULL} and element not in _NESTED_IN_JAVA:
            raise InexactValueError("an array of more than one dimension, or one of NULLs alone, which look the same")
        if not found <= json and (decode is None or found - json != {str}):
            raise OtherShapeError
        if decode is None:
            return values
        return [None if value is None else decode(value) for value in values]

    return decoded


def _is_java_array(value: Any) -> bool:
    return isinstance(value, str) and _JAVA_ARRAY.match(value) is not None


def _numeric(typmod: int) -> _Form:
    """The form of numeric(precision, scale)."""
    if typmod < 4:
        return pa.string(), texts.numeric, _TEXT
    precision, scale = numeric_size(typmod)
    # numeric(3,-2) holds up to 99900, numeric(2,4) up to 0.0099; Delta wants 0 <= scale <= precision.
    digits, places = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    if digits <= MAX_DECIMAL_DIGITS:
        return pa.decimal128(digits, places), _decimal if scale >= 0 else _whole, _TEXT
    return pa.string(), texts.numeric if scale >= 0 else texts.whole_numeric, _TEXT


def _decimal(text: str) -> Decimal:
    if text in texts.SPECIAL_NUMERICS:
        raise InexactValueError("not a number or an infinity")
    return Decimal(text)


def exact_decimal(precision: int, scale: int) -> Callable[[str], Decimal]:
    """Return the parser of numbers that fit decimal(precision, scale), as Debezium or Postgres prints them."""
    unit = Decimal(1).scaleb(-scale)
    exact = Context(prec=precision, traps=[Inexact, InvalidOperation])

    def decoded(text: str) -> Decimal:
        try:
            # Debezium's names of NaN and of the infinities are not numbers for Python.
            if (number := Decimal(text)).is_finite():
                return number.quantize(unit, context=exact)
        except (Inexact, InvalidOperation):
            pass
        raise DoesNotFitError(f"a value that does not fit decimal({precision},{scale})")

    return decoded


def _whole(text: str) -> Decimal:
    # Debezium reads a negative scale as a large one, and writes some two thousand zeros after the point.
    return _decimal(text).to_integral_value()


def _float64(value: Any) -> float:
    if isinstance(value, str):
        if value not in texts.SPECIAL_FLOATS:
            raise OtherShapeError
        raise InexactValueError("not a number or an infinity")
    return float(value)


def _float32(value: Any) -> float:
    # JSON has the shortest digits of the 4-byte number; the mirror gives back that number.
    return float(struct.unpack("f", struct.pack("f", _float64(value)))[0])


def _date(days: int) -> date:
    if not _FIRST_DAY <= days <= _LAST_DAY:
        raise InexactValueError("a date outside of the years 1 to 9999, or an infinity")
    return date.fromordinal(days - _FIRST_DAY + 1)


def _timestamp(microseconds: int) -> datetime:
    if not _FIRST_DAY * _DAY_US <= microseconds < (_LAST_DAY + 1) * _DAY_US:
        raise InexactValueError("a time outside of the years 1 to 9999, or an infinity")
    return _EPOCH + timedelta(microseconds=microseconds)


def _timestamptz(text: str) -> datetime:
    if text[:1] in "+-i" or text.startswith("0000") or text.endswith("BC"):
        raise InexactValueError("a time outside of the years 1 to 9999, or an infinity")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise OtherShapeError
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InexactValueError("a time outside of the years 1 to 9999, or an infinity") from None


def _cast_decimals(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    return pa.array(raw, pa.string()).cast(arrow)


def _cast_exact_decimals(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    numbers = pa.array(raw, pa.string())
    # Arrow silently turns 1E-40 into 0: it does not notice what numbers of more than 38 digits lose.
    longest = pc.max(pc.utf8_length(numbers)).as_py() or 0
    if longest > MAX_DECIMAL_DIGITS or pc.any(pc.match_substring(numbers, "E")).as_py():
        raise pa.ArrowInvalid("may lose digits")
    return numbers.cast(arrow)


def _cast_bpchar(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    return pc.utf8_rtrim(pa.array(raw, arrow), " ")


def _cast_dates(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    days = pa.array(raw, pa.int32())
    _require_within(days, _FIRST_DAY, _LAST_DAY)
    return days.cast(arrow)


def _cast_timestamps(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    microseconds = pa.array(raw, pa.int64())
    _require_within(microseconds, _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1)
    return microseconds.cast(arrow)


def _cast_timestamps_with_zone(raw: Sequence[Any], arrow: pa.DataType) -> pa.Array:
    moments = pa.array(raw, pa.string()).cast(arrow)
    # Arrow accepts the year 0, and a zone may shift a time out of the years that Delta has.
    _require_within(moments.cast(pa.int64()), _FIRST_DAY * _DAY_US, (_LAST_DAY + 1) * _DAY_US - 1)
    return moments


def _require_within(values: pa.Array, first: int, last: int) -> None:
    found = pc.min_max(values).as_py()
    if found["min"] is not None and not first <= found["min"] <= found["max"] <= last:
        raise pa.ArrowInvalid("out of range")


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)


def _bit(value: bool) -> str:
    return "1" if value else "0"


def _printed(text: str) -> str:
    """What Postgres prints, of a type that Debezium does not know."""
    return b64decode(text, validate=True).decode()


_Form = tuple[pa.DataType, Decode | None, frozenset[type]]

# If the elements of an array are arrays themselves, Debezium writes those of these types as Java prints an array,
# "[Ljava.lang.String;@1b2c3d"; those of the other types become NULL.
_NESTED_IN_JAVA: Final = frozenset({"text", "varchar", "bpchar", "json", "jsonb", "uuid", "inet", "enum"})
_JAVA_ARRAY: Final = re.compile(r"\[+Ljava\.[A-Za-z.]+;@[0-9a-f]+$")
_INT: Final[frozenset[type]] = frozenset({int, _NULL})
_BOOL: Final[frozenset[type]] = frozenset({bool, _NULL})
_FLOAT: Final[frozenset[type]] = frozenset({float, int, _NULL})
_TEXT: Final[frozenset[type]] = frozenset({str, _NULL})
_OBJECT: Final[frozenset[type]] = frozenset({dict, _NULL})

_TEXT_TYPES: Final = (
    *("text", "varchar", "char", "name", "citext", "enum", "uuid", "money", "json", "jsonb", "xml"),
    *("ltree", "tsvector", "inet", "cidr", "macaddr", "macaddr8", "isbn"),
    *("int4range", "int8range", "numrange", "tsrange", "daterange"),
)

_UNKNOWN: Final[_Form] = (pa.string(), _printed, _TEXT)

_TYPES: Final[Mapping[str, _Form]] = {
    "int2": (pa.int16(), None, _INT),
    "int4": (pa.int32(), None, _INT),
    "int8": (pa.int64(), None, _INT),
    "oid": (pa.int64(), None, _INT),
    "bool": (pa.bool_(), None, _BOOL),
    "float4": (pa.float32(), _float32, _FLOAT),
    "float8": (pa.float64(), _float64, _FLOAT),
    "date": (pa.date32(), _date, _INT),
    "timestamp": (pa.timestamp("us", tz="UTC"), _timestamp, _INT),
    "timestamptz": (pa.timestamp("us", tz="UTC"), _timestamptz, _TEXT),
    "time": (pa.string(), texts.time, _INT),
    "timetz": (pa.string(), texts.timetz, _TEXT),
    "interval": (pa.string(), texts.interval, _TEXT),
    "bytea": (pa.binary(), _bytes, _TEXT),
    "bpchar": (pa.string(), texts.bpchar, _TEXT),
    "hstore": (pa.string(), texts.hstore, _TEXT),
    "tstzrange": (pa.string(), texts.at_utc, _TEXT),
    "tstzmultirange": (pa.string(), lambda text: texts.at_utc(_printed(text)), _TEXT),
    "point": (pa.string(), texts.point, _OBJECT),
    "line": (pa.string(), texts.line, _OBJECT),
    "lseg": (pa.string(), texts.lseg, _OBJECT),
    "box": (pa.string(), texts.box, _OBJECT),
    "path": (pa.string(), texts.path, _OBJECT),
    "polygon": (pa.string(), texts.polygon, _OBJECT),
    "circle": (pa.string(), texts.circle, _OBJECT),
    **{name: (pa.string(), None, _TEXT) for name in _TEXT_TYPES},
}

_CASTS: Final[Mapping[Decode | None, Cast]] = {
    _decimal: _cast_decimals,
    _date: _cast_dates,
    _timestamp: _cast_timestamps,
    _timestamptz: _cast_timestamps_with_zone,
    texts.bpchar: _cast_bpchar,
}

_TIMES: Final = frozenset({"date", "time", "timetz", "timestamp", "timestamptz"})
_ZONELESS: Final = _TYPES.keys() | {
    *("numeric", "bit", "varbit", "int4multirange", "int8multirange", "nummultirange", "datemultirange"),
    *("tsmultirange", "pg_lsn", "xid", "xid8", "cid", "tid", "tsquery", "jsonpath", "pg_snapshot", "txid_snapshot"),
}

# The form that source.text_columns gives a type: the text that Postgres prints.
_TEXT_FORMS: Final[Mapping[str, tuple[Decode, frozenset[type]]]] = {
    "numeric": (texts.numeric, _TEXT),
    "float4": (texts.float4, _FLOAT | _TEXT),
    "float8": (texts.float8, _FLOAT | _TEXT),
    "date": (texts.date, _INT),
    "timestamp": (texts.timestamp, _INT),
    "timestamptz": (texts.timestamptz, _TEXT),
}

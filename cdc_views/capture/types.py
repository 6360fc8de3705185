"""The type of every mirror column: what Arrow holds, and how Debezium's JSON becomes it.

Assumes the connector settings that say what the JSON looks like: decimals and intervals as strings,
times in microseconds, hstore as JSON, bytea as base64, no schemas in the values. To add a type, add a
line to one of the tables below: a type is canonical text unless Delta has it exactly.

Texts without a type of their own in Delta, as readers see them:
  time, timetz            as Postgres prints them; timetz in UTC, since Debezium drops the zone
  interval                ISO 8601, as Debezium writes it
  numeric beyond decimal  plain digits, never an exponent; NaN as `NaN`
  json, xml               as written; jsonb, ranges, inet, hstore and the rest as Postgres prints them
"""

from __future__ import annotations

import struct
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import pyarrow as pa

from cdc_views.errors import BadEvent, UnsupportedType
from cdc_views.names import TableName
from cdc_views.source.catalog import Column, SourceTable

MAX_DECIMAL_DIGITS: Final = 38
_NULL: Final[type] = type(None)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY: Final = (date.min - _EPOCH.date()).days
_LAST_DAY: Final = (date.max - _EPOCH.date()).days
_DAY_US: Final = 86_400_000_000


class InexactValueError(ValueError):
    """A value that the column's type in Delta cannot hold exactly; says why, never the value."""


class _OtherShapeError(ValueError):
    """JSON of another shape than Debezium writes for the type."""


Decode = Callable[[Any], Any]


@dataclass(frozen=True)
class ColumnType:
    """What a column is in the mirror.

    `decode` takes Debezium's JSON value, not null, and gives what `pa.array` takes and `to_pylist` gives
    back; None where they are the same. `json` are the Python types that the JSON value may have.
    """

    arrow: pa.DataType
    decode: Decode | None
    json: frozenset[type]
    table: TableName
    column: str

    def value(self, raw: Any) -> Any:
        """One value decoded. Raises UnsupportedType, BadEvent."""
        return self.values([raw])[0]

    def values(self, raw: Sequence[Any]) -> Sequence[Any]:
        """The values decoded; None stays None. Raises UnsupportedType, BadEvent."""
        unexpected = set(map(type, raw)) - self.json
        # Arrow would take 1.5 for an integer. A float may be a text, "NaN", of which `decode` says more.
        if unexpected and (self.decode is None or unexpected != {str}):
            raise self._other_shape()
        if self.decode is None:
            return raw
        decode = self.decode
        try:
            return [None if value is None else decode(value) for value in raw]
        except InexactValueError as error:
            raise UnsupportedType(
                f'table "{self.table}": column "{self.column}" holds {error}, which has no exact form in Delta',
                hint="change the value at the source, or make the column a text there",
            ) from None
        except (TypeError, ValueError, InvalidOperation, OverflowError):
            raise self._other_shape() from None

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Decoded values as Arrow. Raises UnsupportedType."""
        try:
            return pa.array(values, self.arrow)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            # Arrow's own message holds the value.
            raise UnsupportedType(
                f'table "{self.table}": column "{self.column}" holds a value that does not fit {self.arrow}',
                hint="the column's type may have changed since the mirror was made",
            ) from None

    def _other_shape(self) -> BadEvent:
        return BadEvent(
            f'table "{self.table}": column "{self.column}" has JSON of another shape than its type has',
            hint="the connector's settings, or the column's type, are not those that the mirror was made with",
        )


def column_type(table: TableName, column: Column) -> ColumnType:
    """The mirror's type of a column. Raises UnsupportedType naming table, column and type."""
    name = column.type_name if column.element is None else column.element
    found = _numeric(column.typmod) if name == "numeric" else _TYPES.get(name)
    if found is None:
        raise UnsupportedType(
            f'table "{table}": column "{column.name}" has type "{name}", which has no form in a mirror',
            hint="leave the table out, or give it a column of another type",
        )
    arrow, decode, json = found
    if column.element is not None:
        arrow, decode, json = pa.list_(arrow), _list_of(decode, json), frozenset({list, _NULL})
    return ColumnType(arrow, decode, json, table, column.name)


def column_types(table: SourceTable) -> dict[str, ColumnType]:
    """The types of all columns, in the table's order. Raises UnsupportedType."""
    types = {column.name: column_type(table.name, column) for column in table.columns}
    for name in table.key:
        if pa.types.is_list(types[name].arrow):
            raise UnsupportedType(
                f'table "{table.name}": key column "{name}" is an array', hint="name another unique key of the table"
            )
    return types


def arrow_schema(table: SourceTable) -> pa.Schema:
    """The mirror's columns, in the table's order.

    All may be NULL: that a column is NOT NULL can change at the source without a change of the mirror.
    """
    return pa.schema([pa.field(name, kind.arrow) for name, kind in column_types(table).items()])


def _list_of(decode: Decode | None, json: frozenset[type]) -> Decode:
    def decoded(values: list[Any]) -> list[Any]:
        if list in set(map(type, values)):
            raise InexactValueError("an array of more than one dimension")
        if decode is None:
            if not json.issuperset(map(type, values)):
                raise _OtherShapeError
            return values
        return [None if value is None else decode(value) for value in values]

    return decoded


def _numeric(typmod: int) -> tuple[pa.DataType, Decode, frozenset[type]]:
    """numeric(precision, scale) of a type modifier; the scale is a signed number of 11 bits."""
    if typmod >= 4:
        precision = ((typmod - 4) >> 16) & 0xFFFF
        scale = (((typmod - 4) & 0x7FF) ^ 0x400) - 0x400
        # numeric(3,-2) holds up to 99900; numeric(2,4) up to 0.0099: Delta wants 0 <= scale <= precision.
        digits, scale = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
        if digits <= MAX_DECIMAL_DIGITS:
            return pa.decimal128(digits, scale), _decimal, _TEXT
    return pa.string(), _numeric_text, _TEXT


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite():
        raise InexactValueError("not a number or an infinity")
    return value


def _numeric_text(text: str) -> str:
    if "E" not in text and "N" not in text and "n" not in text:
        return text
    value = Decimal(text)  # Java prints 0.0000000001 as 1E-10
    if value.is_nan():
        return "NaN"
    if value.is_infinite():
        return "-Infinity" if value < 0 else "Infinity"
    return format(value, "f")


def _float64(value: Any) -> float:
    if isinstance(value, str):
        raise InexactValueError("not a number or an infinity")
    return float(value)


def _float32(value: Any) -> float:
    # JSON has the shortest digits of the 4-byte number; what the mirror gives back is that number.
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
    if text[:1] in "+-i" or text.endswith("BC"):
        raise InexactValueError("a time outside of the years 1 to 9999, or an infinity")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is UTC:
        return moment
    if moment.tzinfo is None:
        raise _OtherShapeError
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise InexactValueError("a time outside of the years 1 to 9999, or an infinity") from None


def _time(microseconds: int) -> str:
    if not 0 <= microseconds <= _DAY_US:
        raise _OtherShapeError
    seconds, fraction = divmod(microseconds, 1_000_000)
    minutes, second = divmod(seconds, 60)
    text = f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def _timetz(text: str) -> str:
    return text.removesuffix("Z") + "+00" if text.endswith("Z") else text


def _bytes(text: str) -> bytes:
    return b64decode(text, validate=True)


_INT: Final[frozenset[type]] = frozenset({int, _NULL})
_BOOL: Final[frozenset[type]] = frozenset({bool, _NULL})
_FLOAT: Final[frozenset[type]] = frozenset({float, int, _NULL})
_TEXT: Final[frozenset[type]] = frozenset({str, _NULL})

_TEXT_TYPES: Final = (
    *("text", "varchar", "bpchar", "char", "name", "citext", "enum", "uuid", "money", "interval"),
    *("json", "jsonb", "xml", "hstore", "ltree", "tsvector", "inet", "cidr", "macaddr", "macaddr8"),
    *("int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"),
)

_TYPES: Final[Mapping[str, tuple[pa.DataType, Decode | None, frozenset[type]]]] = {
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
    "time": (pa.string(), _time, _INT),
    "timetz": (pa.string(), _timetz, _TEXT),
    "bytea": (pa.binary(), _bytes, _TEXT),
    **{name: (pa.string(), None, _TEXT) for name in _TEXT_TYPES},
}

"""Values as Postgres prints them, converted to what the mirror holds.

For rows that are read from the source itself. The result equals what the decoder of events (types.py) makes of the
row's event; a test compares the two for every type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from cdc_views.capture.inexact import InexactValueError
from cdc_views.capture.types import ColumnType, arrow_schema, column_types, exact_decimal
from cdc_views.source.catalog import SourceColumn, SourceTable
from cdc_views.source.reading.printing import TextRow

Parse = Callable[[str], Any]

_OUT_OF_RANGE: Final = re.compile(r"BC$|infinity|^\d{5,}")
_ELEMENT: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')
_POINT: Final = re.compile(r"\([^()]+\)")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


def printed_rows(table: SourceTable, columns: Sequence[SourceColumn], rows: Sequence[TextRow]) -> pa.Table:
    """Return rows, at least one, of some of a table's columns as Arrow. Raises UnsupportedType."""
    types, schema = column_types(table), arrow_schema(table)
    values = zip(*rows, strict=True)
    arrays = [printed_array(column, types[column.name], texts) for column, texts in zip(columns, values, strict=True)]
    return pa.table(arrays, schema=pa.schema([schema.field(column.name) for column in columns]))


def printed_array(column: SourceColumn, kind: ColumnType, texts: Sequence[str | None]) -> pa.Array:
    """Return the column's values as Arrow. Raises UnsupportedType for a value that has no exact form in Delta."""
    parse = _polygon if column.type_name == "polygon" else _parser(kind.arrow, column.as_decimal)
    try:
        values = [None if text is None else parse(text) for text in texts]
    except InexactValueError as error:
        raise kind.inexact(error) from None
    return kind.array(values)


def _parser(arrow: pa.DataType, as_decimal: tuple[int, int] | None) -> Parse:
    if pa.types.is_list(arrow):
        element = _parser(arrow.value_type, as_decimal)
        return lambda text: [None if each is None else element(each) for each in _elements(text)]
    if pa.types.is_integer(arrow):
        return int
    if pa.types.is_floating(arrow):
        return _float
    if pa.types.is_decimal(arrow):
        return exact_decimal(*as_decimal) if as_decimal is not None else _decimal
    if pa.types.is_boolean(arrow):
        return lambda text: text == "t"
    if pa.types.is_date(arrow):
        return _date
    if pa.types.is_timestamp(arrow):
        return _timestamp
    if pa.types.is_binary(arrow):
        return lambda text: bytes.fromhex(text.removeprefix("\\x"))
    return str


def _float(text: str) -> float:
    if text in ("NaN", "Infinity", "-Infinity"):
        raise InexactValueError("not a number or an infinity")
    return float(text)


def _decimal(text: str) -> Decimal:
    if text in ("NaN", "Infinity", "-Infinity"):
        raise InexactValueError("not a number or an infinity")
    return Decimal(text)


def _date(text: str) -> date:
    if _OUT_OF_RANGE.search(text):
        raise InexactValueError("a date outside of the years 1 to 9999, or an infinity")
    return date.fromisoformat(text)


def _timestamp(text: str) -> datetime:
    if _OUT_OF_RANGE.search(text):
        raise InexactValueError("a time outside of the years 1 to 9999, or an infinity")
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _polygon(text: str) -> str:
    """Without a last point that repeats the first: Debezium's events do not show whether the source has it."""
    points = _POINT.findall(text)
    return f"({','.join(points[:-1])})" if len(points) > 1 and points[0] == points[-1] else text


def _elements(text: str) -> Iterator[str | None]:
    """Yield the elements of a one-dimensional array literal."""
    body = text.partition("={")[2] if text.startswith("[") else text.removeprefix("{")
    if "{" in _ELEMENT.sub("", body):
        raise InexactValueError("an array of more than one dimension")
    for quoted, plain in _ELEMENT.findall(body.removesuffix("}")):
        if plain:
            yield None if plain == "NULL" else plain
        else:
            yield _ESCAPED.sub(r"\1", quoted)

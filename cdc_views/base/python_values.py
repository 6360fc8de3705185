"""Values of Arrow as values of Python, and back.

Arrow has times for which Python has no value: those outside of the years 1 to 9999, and the infinities of DuckDB. In
Python, and in JSON, each of these *far* times is a text: "infinity", "-infinity", or its ISO form, such as
"12000-01-02T03:04:05.000000+00:00". Wherever a value is given by somebody, this text stands for the time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SECONDS_OF_DAY: Final = 86400
_INFINITIES: Final = {"infinity": 1, "-infinity": -1}
_ISO: Final = re.compile(r"(-?\d{4,12})(-\d\d-\d\d)(?:[T ](\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d(?::\d\d)?)?))?")
_SOME_DAY: Final = "2000-01-01"


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


_FORMS: Final = (
    (pa.types.is_timestamp, "a time needs a zone, as in 2026-11-26T08:00:00Z"),
    (pa.types.is_date, "write a date as 2026-11-26"),
    (pa.types.is_integer, "give a whole number, as in 42"),
    (pa.types.is_decimal, "give a number, as in 1.50"),
    (pa.types.is_floating, "give a number, as in 1.5"),
    (pa.types.is_boolean, "give true or false"),
    (_is_binary, "write bytes as hexadecimal digits, as in 0aff"),
)


def python_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows by column."""
    if not rows.num_columns:
        return [{} for _ in range(rows.num_rows)]
    names = rows.schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*map(python_values, rows.columns), strict=True)]


def python_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column."""
    try:
        found: list[Any] = values.to_pylist()
    except (OverflowError, ValueError):
        found = [python_value(value) for value in values]
    return found


def python_value(scalar: pa.Scalar) -> Any:
    """One value."""
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        kind = scalar.type
    if pa.types.is_struct(kind):
        return {field.name: python_value(scalar[number]) for number, field in enumerate(kind)}
    if pa.types.is_map(kind):
        return [(python_value(entry["key"]), python_value(entry["value"])) for entry in scalar.values]
    if pa.types.is_union(kind):
        return python_value(scalar.value)
    if pa.types.is_nested(kind):
        return python_values(scalar.values)
    return _far_text(scalar)


def plain_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column that is not nested, for comparison with others of its type: times are whole numbers."""
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def arrow_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    """The rows that `python_rows` has given, with these of their columns."""
    columns = [_arrow_values([row[field.name] for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def scalar_of_text(text: str | None, kind: pa.DataType) -> pa.Scalar:
    """The value that a text stands for. Raises ValueError."""
    if text is not None and (far := far_scalar(text, kind)) is not None:
        return far
    if text is not None and _is_binary(kind):
        return pa.scalar(bytes.fromhex(text), kind)
    try:
        return pc.cast(pa.scalar(text, pa.string()), kind)
    except (pa.ArrowException, OverflowError) as error:
        raise ValueError(str(error)) from None


def form_of(kind: pa.DataType) -> str:
    """How a value of a type is given, as a hint for one that is not of the type."""
    for is_of, form in _FORMS:
        if is_of(kind):
            return form
    return f"give a value of type {kind}"


def far_scalar(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """The far time that a text stands for; None if it is no such text, or if the type is not one of times.

    Raises ValueError if there is no such day, or if the type cannot hold the time.
    """
    if not _is_time(kind):
        return None
    if text in _INFINITIES:
        return pa.scalar(_INFINITIES[text] * _largest(kind), kind)
    found = _ISO.fullmatch(text)
    if found is None or 1 <= int(found[1]) <= 9999:
        return None
    day = int(np.datetime64(found[1] + found[2], "D").astype(np.int64))
    try:
        if pa.types.is_date32(kind):
            return pa.scalar(day, kind) if found[3] is None else None
        return None if found[3] is None else _timestamp(day, found[3], kind)
    except (pa.ArrowException, OverflowError) as error:
        raise ValueError(str(error)) from None


def _timestamp(day: int, time: str, kind: pa.TimestampType) -> pa.Scalar | None:
    """A day since 1970, and a time of this day, with a zone if the type has one."""
    moment = datetime.fromisoformat(f"{_SOME_DAY}T{time}")
    if (moment.tzinfo is None) != (kind.tz is None):
        return None
    begin = datetime.fromisoformat(_SOME_DAY).replace(tzinfo=None if moment.tzinfo is None else UTC)
    microseconds = day * _SECONDS_OF_DAY * 10**6 + (moment - begin) // timedelta(microseconds=1)
    value, rest = divmod(microseconds * _PER_SECOND[kind.unit], 10**6)
    if rest:
        raise ValueError(f"the time has a fraction that {kind} cannot hold")
    return pa.scalar(value, kind)


def _far_text(scalar: pa.Scalar) -> str:
    kind, value = scalar.type, scalar.value
    if abs(value) == _largest(kind):
        return "infinity" if value > 0 else "-infinity"
    if pa.types.is_date32(kind):
        return _day_text(value)
    day, rest = divmod(value, _SECONDS_OF_DAY * _PER_SECOND[kind.unit])
    time = str(np.datetime64(rest, kind.unit)).partition("T")[2]
    return f"{_day_text(day)}T{time}" + ("" if kind.tz is None else "+00:00")


def _day_text(day: int) -> str:
    text = str(np.datetime64(day, "D"))
    if text.startswith("-"):  # numpy counts the sign as a digit of the year
        year, rest = text[1:].split("-", 1)
        text = f"-{year:0>4}-{rest}"
    return text


def _largest(kind: pa.DataType) -> int:
    """DuckDB stores an infinity as the largest number, or as its negative."""
    return 2**31 - 1 if pa.types.is_date32(kind) else 2**63 - 1


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date32(kind) or pa.types.is_timestamp(kind))


def _arrow_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([_storable(value, kind) for value in values], kind)


def _storable(value: Any, kind: pa.DataType) -> Any:
    """A value in which each far time is its number."""
    if value is None:
        return None
    if isinstance(value, str):
        far = far_scalar(value, kind)
        return value if far is None else far.value
    if pa.types.is_struct(kind):
        return {field.name: _storable(value[field.name], field.type) for field in kind}
    if pa.types.is_map(kind):
        return [(_storable(key, kind.key_type), _storable(each, kind.item_type)) for key, each in value]
    if pa.types.is_nested(kind):
        return [_storable(each, kind.value_type) for each in value]
    return value

"""Values of rows as JSON, the same on the command line and over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pyarrow as pa


def json_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as objects of JSON.

    A time that Python cannot represent is a text: "infinity", "-infinity", or its ISO form with a year before 1 or
    after 9999.
    """
    try:
        return [json_value(row) for row in rows.to_pylist()]
    except (OverflowError, ValueError):
        columns = [[_of_scalar(value) for value in column] for column in rows.columns]
        names = rows.schema.names
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def json_value(value: Any) -> Any:
    """Return a value that JSON can represent."""
    if isinstance(value, Mapping):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no NaN
    return value if value is None or isinstance(value, str | int) else str(value)


def _of_scalar(scalar: pa.Scalar) -> Any:
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pa.types.is_struct(kind):
        return {field.name: _of_scalar(scalar[number]) for number, field in enumerate(kind)}
    if pa.types.is_map(kind):
        return [[_of_scalar(entry["key"]), _of_scalar(entry["value"])] for entry in scalar.values]
    if pa.types.is_nested(kind):
        return [_of_scalar(value) for value in scalar.values]
    try:
        return json_value(scalar.as_py())
    except (OverflowError, ValueError):
        return _far_time(scalar)


def _far_time(scalar: pa.Scalar) -> str:
    """A time outside of the years 1 to 9999; DuckDB stores an infinity as the largest number, or as its negative."""
    kind = scalar.type
    largest = 2**31 - 1 if pa.types.is_date32(kind) else 2**63 - 1
    if abs(scalar.value) == largest:
        return "infinity" if scalar.value > 0 else "-infinity"
    text = str(np.datetime64(scalar.value, "D" if pa.types.is_date(kind) else kind.unit))
    if text.startswith("-"):  # numpy counts the sign as a digit of the year
        year, rest = text[1:].split("-", 1)
        text = f"-{year:0>4}-{rest}"
    return f"{text}+00:00" if pa.types.is_timestamp(kind) and kind.tz is not None else text

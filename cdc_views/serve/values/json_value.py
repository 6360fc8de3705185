"""Values of rows as JSON, the same on the command line and over HTTP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc_views.base.python_values import python_rows


def json_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as objects of JSON."""
    return [json_value(row) for row in python_rows(rows)]


def json_value(value: Any) -> Any:
    """Return a value that JSON can represent."""
    if isinstance(value, Mapping):
        return {str(key): json_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(inner) for inner in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"  # as Postgres writes it: str() has an exponent where most digits are zeros
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has no NaN
    return value if value is None or isinstance(value, str | int) else str(value)

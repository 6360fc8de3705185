"""Conditions on a query's rows that Spark checks while it computes them. A row that breaks one ends the query.

They need no job of their own. Spark reports a broken condition as an error of the query, which `is_raised` recognises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from cdc_views.errors import KeyNotUnique
from cdc_views.store.delta_log import quoted

# Random, so that no view can raise these errors by itself.
TOO_LARGE: Final = f"too large {uuid4()}"
NOT_UNIQUE: Final = f"not unique {uuid4()}"

_COPIES: Final = "_cv_copies"
# The lower 33 bits of monotonically_increasing_id() are the row's number in its partition, from 0.
_ROW: Final = "(monotonically_increasing_id() & 8589934591)"
_FIXED_BYTES: Final = 16


@dataclass(frozen=True)
class Bound:
    """The largest result of a query that the driver collects, in rows and in bytes."""

    rows: int
    bytes: int


def bounded(rows: DataFrame, most: Bound) -> DataFrame:
    """The rows; the query raises TOO_LARGE as soon as one of its tasks has more rows than the driver collects.

    A task stops at the first row where (rows so far) * (bytes of this row) exceeds the limit. So rows of any width
    take at most `most.bytes` * (1 + ln `most.rows`) bytes per task.
    """
    width = " + ".join(_bytes_of(field) for field in rows.schema.fields)
    fits = f"{_ROW} < {most.rows} AND ({_ROW} + 1) * ({width}) <= {most.bytes}"
    return rows.where(_holds(fits, TOO_LARGE))


def unique(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows; the query raises NOT_UNIQUE if two of them have the same key. NULL equals NULL."""
    partition = f"PARTITION BY {', '.join(map(quoted, key))}" if key else ""
    counted = rows.selectExpr("*", f"count(1) OVER ({partition}) AS {_COPIES}")
    return counted.where(_holds(f"{_COPIES} = 1", NOT_UNIQUE)).drop(_COPIES)


def is_raised(error: Exception, name: str) -> bool:
    """Whether an error reports that this condition was broken."""
    return name in str(error)


def key_not_unique(key: Sequence[str]) -> KeyNotUnique:
    """The error for two rows with the same values in the columns of the derived key."""
    if not key:
        return KeyNotUnique("the result has more than one row, where its SELECT seemed to give at most one", key=())
    names = ", ".join(f'"{name}"' for name in key)
    return KeyNotUnique(f"the derived key ({names}) is not unique in the result", key=tuple(key))


def _holds(condition: str, error: str) -> str:
    return f"CASE WHEN {condition} THEN TRUE ELSE raise_error('{error}') IS NULL END"


def _bytes_of(field: T.StructField) -> str:
    name = quoted(field.name)
    if isinstance(field.dataType, T.StringType | T.BinaryType):
        return f"coalesce(octet_length({name}), 0) + {_FIXED_BYTES}"
    if isinstance(field.dataType, T.ArrayType | T.StructType):
        return f"coalesce(octet_length(cast({name} AS string)), 0) + {_FIXED_BYTES}"
    return str(_FIXED_BYTES)

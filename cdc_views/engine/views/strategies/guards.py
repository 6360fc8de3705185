"""Conditions on a query's rows that Spark checks while it computes them: a row that breaks one ends the query.

They cost no job of their own. Spark reports a broken one as an error of the query, which `is_raised` recognises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from cdc_views.errors import KeyNotUnique
from cdc_views.store.delta_log.schema import quoted

# No view can raise them: nobody else knows them.
TOO_LARGE: Final = f"too large {uuid4()}"
NOT_UNIQUE: Final = f"not unique {uuid4()}"

_COPIES: Final = "_cv_copies"
# Of monotonically_increasing_id(): the row's number in its partition, from 0.
_ROW: Final = "(monotonically_increasing_id() & 8589934591)"
_FIXED_BYTES: Final = 16


@dataclass(frozen=True)
class Bound:
    """How much of a query's result the driver takes."""

    rows: int
    bytes: int


def bounded(rows: DataFrame, most: Bound) -> DataFrame:
    """The rows; the query raises TOO_LARGE as soon as one of its tasks has more of them than the driver takes.

    A task stops at the first row for which its number of rows times the bytes of this row is beyond the limit. Rows of
    any widths then have at most `most.bytes` times (1 + ln `most.rows`) bytes a task.
    """
    width = " + ".join(_bytes_of(field) for field in rows.schema.fields)
    fits = f"{_ROW} < {most.rows} AND ({_ROW} + 1) * ({width}) <= {most.bytes}"
    return rows.where(_holds(fits, TOO_LARGE))


def unique(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """The rows; the query raises NOT_UNIQUE if two of them have the same key, NULL equal to NULL."""
    partition = f"PARTITION BY {', '.join(map(quoted, key))}" if key else ""
    counted = rows.selectExpr("*", f"count(1) OVER ({partition}) AS {_COPIES}")
    return counted.where(_holds(f"{_COPIES} = 1", NOT_UNIQUE)).drop(_COPIES)


def is_raised(error: Exception, name: str) -> bool:
    """Whether an error says that this condition was broken."""
    return name in str(error)


def key_not_unique(key: Sequence[str]) -> KeyNotUnique:
    """The error for rows that have the same values in the columns of the derived key."""
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

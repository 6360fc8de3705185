"""What a commit changes in a table: rows that the driver or Spark holds, or data files that others have written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame

from cdc_views.store.delta_log.entries import Add
from cdc_views.store.delta_log.schema import TableSpec

RowData: TypeAlias = pa.Table | DataFrame
"""Rows held by the driver, or computed by Spark."""


@dataclass(frozen=True)
class Changes:
    """What one version changes.

    `deleted` has the key columns of rows that vanish; `rows` the new rows, all columns, one per key
    and none with a key of `deleted` (if there is one, an Arrow table's row wins). `all_new`: no key
    of `rows` is stored yet, so that they can be appended.
    """

    deleted: RowData | None
    rows: RowData
    all_new: bool = False


@dataclass(frozen=True)
class Written:
    """What was written of a change: `add` actions of data files with its rows, each key once, and the deleted keys."""

    added: list[Add]
    deleted: pa.Table


@dataclass(frozen=True)
class WrittenRows:
    """A change whose rows others write as data files of the table.

    `write` is given the table's folder; the files' content is on the disk when it returns, their names may not be.
    `all_new` as in Changes, and what is deleted was not stored either.
    """

    write: Callable[[TableSpec, Path], Written]
    all_new: bool

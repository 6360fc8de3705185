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
    """The change of one version.

    `deleted` has the key columns of the deleted rows, `rows` all columns of the new rows, one per key and none with a
    key of `deleted` (if there is one in an Arrow table, the row wins). `all_new`: no key of `rows` is stored yet, so
    they can be appended.
    """

    deleted: RowData | None
    rows: RowData
    all_new: bool = False


@dataclass(frozen=True)
class Written:
    """The written part of a change: `add` actions of files with its rows, each key once, and the deleted keys."""

    added: list[Add]
    deleted: pa.Table


@dataclass(frozen=True)
class WrittenRows:
    """A change whose rows `write` puts into data files of the table.

    `write` gets the table's folder. When it returns, the content of the files is fsynced; their names need not be.
    `all_new` is as in Changes; deleted keys are not stored either then. With `replaces_all`, no stored row stays.
    A key may be that of many rows: a written or deleted key removes all stored rows that have it.
    """

    write: Callable[[TableSpec, Path], Written]
    all_new: bool
    replaces_all: bool = False

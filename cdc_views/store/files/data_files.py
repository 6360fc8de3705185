"""Writing one data file of a table: durable Parquet, and its `add` action for the log."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_views.store.delta_log.entries import Add
from cdc_views.store.files.statistics import Statistics, add_action
from cdc_views.store.storage.port import STORAGE

# A lookup by key decodes only the row groups that it needs. Smaller ones would slow down scans.
ROW_GROUP: Final = 20_000
# A row group of wide rows has fewer: ten documents of a search come from ten row groups.
ROW_GROUP_BYTES: Final = 2 << 20
_LEAST_IN_ROW_GROUP: Final = 100
# A lookup decodes pages. Smaller ones would slow down scans, most of all those by pyarrow.
PAGES_IN_ROW_GROUP: Final = 10
# Else a page would also end where it has a million bytes, which is at another row in each column.
_MOST_PAGE_BYTES: Final = 1 << 30
# In a file of few rows zstd and dictionaries take most of the time, and upkeep soon rewrites its rows anyway.
_SMALL_FILE: Final = 2_000
# The first rows of a row group, which show which columns repeat their values.
_SAMPLE_ROWS: Final = 2_000


def write_rows(table: Path, rows: pa.Table, bounded: Sequence[str]) -> Add:
    """Write rows as one file, with minimum and maximum of these columns. Its name is not durable yet."""
    is_small = rows.num_rows <= _SMALL_FILE
    codec, dictionaries = ("snappy", []) if is_small else ("zstd", repetitive(rows))
    name = f"part-00000-{uuid.uuid4()}-c000.{codec}.parquet"
    stream = pa.BufferOutputStream()
    size = rows_in_group(rows)
    with pq.ParquetWriter(stream, rows.schema, compression=codec, use_dictionary=dictionaries, **pages(size)) as writer:
        writer.write_table(rows, row_group_size=size)
    content = memoryview(stream.getvalue())
    STORAGE.put(table / name, content)
    statistics = Statistics(bounded)
    statistics.add(rows)
    return add_action(name, len(content), statistics, data_change=True)


def rows_in_group(rows: pa.Table) -> int:
    """The rows that a row group of such rows has: a whole part of the most, so that pieces of those are cut evenly."""
    if not rows.num_rows:
        return ROW_GROUP
    most_bytes = ROW_GROUP * rows.nbytes / rows.num_rows
    parts: int = min(ROW_GROUP // _LEAST_IN_ROW_GROUP or 1, math.ceil(most_bytes / ROW_GROUP_BYTES))
    return ROW_GROUP // parts


def pages(rows_in_group: int) -> dict[str, Any]:
    """Options of a writer: all columns of such row groups have pages of the same rows, and the file says where."""
    rows = max(1, rows_in_group // PAGES_IN_ROW_GROUP)
    return {"max_rows_per_page": rows, "data_page_size": _MOST_PAGE_BYTES, "write_page_index": True}


def repetitive(rows: pa.Table) -> list[str]:
    """The columns whose first rows repeat few values, nested ones excluded.

    Other columns are larger with a dictionary, and slower to write and to read.
    """
    first = rows.slice(0, _SAMPLE_ROWS)
    plain = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    return [name for name in plain if 2 * pc.count_distinct(first[name], mode="all").as_py() < first.num_rows]

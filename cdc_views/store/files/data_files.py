"""A data file of a table: its Parquet, durable, and what the log says of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_views.store.delta_log.state import Add
from cdc_views.store.storage import durable

# A lookup by key decodes row groups, not the file; a scan of smaller ones costs more.
ROW_GROUP: Final = 20_000
# Of a file of few rows zstd and dictionaries take most of the time, and upkeep writes its rows again soon.
_SMALL_FILE: Final = 2_000
# Of a row group, to see which columns repeat.
_SAMPLE_ROWS: Final = 2_000


def write_rows(table: Path, rows: pa.Table, whole_numbers: Sequence[str]) -> Add:
    """Write rows as one file, with minimum and maximum of these columns; its name is not durable yet."""
    is_small = rows.num_rows <= _SMALL_FILE
    codec, dictionaries = ("snappy", []) if is_small else ("zstd", repetitive(rows))
    name = f"part-00000-{uuid.uuid4()}-c000.{codec}.parquet"
    stream = pa.BufferOutputStream()
    pq.write_table(rows, stream, compression=codec, use_dictionary=dictionaries, row_group_size=ROW_GROUP)
    content = memoryview(stream.getvalue())
    durable.write(table / name, content)
    return {
        "path": name,
        "partitionValues": {},
        "size": len(content),
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": orjson.dumps(_statistics(rows, whole_numbers)).decode(),
    }


def repetitive(rows: pa.Table) -> list[str]:
    """The columns of which the first rows have few values, again and again; never nested ones.

    Others are larger with a dictionary, and take longer to write and to read.
    """
    first = rows.slice(0, _SAMPLE_ROWS)
    plain = [field.name for field in rows.schema if not pa.types.is_nested(field.type)]
    return [name for name in plain if 2 * pc.count_distinct(first[name], mode="all").as_py() < first.num_rows]


def _statistics(rows: pa.Table, columns: Sequence[str]) -> dict[str, Any]:
    extremes = {name: pc.min_max(rows[name]).as_py() for name in columns}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: found["min"] for name, found in extremes.items() if found["min"] is not None},
        "maxValues": {name: found["max"] for name, found in extremes.items() if found["max"] is not None},
        "nullCount": {name: rows[name].null_count for name in columns},
        "tightBounds": True,
    }

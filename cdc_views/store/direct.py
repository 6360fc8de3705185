"""A Delta commit without Spark: one Parquet file, deletion vectors, one entry of the log, put if absent.

For small tables, where a MERGE through Spark costs seconds of planning and jobs. The rows that vanish are
found by reading the key columns of the table's files, so the cost follows the number of stored keys; larger
tables, large changes and anything unusual are Spark's. Both ways give the same rows (tests/spark).
"""

from __future__ import annotations

import errno
import os
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_views import metrics
from cdc_views.store.deletion_vectors import Rows, VectorFile, read_rows
from cdc_views.store.entries import disk_full, put_entry, sync_folder
from cdc_views.store.features import READER_FEATURES, WRITER_FEATURES
from cdc_views.store.schema import TableSpec, statistics_columns
from cdc_views.store.state import Add, TableState
from cdc_views.store.versions import Stamp, head

MOST_STORED_ROWS: Final = 2_000_000
MOST_CHANGED_ROWS: Final = 200_000

# A lookup by key decodes one row group, not the file.
_ROW_GROUP: Final = 10_000


def is_possible(spec: TableSpec, state: TableState, changed_rows: int) -> bool:
    """Whether this table, and a change of this size, can be committed directly."""
    if not all(_has_one_form(spec.schema.field(name).type) for name in spec.key):
        return False
    known = frozenset((*READER_FEATURES, *WRITER_FEATURES))
    stored = state.stored_rows
    return (
        state.features <= known
        and not state.is_partitioned
        and stored is not None
        and stored <= MOST_STORED_ROWS
        and changed_rows <= MOST_CHANGED_ROWS
    )


def _has_one_form(kind: pa.DataType) -> bool:
    """Whether equal values of this type are equal in Arrow and Python too, whoever wrote the file.

    Floats are not (NaN, and -0.0 beside 0.0), nor times (files of Spark may have them in another unit and
    without a zone), nor nested values; by such keys Spark finds the rows.
    """
    types = pa.types
    return any(
        is_kind(kind)
        for is_kind in (types.is_integer, types.is_string, types.is_boolean, types.is_date32, types.is_binary,
                        types.is_decimal128)
    )  # fmt: skip


def keys_of(tables: Sequence[pa.Table], spec: TableSpec) -> pa.Table:
    """The key columns of all rows; of a table with the empty key, as many NULLs as there are rows."""
    if not spec.key:
        return pa.table({"any": pa.nulls(sum(table.num_rows for table in tables))})
    keys = pa.schema([spec.schema.field(name) for name in spec.key])
    return pa.concat_tables([keys.empty_table(), *(table.select(keys.names).cast(keys) for table in tables)])


def commit(
    table: Path, app: str, spec: TableSpec, state: TableState, gone: pa.Table, rows: pa.Table, stamp: Stamp
) -> None:
    """Make the version after `state`: without the rows whose key is one of `gone`, and with `rows`.

    `gone` has the key columns of rows that vanish and of rows that are replaced. Advances `state`.
    Raises VersionTaken, DiskFull.
    """
    vectors = VectorFile()
    actions: list[dict[str, Any]] = []
    for add in list(state.files.values()):
        actions += _without(table, spec, add, gone, vectors)
    operation = "MERGE" if actions else "WRITE"
    try:
        if rows.num_rows:
            actions.append({"add": _write_rows(table, spec, rows)})
        _write_vectors(table, vectors, actions)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise disk_full(table) from error
        raise
    entry: list[dict[str, Any]] = [
        *map(dict, head(app, state.version, stamp, operation, is_append=operation == "WRITE")),
        *actions,
    ]
    put_entry(table, state.version + 1, entry)
    state.apply(state.version + 1, entry)


def _without(table: Path, spec: TableSpec, add: Add, gone: pa.Table, vectors: VectorFile) -> list[dict[str, Any]]:
    """What the log must say so that a file no longer has the rows of these keys; nothing if it has none."""
    dead = read_rows(table, add.get("deletionVector"))
    found = Rows(_rows_of(table, spec.key, add, gone)) - dead
    if not found:
        return []
    now_ms = time.time_ns() // 1_000_000
    stats = _exact(orjson.loads(add["stats"]))
    carried = {name: add[name] for name in ("path", "partitionValues", "size", "tags", "stats") if add.get(name)}
    removed = {**carried, "deletionTimestamp": now_ms, "dataChange": True, "extendedFileMetadata": True,
               "partitionValues": add.get("partitionValues") or {}}  # fmt: skip
    if vector := add.get("deletionVector"):
        removed["deletionVector"] = vector
    dead |= found
    if len(dead) == stats["numRecords"]:
        return [{"remove": removed}]
    # With rows gone, minimum and maximum are bounds only.
    stats["tightBounds"] = False
    kept = {**carried, "partitionValues": add.get("partitionValues") or {}, "stats": orjson.dumps(stats).decode(),
            "modificationTime": add["modificationTime"], "dataChange": True,
            "deletionVector": vectors.add(dead)}  # fmt: skip
    return [{"remove": removed}, {"add": kept}]


def _rows_of(table: Path, key: Sequence[str], add: Add, gone: pa.Table) -> Iterator[int]:
    """Numbers of the file's rows whose key is one of `gone`; NULL equals NULL."""
    if not gone.num_rows:
        return iter(())
    if not key:
        return iter(range(orjson.loads(add["stats"])["numRecords"]))
    file = table / urllib.parse.unquote(add["path"])
    stored = pq.read_table(file, columns=list(key), partitioning=None).select(list(key)).cast(gone.schema)
    metrics.count(rows_read=stored.num_rows, files_read=1)
    first, *others = key
    candidates = pc.indices_nonzero(pc.is_in(stored[first], value_set=gone[first].combine_chunks()))
    if not others:
        return iter(candidates.to_pylist())
    wanted = set(zip(*(gone[column].to_pylist() for column in key), strict=True))
    keys = zip(*(stored[column].take(candidates).to_pylist() for column in key), strict=True)
    return (row for row, found in zip(candidates.to_pylist(), keys, strict=True) if found in wanted)


def _write_rows(table: Path, spec: TableSpec, rows: pa.Table) -> Add:
    name = f"part-00000-{uuid.uuid4()}-c000.zstd.parquet"
    with (table / name).open("wb") as file:
        pq.write_table(rows, file, compression="zstd", row_group_size=_ROW_GROUP)
        file.flush()
        os.fsync(file.fileno())
    return {
        "path": name,
        "partitionValues": {},
        "size": (table / name).stat().st_size,
        "modificationTime": time.time_ns() // 1_000_000,
        "dataChange": True,
        "stats": orjson.dumps(_statistics(spec, rows)).decode(),
    }


def _statistics(spec: TableSpec, rows: pa.Table) -> dict[str, Any]:
    # Of whole numbers only: texts are cut and times are rounded in statistics, each by rules of its own.
    columns = [name for name in statistics_columns(spec) if pa.types.is_integer(spec.schema.field(name).type)]
    extremes = {name: pc.min_max(rows[name]).as_py() for name in columns}
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: found["min"] for name, found in extremes.items() if found["min"] is not None},
        "maxValues": {name: found["max"] for name, found in extremes.items() if found["max"] is not None},
        "nullCount": {name: rows[name].null_count for name in columns},
        "tightBounds": True,
    }


def _exact(stats: dict[str, Any]) -> dict[str, Any]:
    """The statistics of a file of Spark without those that lose digits as JSON numbers are read and written."""
    for bound in ("minValues", "maxValues"):
        stats[bound] = {name: value for name, value in stats.get(bound, {}).items() if type(value) is int}
    return stats


def _write_vectors(table: Path, vectors: VectorFile, actions: Sequence[dict[str, Any]]) -> None:
    if any("deletionVector" in action.get("add", ()) for action in actions):
        with (table / vectors.name).open("wb") as file:
            file.write(vectors.content)
            file.flush()
            os.fsync(file.fileno())
    sync_folder(table)

"""A Delta commit without Spark: Parquet files, deletion vectors, one entry of the log, put if absent.

The cost follows the change and the number of files that it touches. Where the rows that vanish are is found out
before (stored_keys.py). Large changes and anything unusual are Spark's; both ways give the same rows (tests/spark).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa

from cdc_views.store.delta_log.deletion_vectors import Rows, VectorFile
from cdc_views.store.delta_log.features import READER_FEATURES, WRITER_FEATURES
from cdc_views.store.delta_log.schema import TableSpec, statistics_columns
from cdc_views.store.delta_log.state import Add, TableState
from cdc_views.store.delta_log.versions import Stamp, head
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.index.fingerprints import has_fingerprints
from cdc_views.store.index.stored_keys import Positions
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching

_FEATURES: Final = frozenset((*READER_FEATURES, *WRITER_FEATURES))


def is_possible(spec: TableSpec, state: TableState) -> bool:
    """Whether this table can be committed to directly."""
    return (
        state.features <= _FEATURES
        and not state.is_partitioned
        and state.stored_rows is not None
        and all(has_fingerprints(spec.schema.field(name).type) for name in spec.key)
    )


def commit(
    table: Path, app: str, spec: TableSpec, state: TableState, gone: Positions, rows: pa.Table, stamp: Stamp
) -> str | None:
    """Make the version after `state`: without the rows at `gone`, and with `rows`; returns the path of their file.

    `gone` are live rows of `state`. Advances `state`. Raises VersionTaken, DiskFull.
    """
    with touching(table):
        added = [write_rows(table, rows, whole_numbers(spec))] if rows.num_rows else []
        commit_files(table, app, spec, state, gone, added, stamp)
    return str(added[0]["path"]) if added else None


def commit_files(
    table: Path, app: str, spec: TableSpec, state: TableState, gone: Positions, added: Sequence[Add], stamp: Stamp
) -> None:
    """The same with the rows of files that are in the table's folder already; their content is on the disk."""
    vectors = VectorFile()
    actions: list[dict[str, Any]] = []
    dead = {path: state.dead_rows(table, path) | found for path, found in gone.items()}
    for path in gone:
        actions += _without(state.files[path], state.rows_in(path), dead[path], vectors)
    operation = "MERGE" if actions else "WRITE"
    with touching(table):
        if vectors.holds_any:
            durable.write(table / vectors.name, vectors.content)
        durable.sync(table)
    head_of_entry = head(app, state.version, stamp, operation, is_append=operation == "WRITE")
    state.put(table, [*head_of_entry, *actions, *({"add": add} for add in added)])
    for path in dead.keys() & state.files.keys():
        state.know_dead_rows(path, dead[path])


def _without(add: Add, stored: int, dead: Rows, vectors: VectorFile) -> list[dict[str, Any]]:
    """What the log must say so that a file of so many rows has these no longer."""
    now_ms = time.time_ns() // 1_000_000
    carried = {name: add[name] for name in ("path", "size", "tags", "stats") if add.get(name)}
    carried["partitionValues"] = add.get("partitionValues") or {}
    removed = {**carried, "deletionTimestamp": now_ms, "dataChange": True, "extendedFileMetadata": True}
    if vector := add.get("deletionVector"):
        removed["deletionVector"] = vector
    if len(dead) == stored:
        return [{"remove": removed}]
    stats = _exact(orjson.loads(add["stats"]))
    # With rows gone, minimum and maximum are bounds only.
    stats["tightBounds"] = False
    kept = {**carried, "stats": orjson.dumps(stats).decode(), "modificationTime": add["modificationTime"],
            "dataChange": True, "deletionVector": vectors.add(dead)}  # fmt: skip
    return [{"remove": removed}, {"add": kept}]


def whole_numbers(spec: TableSpec) -> list[str]:
    """The columns of statistics: texts are cut and times are rounded in them, each by rules of its own."""
    return [name for name in statistics_columns(spec) if pa.types.is_integer(spec.schema.field(name).type)]


def _exact(stats: dict[str, Any]) -> dict[str, Any]:
    """The statistics of a file of Spark without those that lose digits as JSON numbers are read and written."""
    for bound in ("minValues", "maxValues"):
        stats[bound] = {name: value for name, value in stats.get(bound, {}).items() if type(value) is int}
    return stats

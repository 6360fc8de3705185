"""A Delta commit without Spark to a table of layout `plain`: files that lose rows are written anew without them.

For readers that do not know deletion vectors. What a commit costs follows the files that it touches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cdc_views.store.commits.direct import whole_numbers
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.state import Add, TableState
from cdc_views.store.delta_log.versions import Stamp, head
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.files.merged_file import rows_without, write_merged
from cdc_views.store.index.stored_keys import Positions
from cdc_views.store.storage import durable
from cdc_views.store.storage.disk import touching
from cdc_views.store.upkeep.compaction import removal


def commit(
    table: Path, app: str, spec: TableSpec, state: TableState, gone: Positions, rows: pa.Table, stamp: Stamp
) -> str | None:
    """Make the version after `state`: without the rows at `gone`, and with `rows`; returns the path of their file.

    Advances `state`. Raises VersionTaken, DiskFull.
    """
    with touching(table):
        added = [write_rows(table, rows, whole_numbers(spec))] if rows.num_rows else []
        commit_files(table, app, spec, state, gone, added, stamp)
    return str(added[0]["path"]) if added else None


def commit_files(
    table: Path, app: str, spec: TableSpec, state: TableState, gone: Positions, added: Sequence[Add], stamp: Stamp
) -> None:
    """The same with the rows of files that are in the table's folder already; their content is on the disk."""
    actions: list[Mapping[str, Any]] = [removal(state.files[path], data_change=True) for path in gone]
    operation = "MERGE" if actions else "WRITE"
    with touching(table):
        # One each: all in one would be the whole table in one file before long, and every change would write it anew.
        for path in gone:
            kept = write_merged(table, spec, rows_without(table, spec, path, gone[path]))
            if kept is not None:
                actions.append({"add": {**kept, "dataChange": True}})
        durable.sync(table)
    head_of_entry = head(app, state.version, stamp, operation, is_append=operation == "WRITE")
    state.put(table, [*head_of_entry, *actions, *({"add": add} for add in added)])

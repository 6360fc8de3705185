"""Restoring an older version without Spark: the next version of the table adds the older version's files again.

Spark's RESTORE starts from whatever version is the newest when it runs. This one puts exactly the next version, so an
engine that was replaced in between cannot roll back what its successor has done.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cdc_views.store.delta_log.entries import Add, has_entry, read_entry
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.delta_log.versions import RESTORE, Stamp, origin, removal
from cdc_views.store.storage import durable

_SETTINGS = ("metaData", "protocol")


def state_to_restore(table: Path, version: int, base: int) -> TableState | None:
    """The state at an older version; None if the log no longer has all of it, or more than rows has changed since."""
    for later in range(version + 1, base + 1):
        if not has_entry(table, later):
            return None
        if any(kind in action for action in read_entry(table, later) for kind in _SETTINGS):
            return None
    return TableState.of(table, version)


def restore(table: Path, state: TableState, wanted: TableState, stamp: Stamp) -> None:
    """Make the version after `state`, with the rows of `wanted`. Advances `state`. Raises VersionTaken, DiskFull."""
    gone = [add for path, add in state.files.items() if not _is_same(add, wanted.files.get(path))]
    back = [add for path, add in wanted.files.items() if not _is_same(add, state.files.get(path))]
    entry: list[Mapping[str, Any]] = [origin(state.version, stamp, RESTORE)]
    entry += [removal(add, data_change=True) for add in gone]
    entry += [{"add": {**add, "partitionValues": add.get("partitionValues") or {}, "dataChange": True}} for add in back]
    durable.sync(table)
    state.put(table, entry)


def _is_same(add: Add, other: Add | None) -> bool:
    """Whether two `add` actions of one path name the same rows of it."""
    return other is not None and _rows(add) == _rows(other)


def _rows(add: Add) -> tuple[object, ...]:
    vector = add.get("deletionVector") or {}
    return tuple(vector.get(name) for name in ("storageType", "pathOrInlineDv", "offset"))

"""A Delta commit without Spark: the driver writes the data files and commits the log entry itself.

The cost follows the size of the change and the number of files that it touches. The stored rows that it removes are
found beforehand (replaced_rows.py). How they are removed depends on the layout of the table: see vectors.py and
plain.py. Large changes and unusual tables are left to Spark; both paths store the same rows (tests/spark).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa

from cdc_views.store.delta_log.deletion_vectors import RowNumbers, StoredRows
from cdc_views.store.delta_log.entries import Action, Add
from cdc_views.store.delta_log.features import READER_FEATURES, WRITER_FEATURES
from cdc_views.store.delta_log.schema import TableSpec
from cdc_views.store.delta_log.state import TableState
from cdc_views.store.delta_log.versions import Stamp, head
from cdc_views.store.files.data_files import write_rows
from cdc_views.store.files.statistics import bounded_columns
from cdc_views.store.index.hashing import has_fingerprints
from cdc_views.store.storage.disk import touching
from cdc_views.store.storage.port import STORAGE

_FEATURES: Final = frozenset((*READER_FEATURES, *WRITER_FEATURES))


@dataclass(frozen=True)
class Target:
    """The table that a commit extends. `app` identifies our transactions in it; a commit advances `state`."""

    folder: Path
    app: str
    spec: TableSpec
    state: TableState


@dataclass(frozen=True)
class Removal:
    """The actions that remove rows, and for each file that stays in the table all its dead rows, if they changed."""

    actions: Sequence[Action]
    dead: Mapping[str, RowNumbers] = field(default_factory=dict)


class Committer(ABC):
    """Commits to tables of one layout."""

    def commit(self, target: Target, gone: StoredRows, rows: pa.Table, stamp: Stamp) -> str | None:
        """Make the version after the target's state, without the rows `gone` and with `rows`.

        `gone` are live rows of the state. Returns the path of the file with the new rows, None if there are none.
        Raises VersionTaken, DiskFull.
        """
        with touching(target.folder):
            added = [write_rows(target.folder, rows, bounded_columns(target.spec))] if rows.num_rows else []
            self.commit_files(target, gone, added, stamp)
        return str(added[0]["path"]) if added else None

    def commit_files(self, target: Target, gone: StoredRows, added: Sequence[Add], stamp: Stamp) -> None:
        """Do the same with the rows of data files that are in the table's folder already, their content fsynced."""
        with touching(target.folder):
            removal = self.remove_rows(target, gone)
            STORAGE.sync(target.folder)
        state, operation = target.state, "MERGE" if removal.actions else "WRITE"
        start = head(target.app, state.version, stamp, operation, is_append=operation == "WRITE")
        state.put(target.folder, [*start, *removal.actions, *({"add": add} for add in added)])
        for path, rows in removal.dead.items():
            state.know_dead_rows(path, rows)

    @abstractmethod
    def remove_rows(self, target: Target, gone: StoredRows) -> Removal:
        """Write what the removal of these rows needs, content fsynced, and return the actions that remove them."""


def can_commit(spec: TableSpec, state: TableState) -> bool:
    """Whether a table can be committed to without Spark."""
    return (
        state.features <= _FEATURES
        and not state.is_partitioned
        and state.stored_rows is not None
        and all(has_fingerprints(spec.schema.field(name).type) for name in spec.key)
    )

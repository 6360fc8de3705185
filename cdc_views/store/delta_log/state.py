"""The state of a Delta table, replayed from its log without a JVM: its files, transactions and features."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views.store.delta_log.deletion_vectors import RowNumbers, read_rows
from cdc_views.store.delta_log.entries import (
    NO_TABLE,
    Add,
    checkpoint_file,
    checkpoints,
    has_entry,
    newest_version,
    put_entry,
    read_entry,
)

_IN_CHECKPOINT: Final = ("add", "txn", "protocol", "metaData")


@dataclass
class TableState:
    """The files of a version by path, as their `add` actions, and the newest transaction of each application."""

    version: int = NO_TABLE
    files: dict[str, Add] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    is_partitioned: bool = False
    _counts: dict[str, int | None] = field(default_factory=dict)
    _dead: dict[str, tuple[Mapping[str, Any], RowNumbers]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Path, version: int) -> TableState | None:
        """The state at an older version; None if the log no longer has all of it."""
        state = cls()
        state._begin_at_checkpoint(table, version)
        state._read_on(table, version)
        return state if state.version == version else None

    def catch_up(self, table: Path) -> bool:
        """Read the new entries. False if some are gone and no single-file checkpoint replaces them."""
        if self.version != NO_TABLE:
            self._read_on(table)
            # Clean-up removes the oldest entries first: while our own entry exists, no later one is gone.
            if has_entry(table, self.version):
                return True
        if newest_version(table) != self.version:
            self._begin_at_checkpoint(table)
            self._read_on(table)
        return newest_version(table) == self.version

    def copy(self) -> TableState:
        """The same state, which later changes of this one do not affect."""
        return replace(
            self,
            files=self.files.copy(),
            transactions=self.transactions.copy(),
            _counts=self._counts.copy(),
            _dead=self._dead.copy(),
        )

    def apply(self, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
        """Apply the actions of the next version."""
        actions = list(actions)
        removed = [action["remove"]["path"] for action in actions if "remove" in action]
        # A file whose deletion vector changes is removed and added in one version.
        for path in removed:
            self.files.pop(path, None)
            self._counts.pop(path, None)
        for action in actions:
            if "add" in action:
                add = action["add"]
                self.files[add["path"]] = add
                self._counts[add["path"]] = orjson.loads(add.get("stats") or "{}").get("numRecords")
            elif "txn" in action:
                self.transactions[action["txn"]["appId"]] = action["txn"]["version"]
            elif "protocol" in action:
                found = action["protocol"]
                self.features = frozenset([*(found.get("readerFeatures") or ()), *(found.get("writerFeatures") or ())])
            elif "metaData" in action:
                self.is_partitioned = bool(action["metaData"].get("partitionColumns"))
        for path in removed:
            if path not in self.files:
                self._dead.pop(path, None)
        self.version = version

    def put(self, table: Path, actions: Sequence[Mapping[str, Any]]) -> None:
        """Put the next version into the table's log and apply it. Raises VersionTaken, and then nothing has changed."""
        put_entry(table, self.version + 1, actions)
        self.apply(self.version + 1, actions)

    @property
    def stored_rows(self) -> int | None:
        """Rows in all files, deleted ones included; None if the log lacks the row count of a file."""
        total = 0
        for count in self._counts.values():
            if count is None:
                return None
            total += count
        return total

    @property
    def stored_bytes(self) -> int:
        """The size of all files."""
        return sum(add["size"] for add in self.files.values())

    def rows_in(self, path: str) -> int:
        """Rows in a file, deleted ones included."""
        count = self._counts[path]
        assert count is not None
        return count

    def dead_rows(self, table: Path, path: str) -> RowNumbers:
        """The rows of a file that its deletion vector hides. Do not change the result. Raises StoreError."""
        descriptor = self.files[path].get("deletionVector")
        if descriptor is None:
            return RowNumbers()
        known = self._dead.get(path)
        if known is None or known[0] != descriptor:
            known = self._dead[path] = descriptor, read_rows(table, descriptor)
        return known[1]

    def know_dead_rows(self, path: str, rows: RowNumbers) -> None:
        """Keep the rows of the file's newest deletion vector, which its writer has at hand."""
        self._dead[path] = self.files[path]["deletionVector"], rows

    def _read_on(self, table: Path, at_most: float = math.inf) -> None:
        while self.version < at_most and has_entry(table, self.version + 1):
            self.apply(self.version + 1, read_entry(table, self.version + 1))

    def _begin_at_checkpoint(self, table: Path, at_most: float = math.inf) -> None:
        """Restart from the newest single-file checkpoint that can be read, or from nothing if there is none."""
        vars(self).update(vars(TableState()))
        for version in checkpoints(table, at_most):
            # A crash or a loss of power may have left half a checkpoint; then the entries that it replaces still exist.
            with (
                suppress(pa.ArrowException, OSError),
                pq.ParquetFile(checkpoint_file(table, version)) as file,
            ):
                rows = file.read(columns=[kind for kind in _IN_CHECKPOINT if kind in file.schema_arrow.names])
                self.apply(version, map(_without_nulls, rows.to_pylist(maps_as_pydicts="strict")))
                return


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an action as in a log entry, from its row in a checkpoint, which has the fields of all actions."""
    return {name: _without_nulls(value) if isinstance(value, dict) else value
            for name, value in row.items() if value is not None}  # fmt: skip

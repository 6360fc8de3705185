"""The state of a Delta table as its log tells it: which files are in it, without a JVM."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_views.store.delta_log.deletion_vectors import Rows, read_rows
from cdc_views.store.delta_log.entries import LOG_FOLDER, NO_TABLE, entry_file, newest_version, put_entry, read_entry

Add = dict[str, Any]

_CHECKPOINT: Final = re.compile(r"^(\d{20})\.checkpoint\.parquet$")
_IN_CHECKPOINT: Final = ("add", "txn", "protocol", "metaData")


@dataclass
class TableState:
    """Files by path, as their `add` actions; the newest transaction of each application."""

    version: int = NO_TABLE
    files: dict[str, Add] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    is_partitioned: bool = False
    _counts: dict[str, int | None] = field(default_factory=dict)
    _dead: dict[str, tuple[Mapping[str, Any], Rows]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Path, version: int) -> TableState | None:
        """The state at an older version; None if the log no longer says it."""
        state = cls()
        state._begin_at_checkpoint(table, version)
        state._read_on(table, version)
        return state if state.version == version else None

    def catch_up(self, table: Path) -> bool:
        """Read the entries that are new. False if some are gone and no checkpoint of one file has what they said."""
        if self.version != NO_TABLE:
            self._read_on(table)
            # Clean-up of the log takes the oldest first: with our own entry there, none after it is gone.
            if entry_file(table, self.version).exists():
                return True
        if newest_version(table) != self.version:
            self._begin_at_checkpoint(table)
            self._read_on(table)
        return newest_version(table) == self.version

    def apply(self, version: int, actions: Iterable[Mapping[str, Any]]) -> None:
        """Take in the actions of the next version."""
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
        """Put the next version into the table's log, and take it in. Raises VersionTaken, and then nothing changed."""
        put_entry(table, self.version + 1, actions)
        self.apply(self.version + 1, actions)

    @property
    def stored_rows(self) -> int | None:
        """Rows in all files, those deleted included; None if a file does not say how many it has."""
        total = 0
        for count in self._counts.values():
            if count is None:
                return None
            total += count
        return total

    @property
    def stored_bytes(self) -> int:
        """Size of all files."""
        return sum(add["size"] for add in self.files.values())

    def rows_in(self, path: str) -> int:
        """Rows in a file, those deleted included."""
        count = self._counts[path]
        assert count is not None
        return count

    def dead_rows(self, table: Path, path: str) -> Rows:
        """The rows of a file that its deletion vector has taken; not to be changed. Raises StoreError."""
        descriptor = self.files[path].get("deletionVector")
        if descriptor is None:
            return Rows()
        known = self._dead.get(path)
        if known is None or known[0] != descriptor:
            known = self._dead[path] = descriptor, read_rows(table, descriptor)
        return known[1]

    def know_dead_rows(self, path: str, rows: Rows) -> None:
        """Keep what the file's newest deletion vector holds, as its writer knows."""
        self._dead[path] = self.files[path]["deletionVector"], rows

    def _read_on(self, table: Path, at_most: float = math.inf) -> None:
        while self.version < at_most and entry_file(table, self.version + 1).exists():
            self.apply(self.version + 1, read_entry(table, self.version + 1))

    def _begin_at_checkpoint(self, table: Path, at_most: float = math.inf) -> None:
        """Start anew from the newest checkpoint that is one file and can be read; from nothing if there is none."""
        vars(self).update(vars(TableState()))
        names = os.listdir(table / LOG_FOLDER)
        found = (int(match[1]) for name in names if (match := _CHECKPOINT.match(name)))
        for version in sorted((version for version in found if version <= at_most), reverse=True):
            # Half written by a crash or a loss of power; then what it stands for is still there.
            with (
                suppress(pa.ArrowException, OSError),
                pq.ParquetFile(table / LOG_FOLDER / f"{version:020d}.checkpoint.parquet") as file,
            ):
                rows = file.read(columns=[kind for kind in _IN_CHECKPOINT if kind in file.schema_arrow.names])
                self.apply(version, map(_without_nulls, rows.to_pylist(maps_as_pydicts="strict")))
                return


def _without_nulls(row: Mapping[str, Any]) -> dict[str, Any]:
    """An action as the log has it, from its row of a checkpoint, which has every field that any action may have."""
    return {name: _without_nulls(value) if isinstance(value, dict) else value
            for name, value in row.items() if value is not None}  # fmt: skip

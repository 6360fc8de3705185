"""The state of a Delta table as its log tells it: which files are in it, without a JVM."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from cdc_views.store.entries import entry_file, newest_version, read_entry

Add = dict[str, Any]


@dataclass
class TableState:
    """Files by path, as their `add` actions; the newest transaction of each application."""

    version: int = -1
    files: dict[str, Add] = field(default_factory=dict)
    transactions: dict[str, int] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    is_partitioned: bool = False

    def catch_up(self, table: Path) -> bool:
        """Read the entries that are new. False if one is gone: clean-up of the log leaves a checkpoint only."""
        for version in range(self.version + 1, newest_version(table) + 1):
            if not entry_file(table, version).exists():
                return False
            self.apply(version, read_entry(table, version))
        return True

    def apply(self, version: int, actions: list[dict[str, Any]]) -> None:
        """Take in the actions of the next version."""
        # A file whose deletion vector changes is removed and added in one version.
        for action in actions:
            if "remove" in action:
                self.files.pop(action["remove"]["path"], None)
        for action in actions:
            if "add" in action:
                self.files[action["add"]["path"]] = action["add"]
            elif "txn" in action:
                self.transactions[action["txn"]["appId"]] = action["txn"]["version"]
            elif "protocol" in action:
                found = action["protocol"]
                self.features = frozenset([*found.get("readerFeatures", ()), *found.get("writerFeatures", ())])
            elif "metaData" in action:
                self.is_partitioned = bool(action["metaData"].get("partitionColumns"))
        self.version = version

    @property
    def stored_rows(self) -> int | None:
        """Rows in all files, those deleted included; None if a file does not say how many it has."""
        counts = [orjson.loads(add.get("stats") or "{}").get("numRecords") for add in self.files.values()]
        return None if None in counts else sum(counts)

    @property
    def stored_bytes(self) -> int:
        """Size of all files."""
        return sum(add["size"] for add in self.files.values())
